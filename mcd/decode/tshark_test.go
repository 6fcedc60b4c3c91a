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

	"github.com/rawlane/rawlane/mcd/decode"
)

// The dissector of docs/rawlane.lua reads what we write, and finds the faults that we find.
func TestWiresharkDissector(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	tagged := sample
	spoilt := frame(t, &tagged, "hello")
	spoilt[18+20] ^= 1
	plain := decode.Message{Kind: decode.Unicast, SrcPort: 7, DstPort: 9, From: 1, To: 2, Cluster: 0x01020304}
	cut := frame(t, &plain, "hello")
	version := frame(t, &plain, "hello")
	version[18] = 0x21
	kind := decode.Message{Kind: 9, From: 1}
	frames := [][]byte{
		frame(t, &tagged, "hello"), // all are padded to 60 bytes, those aside that are cut
		frame(t, &plain, "hello"),
		frame(t, &decode.Message{Kind: decode.Broadcast, From: 3, To: 0xffff, SrcPort: 255, DstPort: 255}, ""),
		spoilt,
		cut[:18+20+3],
		version,
		frame(t, &kind, ""),
		cut[:18+10],
		append(cut[:18:18], unhex(t, goldenReply)...),
	}
	want := []string{
		"101|1|2|1|3|4||5|0x01020304|5|101|1|good|68656c6c6f|||",
		"101|1|1|1|7|9|2||0x01020304|5|||good|68656c6c6f|||",
		"101|1|3|3|255|255|||0x00000000|0|||good||||",
		"101|1|2|1|3|4||5|0x01020304|5|101|1|bad|69656c6c6f|Bad checksum||",
		"101|1|1|1|7|9|2||0x01020304|5||||68656c|The payload is cut off||",
		"101|2|1||||||||||||Another version of the wire format||",
		"101|1|9|1|0|0|0||0x00000000|0|||good||Unknown kind||",
		"101||||||||||||||Shorter than a header||",
		"101|1|5|2|0|0|1||0x00000001|16|101|1|good|00000007080000002065000001020304||7|0x2065",
	}
	out, err := exec.Command(tshark, "-r", write(t, frames), "-X", "lua_script:"+filepath.Join("..", "..", "docs", "rawlane.lua"),
		"-T", "fields", "-E", "separator=|", "-e", "vlan.id", "-e", "rawlane.version", "-e", "rawlane.kind", "-e", "rawlane.from",
		"-e", "rawlane.src_port", "-e", "rawlane.dst_port", "-e", "rawlane.to", "-e", "rawlane.group", "-e", "rawlane.cluster",
		"-e", "rawlane.length", "-e", "rawlane.vid", "-e", "rawlane.pcp", "-e", "rawlane.checksum.status", "-e", "rawlane.payload",
		"-e", "_ws.expert.message", "-e", "rawlane.probe.number", "-e", "rawlane.probe.received_tci").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), out)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

func write(t *testing.T, frames [][]byte) (path string) {
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
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(f), Length: len(f)}
		if err := w.WritePacket(info, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
