package decode_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
)

// The ports of rawnet, of its packets, and of rpc; remote memory's is 253.
const streams, packetPort, calls, memory = 251, 250, 249, 253

// The ports of barriers, of exchanges and of discovery.
const barriers, exchanges, discovery = 254, 252, 255

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

// What messages look like whose frame has no other header.
var goldenMessages = map[uint8][]string{
	barriers: {
		goldenBarrier("41 07 03 01", "00000009", ""),                                                             // notify
		goldenBarrier("41 07 03 00", "00000001", "0003 00000000 b1b2b3b4 00000005"),                              // of the first generation
		goldenBarrier("42 07 ff 08", "00000009", ""),                                                             // nack
		goldenBarrier("43 07 03 01", "00000009", "00000008"),                                                     // not yet
		goldenBarrier("44 07 00 00", "00000009", "05 00 0002 0001 0102"),                                         // fail
		goldenBarrier("45 00 00 00", "00000000", "b5b6b7b8 0002 00 00000003 ff 00000004 0002 00000001 b5b6b7b8"), // bye
		goldenBarrier("46 00 00 00", "00000000", ""),                                                             // bye ack
		goldenBarrier("47 07 00 00", "00000009", ""),                                                             // status request
		goldenBarrier("48 07 00 01", "00000009", ""),                                                             // status reply
		goldenBarrier("49 07 00 08", "00000009", "00000007 0a"),                                                  // no such group
		goldenBarrier("4a 00 00 0e", "00000003", "b5b6b7b8 0002 0001 01 0102 04"),                                // report
	},
	exchanges: {
		"07 01 0000 0000001a 0000002b 00000007 00000001 00000003 6869",
		"07 05 0000 0000001a 0000002b 00000003 00000000 ffffffff",
		"07 06 0000 0000001a 00000000 00000003 00000000 00000000",
		"07 09 0000 0000001a 0000002b 00000000 00000000 00000000",
	},
	discovery: {
		"01 05 01 00 0002 01 020000000001 61", // of a node that has failed
		"01 01 02 01 0004 05 020000000001 020000000002 616c706861",
		"01 02 01 00 0002 01 020000000001 61 0123456789abcdef 800000000000000f 0002 01 00",
	},
}

// oddMessages are at the bounds of what is right, and beyond.
func oddMessages() map[uint8][]string {
	members := func(n int) (ranks string) { // of a report
		for i := range n {
			ranks += fmt.Sprintf("%04x 01", i)
		}
		return ranks
	}
	words := func(n int) string { return strings.Repeat("01020304", n) }
	return map[uint8][]string{
		barriers: {
			"46 00 00 00" + strings.Repeat("00", 24),                 // a bye ack without the group
			"49 00 00 00" + strings.Repeat("00", 24) + "00000000 0b", // no such group: it answers no kind
			goldenBarrier("41 00 00 00", "00000001", "0140"+words(320)),
			goldenBarrier("41 00 00 00", "00000001", "0141"+words(321)),
			goldenBarrier("45 00 00 00", "00000000", "00000000 0000 0140"+words(320)),
			goldenBarrier("45 00 00 00", "00000000", "00000000 0000 0141"+words(321)),
			goldenBarrier("45 00 00 00", "00000000", "00000000 0001 00 00000003 0140"+words(320)),
			goldenBarrier("45 00 00 00", "00000000", "00000000 0100"+strings.Repeat("00 00000001", 256)+"0000"),
			goldenBarrier("45 00 00 00", "00000000", "00000000 0101"+strings.Repeat("00 00000001", 257)+"0000"),
			goldenBarrier("44 00 00 00", "00000001", "05 00 0000"),
			goldenBarrier("44 00 00 00", "00000001", "05 00 0003 0001 0002 0003"),
			goldenBarrier("44 00 00 00", "00000001", "06 00 0001 0001"),
			goldenBarrier("4a 00 00 02", "00000001", "00000000 0000"),
			goldenBarrier("4a 00 00 04", "00000001", "00000000 0000"),
			goldenBarrier("4a 00 00 00", "00000001", "00000000 0190"+members(400)),
			goldenBarrier("4a 00 00 00", "00000001", "00000000 0191"+members(401)),
			goldenBarrier("4a 00 00 00", "00000001", "00000000 0002 0001 01 0001 01"),
			goldenBarrier("4a 00 00 00", "00000001", "00000000 0001 0001 05"),
		},
		exchanges: {
			"07 0a 0000 0000001a 0000002b 00000007 00000000 00000000",
			"01 000000 00000007 00000001 00000003 6869 0000000000000000", // of the version before
		},
		discovery: {
			"01 00 01 00 0002 00 000000000000",
			"01 00 01 00 0002 00 000000000100",
			"01 00 01 00 0002 00 000100000000",
			"01 00 01 00 0002 3f 020000000001" + strings.Repeat("61", 64),
			"01 00 01 00 0002 40 020000000001" + strings.Repeat("61", 64),
			"01 00 10 0f 0002 00" + strings.Repeat("020000000001", 16),
			"01 00 11 0f 0002 00" + strings.Repeat("020000000001", 17),
			"01 00 00 00 0002 00",
			"01 02 01 00 0002 01 020000000001 61 0000000100000000 000000000000000f 0002 ff 00 00",
			"01 02 01 00 0002 01 020000000001 61 0000000000000000 000000000000000f 0002 01 00",
			"01 02 01 00 0002 01 020000000001 61 0123456789abcdef 000000000000000f 0002 01",
		},
	}
}

func goldenBarrier(head, generation, rest string) string {
	return head + "0102030405060708 00000005" + generation + "a1a2a3a4 b1b2b3b4" + rest
}

// push puts a record, or its first part, into a frame of remote memory.
func push(t testing.TB, rec []byte, more int) []byte {
	flags := byte(3)
	if more > 0 {
		flags = 2
	}
	b := append(decodetest.Unhex(t, goldenFrame), 2, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rec)))
	b = append(b, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(rec)+more))
	return append(b, rec...)
}

func TestRecords(t *testing.T) {
	good := decode.Message{Kind: decode.Unicast, DstPort: streams}
	good.Payload = push(t, decodetest.Unhex(t, goldenRecords[streams][0]), 0)
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
			for _, v := range fuzzseed.Variants(decodetest.Unhex(t, rec)) {
				add(port, push(t, v, 0))
			}
			add(port, push(t, decodetest.Unhex(t, rec), 1000))
		}
		for _, v := range fuzzseed.Variants(push(t, decodetest.Unhex(t, goldenRecords[port][0]), 0)) {
			add(port, v)
		}
		first := push(t, decodetest.Unhex(t, goldenRecords[port][0]), 0)
		add(port, append(first, first[20:]...)) // two in a frame
	}
	for _, port := range []uint8{barriers, exchanges, discovery} {
		for _, message := range goldenMessages[port] {
			for _, v := range fuzzseed.Variants(decodetest.Unhex(t, message)) {
				add(port, v)
			}
		}
		for _, message := range oddMessages()[port] {
			add(port, decodetest.Unhex(t, message))
		}
		for _, kind := range []decode.Kind{decode.Multicast, decode.Broadcast} { // some have it, some not
			add(port, decodetest.Unhex(t, goldenMessages[port][0]))
			all[len(all)-1].Kind = kind
		}
	}
	for op := range byte(15) {
		add(memory, append(append(decodetest.Unhex(t, goldenFrame), op, 7, 0, 2), make([]byte, 40)...))
	}
	for _, v := range fuzzseed.Variants(decodetest.Unhex(t, goldenAck)) {
		add(memory, v)
	}
	for _, v := range fuzzseed.Variants(decodetest.Unhex(t, goldenPacket)) {
		add(packetPort, v)
	}
	return all
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
