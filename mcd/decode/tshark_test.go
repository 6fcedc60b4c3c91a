package decode_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/mcd/decode"
)

// The dissector of docs/rawlane.lua reads what we write, and finds the faults that we find.
func TestWiresharkDissector(t *testing.T) {
	tagged := sample
	spoilt := frame(t, &tagged, "hello")
	spoilt[18+20] ^= 1
	plain := decode.Message{Kind: decode.Unicast, SrcPort: 7, DstPort: 9, From: 1, To: 2, Cluster: 0x01020304}
	cut := frame(t, &plain, "hello")
	version := frame(t, &plain, "hello")
	version[18] = 0x31
	kind := decode.Message{Kind: 9, From: 1}
	const announcement = "\x01\x01\x01\x00\x00\x04\x05\x02\x00\x00\x00\x00\x01alpha"
	lighter := plain
	lighter.HeaderOnly = true
	unnoticed := frame(t, &lighter, "hello")
	unnoticed[18+20] ^= 1
	frames := [][]byte{
		frame(t, &tagged, "hello"), // all are padded to 60 bytes, those aside that are cut
		frame(t, &plain, "hello"),
		frame(t, &decode.Message{Kind: decode.Broadcast, From: 3, To: 0xffff, SrcPort: 255, DstPort: 255}, announcement),
		spoilt,
		unnoticed,
		cut[:18+20+3],
		version,
		frame(t, &kind, ""),
		cut[:18+10],
		append(cut[:18:18], decodetest.Unhex(t, goldenReply)...),
		append(cut[:18:18], decodetest.Unhex(t, goldenAuth)...),
		append(cut[:18:18], decodetest.Unhex(t, goldenEncrypted)...),
	}
	want := []string{
		"101|1|2|1|3|4||5|0x01020304|5|101|1|good|68656c6c6f||||",
		"101|1|1|1|7|9|2||0x01020304|5|||good|68656c6c6f||||",
		"101|1|3|3|255|255|||0x00000000|18|||good|01010100000405020000000001616c706861||||alpha",
		"101|1|2|1|3|4||5|0x01020304|5|101|1|bad|69656c6c6f|Bad checksum|||",
		"101|1|1|1|7|9|2||0x01020304|5|||good|69656c6c6f||||",
		"101|1|1|1|7|9|2||0x01020304|5||||68656c|The payload is cut off|||",
		"101|3|1||||||||||||Another version of the wire format|||",
		"101|1|9|1|0|0|0||0x00000000|0|||good||Unknown kind|||",
		"101||||||||||||||Shorter than a header|||",
		"101|1|5|2|0|0|1||0x00000001|16|101|1|good|00000007080000002065000001020304||7|0x2065|",
		"101|2|1|1|7|9|2||0x01020304|5||||68656c6c6f||||",
		"101|2|1|1|7|9|2||0x01020304|5||||bbeb55a7a0||||",
	}
	got := tsharkFields(t, write(t, frames), "vlan.id", "rawlane.version", "rawlane.kind", "rawlane.from",
		"rawlane.src_port", "rawlane.dst_port", "rawlane.to", "rawlane.group", "rawlane.cluster",
		"rawlane.length", "rawlane.vid", "rawlane.pcp", "rawlane.checksum.status", "rawlane.payload",
		"_ws.expert.message", "rawlane.probe.number", "rawlane.probe.received_tci", "rawlane.discovery.host")
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

// tsharkFields is what tshark says of each frame of a file, its fields with bars between them. It
// skips the test with -short, with which tests run under the race detector: tshark is a process of
// its own.
func tsharkFields(t *testing.T, file string, fields ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("[short] skip: tshark starts in seconds")
	}
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	args := []string{"-r", file, "-X", dissector(t), "-T", "fields", "-E", "separator=|"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// dissector is the option by which tshark takes docs/rawlane.lua. The test opens it, too, so that
// its result is not cached when the file has changed.
func dissector(t *testing.T) string {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "rawlane.lua")
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return "lua_script:" + path
}

func write(t *testing.T, frames [][]byte) (path string) {
	t.Helper()
	return writeParts(t, frames, 1<<16)
}

// writeParts writes no more than some bytes of each frame.
func writeParts(t *testing.T, frames [][]byte, most int) (path string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "frames.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := pcapgo.NewNgWriter(file, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: min(len(f), most), Length: len(f)}
		if err := w.WritePacket(info, f[:info.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// The golden vectors of authenticated frames in docs/wire-format.md.
const (
	goldenAuth      = "2180090700010002010203040005000011121314151617180000000000000001" + "6b778a686170bd4bf8f35cee22771897" + "68656c6c6f"
	goldenEncrypted = "2182090700010002010203040005000011121314151617180000000000000002" + "2bc44578838fe8544e23a0543032cd1a" + "bbeb55a7a0"
)

func TestAuthenticatedFramesDecode(t *testing.T) {
	for hex, want := range map[string]string{
		goldenAuth:      "1:7 -> 2:9 unicast cluster 0x1020304 5 bytes key 8 incarnation 1112131415161718 counter 1",
		goldenEncrypted: "1:7 -> 2:9 unicast cluster 0x1020304 5 bytes key 8 incarnation 1112131415161718 counter 2 encrypted",
	} {
		var m decode.Message
		if err := m.DecodeFromBytes(decodetest.Unhex(t, hex), gopacket.NilDecodeFeedback); err != nil || m.Fault != nil || m.String() != want {
			t.Errorf("%s, %v, %v; want %s", m.String(), err, m.Fault, want)
		}
		if len(m.Contents) != 48 || len(m.Payload) != 5 {
			t.Errorf("%d bytes of header and %d of payload", len(m.Contents), len(m.Payload))
		}
		if err := m.SerializeTo(gopacket.NewSerializeBuffer(), gopacket.SerializeOptions{}); err == nil {
			t.Error("an authenticated frame was made without a key")
		}
		if err := m.DecodeFromBytes(decodetest.Unhex(t, hex)[:47], gopacket.NilDecodeFeedback); err == nil {
			t.Error("47 bytes decode")
		}
	}
}
