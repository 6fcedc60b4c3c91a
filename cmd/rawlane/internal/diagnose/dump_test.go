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
		err := (&dumpVerb{out: bufio.NewWriter(io.Discard)}).print(bytes.NewReader(file.Bytes()[:file.Len()-lost]))
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
