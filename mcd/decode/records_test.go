package decode_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
	netdecode "github.com/rawlane/rawlane/rawnet/decode"
	rpcdecode "github.com/rawlane/rawlane/rpc/decode"
)

// The ports of rawnet, of its packets, and of rpc; remote memory's is 253.
const streams, packetPort, calls, memory = 251, 250, 249, 253

const (
	goldenFrame  = "21 00 0100 00000001 00000002 00000007 0000000c" // data of remote memory, without its records
	goldenAck    = "22 00 0040 00000001 00000002 00000000 00000007 0000000000000005"
	goldenPacket = "01 03 01 00 646e73 63 6869"
)

// What the records of docs/wire-format.md look like; each is pushed to handler 1.
var goldenRecords = map[uint8][]string{
	streams: {
		"11 01 00 00 00000000000012ab 0000000000040000 6563686f", // open
		"12 00 00 00 00000000000012ab 0000000000040000",          // accept
		"13 00 01 00 00000000000012ab",                           // refuse
		"14 01 00 00 00000000000012ab 6869",                      // data
		"15 00 00 00 00000000000012ab 0000000000060000",          // window
		"16 01 00 00 00000000000012ab",                           // fin
		"18 01 08 00 00000000000012ab",                           // reset
	},
	calls: {
		"11 00 04 00 00000000000012ab 001000004dd2f1a9 6563686f 6869", // request
		"11 00 01 00 00000000000012ab 0010624dd2f1a9fb 65",            // request with the latest deadline
		"12 00 00 00 00000000000012ab 6869",                           // response
		"13 00 00 00 00000000000012ab",                                // cancellation
	},
}

// push puts a record, or its first part, into a frame of remote memory.
func push(t testing.TB, rec []byte, more int) []byte {
	flags := byte(3)
	if more > 0 {
		flags = 2
	}
	b := append(unhex(t, goldenFrame), 2, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rec)))
	b = append(b, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(rec)+more))
	return append(b, rec...)
}

func TestRecords(t *testing.T) {
	good := decode.Message{Kind: decode.Unicast, DstPort: streams}
	good.Payload = push(t, unhex(t, goldenRecords[streams][0]), 0)
	want := []string{"requests 7, ack 12", `stream 12ab, dialer: open "echo", accepts bytes before 262144`}
	var got []string
	for _, r := range good.Records() {
		got = append(got, r.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	good.Auth = &decode.Auth{}
	if len(good.Records()) != 2 {
		t.Error("an authenticated frame in the clear is not read")
	}
	for what, spoil := range map[string]func(m *decode.Message){
		"a ciphertext":               func(m *decode.Message) { m.Auth = &decode.Auth{Encrypted: true} },
		"what a node would drop":     func(m *decode.Message) { m.Fault = decode.ErrFault },
		"a multicast":                func(m *decode.Message) { m.Kind = decode.Multicast },
		"a probe":                    func(m *decode.Message) { m.Kind = decode.Probe },
		"a port that nobody reads":   func(m *decode.Message) { m.DstPort = 7 },
		"what is only from its port": func(m *decode.Message) { m.SrcPort, m.DstPort = streams, 7 },
	} {
		bad := good
		spoil(&bad)
		if n := len(bad.Records()); n != 0 {
			t.Errorf("%s has %d records", what, n)
		}
	}
}

// payloads are records of all kinds, and what becomes of them when they are altered or cut off.
func payloads(t testing.TB) (all []decode.Message) {
	add := func(port uint8, payload []byte) {
		m := decode.Message{Kind: decode.Unicast, SrcPort: port, DstPort: port, From: 1, To: 2}
		m.Payload = payload
		all = append(all, m)
	}
	for _, port := range []uint8{streams, calls} { // in order, as a failure names the frame's number
		for _, rec := range goldenRecords[port] {
			for _, v := range fuzzseed.Variants(unhex(t, rec)) {
				add(port, push(t, v, 0))
			}
			add(port, push(t, unhex(t, rec), 1000))
		}
		for _, v := range fuzzseed.Variants(push(t, unhex(t, goldenRecords[port][0]), 0)) {
			add(port, v)
		}
		first := push(t, unhex(t, goldenRecords[port][0]), 0)
		add(port, append(first, first[20:]...)) // two in a frame
	}
	for op := range byte(15) {
		add(memory, append(append(unhex(t, goldenFrame), op, 7, 0, 2), make([]byte, 40)...))
	}
	for _, v := range fuzzseed.Variants(unhex(t, goldenAck)) {
		add(memory, v)
	}
	for _, v := range fuzzseed.Variants(unhex(t, goldenPacket)) {
		add(packetPort, v)
	}
	return all
}

// summary is what both readers say of a message: frame, lane, operations, records, data, and how
// often something is malformed.
func summary(m *decode.Message) string {
	var frame, lane, ops, stream, limits, call, to, data, malformed []string
	bytes := func(b []byte) {
		if len(b) > 0 {
			data = append(data, hex.EncodeToString(b))
		}
	}
	for _, r := range m.Records() {
		switch r := r.(type) {
		case *memdecode.Frame:
			frame = append(frame, r.Kind)
			if r.Lane != "" {
				lane = append(lane, r.Lane)
			}
		case *memdecode.Operation:
			ops = append(ops, r.Opcode)
		case *netdecode.Record:
			stream = append(stream, r.Kind)
			if r.Limit != nil {
				limits = append(limits, fmt.Sprint(*r.Limit))
			}
		case *netdecode.Packet:
			to = append(to, fmt.Sprint(r.Bytes))
		case *rpcdecode.Record:
			call = append(call, r.Kind)
		case decode.Malformed:
			malformed = append(malformed, "Malformed record")
			continue
		}
		bytes(r.Data())
	}
	fields := [][]string{frame, lane, ops, stream, limits, call, data, malformed}
	var s []string
	for _, f := range fields {
		s = append(s, strings.Join(f, ","))
	}
	return strings.Join(s, "|")
}

// The dissector of docs/rawlane.lua reads records as we do, those that make no sense too.
func TestWiresharkDissector_Records(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	var frames [][]byte
	var want []string
	all := payloads(t)
	for i := range all {
		frames = append(frames, frame(t, &all[i], string(all[i].Payload)))
		want = append(want, summary(&all[i]))
	}
	args := []string{"-r", write(t, frames), "-X", "lua_script:" + filepath.Join("..", "..", "docs", "rawlane.lua"),
		"-T", "fields", "-E", "separator=|", "-E", "occurrence=a"}
	for _, field := range []string{"frame", "lane", "op", "stream.kind", "stream.limit", "call.kind", "data"} {
		args = append(args, "-e", "rawlane."+field)
	}
	out, err := exec.Command(tshark, append(args, "-e", "_ws.expert.message")...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range want {
		// Wireshark has remarks of its own, such as on a name with a zero byte.
		fields, remarks := got[i][:strings.LastIndex(got[i], "|")+1], got[i][strings.LastIndex(got[i], "|")+1:]
		n := strings.Count(remarks, "Malformed record")
		got[i] = fields + strings.TrimSuffix(strings.Repeat("Malformed record,", n), ",")
		if got[i] != want[i] {
			t.Errorf("frame %d, %x:\n got %s\nwant %s", i+1, all[i].Payload, got[i], want[i])
		}
	}
}

// FuzzRecords: whatever comes to any port is shown, each record on one line.
func FuzzRecords(f *testing.F) {
	for _, m := range payloads(f) {
		f.Add(m.DstPort, m.Payload)
	}
	f.Fuzz(func(t *testing.T, port uint8, payload []byte) {
		m := decode.Message{Kind: decode.Unicast, DstPort: port}
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, &m, gopacket.Payload(payload)); err != nil {
			return // too long
		}
		if err := m.DecodeFromBytes(b.Bytes(), gopacket.NilDecodeFeedback); err != nil || m.Fault != nil {
			t.Fatal(err, m.Fault)
		}
		for _, r := range m.Records() {
			if s := r.String(); s == "" || strings.ContainsAny(s, "\n\r") || len(r.Data()) > len(payload) {
				t.Errorf("port %d, %x: %q, %d bytes", port, payload, s, len(r.Data()))
			}
		}
	})
}
