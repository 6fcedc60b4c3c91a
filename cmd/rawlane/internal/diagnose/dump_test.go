package diagnose

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// What --capture wrote, dump prints: every ping and its echo, under the tag that they were sent
// with.
func TestCaptureAndDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pcapng")
	if _, errs, status := command(t, "bench", "latency", "--size", "64", "--iters", "20", "--vid", "5", "--pcp", "3", "--capture", file); status != cli.ExitDone {
		t.Fatalf("status %d: %s", status, errs)
	}
	out, errs, status := command(t, "dump", file)
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	const rounds = 20 // and those that warm up
	for _, want := range []string{"0:200 -> 1:200 unicast cluster 0x1 64 bytes sent with VID 5 PCP 3", "1:200 -> 0:200 unicast cluster 0x1 64 bytes sent with VID 5 PCP 3"} {
		if n := strings.Count(out, " VID 5 PCP 3: "+want); n < rounds {
			t.Errorf("%d times %q, want %d or more", n, want, rounds)
		}
	}
	if !strings.Contains(out, " 0 of them faulty; 0 other frames\n") {
		t.Errorf("the last line: %s", out[len(out)-80:])
	}
	out, _, _ = command(t, "dump", file, "--json", "--payload", "4")
	var r struct {
		Frame   int
		Tags    []dumpTag
		Message *struct{}
	}
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &r); err != nil || r.Frame != 1 || r.Message == nil || fmt.Sprint(r.Tags) != "[{5 3 false}]" {
		t.Errorf("%+v, %v", r, err)
	}

	// A file that is cut off is printed as far as it goes, and said to be.
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, status = command(t, "dump", file)
	if status != cli.ExitFailed || !strings.Contains(out, "0:200 -> 1:200") || !strings.Contains(errs, "is the file cut off?") {
		t.Errorf("cut off: status %d: %s", status, errs)
	}
}

// --capture writes what passes node 0's NICs: each is an interface of the file.
func TestCapture_OfAllNICs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pcapng")
	if _, errs, status := command(t, "bench", "barrier", "--nics", "2", "--iters", "5", "--algo", "redundant:2:concurrent", "--capture", file); status != cli.ExitDone {
		t.Fatalf("status %d: %s", status, errs)
	}
	out, errs, status := command(t, "dump", file, "--json")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	for _, nic := range []string{`"interface":0,`, `"interface":1,`} {
		if n := strings.Count(out, nic); n < 10 {
			t.Errorf("%d frames of %s, want 10 or more", n, nic)
		}
	}
}

// A pcap file that is cut off anywhere within a frame is said to be, also where the frame's bytes were
// to begin.
func TestDump_CutOff(t *testing.T) {
	frame := make([]byte, 60)
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := errors.Join(w.WriteFileHeader(1500, layers.LinkTypeEthernet),
		w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(frame), Length: len(frame)}, frame)); err != nil {
		t.Fatal(err)
	}
	for lost := range file.Len() - 24 { // of the file's header nothing
		err := (&dumpVerb{etherType: uint16(transport.EtherTypeDefault), out: bufio.NewWriter(io.Discard)}).print(bytes.NewReader(file.Bytes()[:file.Len()-lost]))
		if isCut := err != nil && strings.Contains(err.Error(), "is the file cut off?"); isCut != (lost > 0) {
			t.Errorf("without the last %d bytes: %v", lost, err)
		}
	}
}

// What keeps a file from being read is said.
func TestDump_CannotBeRead(t *testing.T) {
	_, errs, status := command(t, "dump", t.TempDir())
	if status != cli.ExitFailed || !strings.Contains(errs, "is a directory") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// What a capture has in part, as one of tcpdump -s 60, no node would drop for that. What is wrong with
// the rest is still told.
func TestDump_CapturedInPart(t *testing.T) {
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{},
		&layers.Ethernet{SrcMAC: []byte{2, 5: 1}, DstMAC: []byte{2, 5: 2}, EthernetType: layers.EthernetType(transport.EtherTypeDefault)},
		&decode.Message{Kind: decode.Unicast, To: 1, SrcPort: 200, DstPort: 200, Cluster: 1}, gopacket.Payload(make([]byte, 184)))
	must(t, err)
	frame := b.Bytes()
	otherVersion := bytes.Clone(frame)
	otherVersion[14] = 0xf0
	for _, c := range []struct {
		frame  []byte
		cut    bool
		says   string
		faulty int
		want   dumpRecord
	}{
		{frame, false, "184 bytes \"", 0, dumpRecord{Bytes: 218}},
		{frame[:60], true, "184 bytes [captured in part (60 of 218 bytes)] \"\\x00", 0, dumpRecord{Bytes: 218, Captured: 60}},
		{frame[:30], true, ": captured in part (30 of 218 bytes)\n", 0, dumpRecord{Bytes: 218, Captured: 30}},
		{frame[:60], false, "[a node would drop this frame: length]", 1,
			dumpRecord{Bytes: 60, Fault: "a node would drop this frame: length"}},
		{otherVersion[:60], true, "[a node would drop this frame: version]", 1,
			dumpRecord{Bytes: 218, Fault: "a node would drop this frame: version"}},
	} {
		info := gopacket.CaptureInfo{CaptureLength: len(c.frame), Length: len(c.frame)}
		if c.cut {
			info.Length = len(frame)
		}
		var file, text, object bytes.Buffer
		w := pcapgo.NewWriter(&file)
		must(t, errors.Join(w.WriteFileHeader(1500, layers.LinkTypeEthernet), w.WritePacket(info, c.frame)))
		for out, asJSON := range map[*bytes.Buffer]bool{&text: false, &object: true} {
			d := &dumpVerb{etherType: uint16(transport.EtherTypeDefault), out: bufio.NewWriter(out), json: asJSON, payload: 16}
			must(t, errors.Join(d.print(bytes.NewReader(file.Bytes())), d.out.Flush()))
		}
		sum := fmt.Sprintf("\n1 messages, %d of them faulty; 0 other frames\n", c.faulty)
		if !strings.Contains(text.String(), c.says) || !strings.HasSuffix(text.String(), sum) {
			t.Errorf("printed %s, want %s and %s", &text, c.says, sum)
		}
		var r dumpRecord
		must(t, json.Unmarshal(object.Bytes(), &r))
		if r.Bytes != c.want.Bytes || r.Captured != c.want.Captured || r.Fault != c.want.Fault {
			t.Errorf("%s, want %+v", &object, c.want)
		}
	}
}
