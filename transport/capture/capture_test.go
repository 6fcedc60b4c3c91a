package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
)

// pair is two links on a switch, both recorded in one file.
func pair(t testing.TB, w io.Writer) (a, b *capture.Link, file *capture.File) {
	t.Helper()
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	file = capture.NewFile(w)
	if a, err = file.Wrap(links[0]); err != nil {
		t.Fatal(err)
	}
	if b, err = file.Wrap(links[1]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b, file
}

func TestLink(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
		a, b, _ := pair(t, io.Discard)
		return a, b
	})
}

var sample = []transport.Frame{
	{EtherType: transport.EtherTypeDefault, Payload: []byte("untagged")},
	{EtherType: transport.EtherTypeDefault, OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 5, DEI: true}), Payload: []byte("tagged")},
	{EtherType: transport.EtherTypeDefault, OptionalTag: transport.Tagged(transport.Tag{}), Payload: []byte("priority tag")},
}

// send has a send the samples to b, and b receive them.
func send(t testing.TB, a, b transport.Link) {
	t.Helper()
	for _, f := range sample {
		f.Dst = b.MAC()
		if _, err := a.Send([]transport.Frame{f}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]transport.Frame, len(sample))
	if n, err := b.Poll(got); n != len(sample) || err != nil {
		t.Fatal(n, err)
	}
}

// recorded reads a capture back, a line per frame.
func recorded(t *testing.T, r io.Reader) (lines []string) {
	t.Helper()
	ng, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := ng.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := ng.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		payload, tag := eth.Payload, ""
		if v, ok := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok {
			payload, tag = v.Payload, fmt.Sprintf(" VID %d PCP %d DEI %v", v.VLANIdentifier, v.Priority, v.DropEligible)
		}
		lines = append(lines, fmt.Sprintf("%s: %v > %v%s %q", i.Description, eth.SrcMAC, eth.DstMAC, tag, bytes.TrimRight(payload, "\x00")))
	}
}

func TestFramesAreRecordedWhole(t *testing.T) {
	var out bytes.Buffer
	a, b, file := pair(t, &out)
	send(t, a, b)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, by := range []transport.Link{a, b} {
		for _, text := range []string{`"untagged"`, `VID 101 PCP 5 DEI true "tagged"`, `VID 0 PCP 0 DEI false "priority tag"`} {
			want = append(want, fmt.Sprintf("%v: %v > %v %s", by.MAC(), a.MAC(), b.MAC(), text))
		}
	}
	if got := recorded(t, &out); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c := file.Counts(); c.Captured != 6 || c.Lost != 0 {
		t.Errorf("%+v", c)
	}
}

// Of a batch that is refused half-way, the frames that were sent are recorded.
func TestRefusedFramesAreNotRecorded(t *testing.T) {
	a, b, file := pair(t, io.Discard)
	frame := transport.Frame{Dst: b.MAC(), EtherType: 0x88b5, Payload: make([]byte, 60)}
	large := frame
	large.Payload = make([]byte, a.MTU()+1)
	if n, err := a.Send([]transport.Frame{frame, large, frame}); n != 1 || !errors.Is(err, transport.ErrTooLarge) {
		t.Fatal(n, err)
	}
	if n, err := b.Poll(make([]transport.Frame, 8)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if c := file.Counts(); c.Captured != 2 {
		t.Errorf("%+v, want 2: one sent, one received", c)
	}
}

// A File that New has made is closed with its link.
func TestNewClosesItsFile(t *testing.T) {
	var out bytes.Buffer
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	defer links[1].Close()
	l, err := capture.New(links[0], &out)
	if err != nil {
		t.Fatal(err)
	}
	send(t, l, links[1])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := recorded(t, &out); len(got) != len(sample) {
		t.Errorf("%d frames", len(got))
	}
}

// SnapLen cuts what is recorded, not the traffic, and the capture has the full lengths.
func TestSnapLen(t *testing.T) {
	var out bytes.Buffer
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	defer links[1].Close()
	file := capture.NewFile(&out)
	file.SnapLen = 24
	l, err := file.Wrap(links[0])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	long := transport.Frame{Dst: links[1].MAC(), EtherType: 0x88b5, OptionalTag: transport.Tagged(transport.Tag{VID: 7}), Payload: bytes.Repeat([]byte("x"), 100)}
	short := transport.Frame{Dst: links[1].MAC(), EtherType: 0x88b5, Payload: []byte("y")}
	if _, err := l.Send([]transport.Frame{long, short}); err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Frame, 2)
	if n, err := links[1].Poll(in); n != 2 || err != nil || !bytes.Equal(in[0].Payload, long.Payload) {
		t.Errorf("received %d frames, %v, %d bytes", n, err, len(in[0].Payload))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgReader(&out, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ captured, length int }{{24, 118}, {15, 15}} {
		data, info, err := ng.ReadPacketData()
		if err != nil || len(data) != want.captured || info.Length != want.length {
			t.Errorf("%d bytes of %d, %v; want %d of %d", len(data), info.Length, err, want.captured, want.length)
		}
	}
	if i, err := ng.Interface(0); err != nil || i.SnapLength != 24 {
		t.Errorf("interface %+v, %v", i, err)
	}
}

// Timestamps are the time of day in nanoseconds, and do not run backwards while several links write.
func TestTimestamps(t *testing.T) {
	var out bytes.Buffer
	a, b, file := pair(t, &out)
	start := time.Now().Round(0)
	var wg sync.WaitGroup
	const each = 200
	for _, l := range []transport.Link{a, a, b, b} {
		wg.Go(func() {
			for i := range each {
				f := transport.Frame{Dst: transport.MAC{2, 0xff}, EtherType: 0x88b5, Payload: make([]byte, i)}
				if _, err := l.Send([]transport.Frame{f}); err != nil && !errors.Is(err, transport.ErrBusy) {
					t.Error(err)
				}
				_ = file.Counts()
			}
		})
	}
	wg.Wait()
	end := time.Now().Round(0)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgReader(&out, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	last, frames, fine := start, uint64(0), false
	for {
		_, info, err := ng.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Timestamp.Before(last) || info.Timestamp.After(end) {
			t.Fatalf("frame %d at %v, after one at %v; the test ended at %v", frames, info.Timestamp, last, end)
		}
		last, fine = info.Timestamp, fine || info.Timestamp.Nanosecond()%1000 != 0
		frames++
	}
	if c := file.Counts(); frames != c.Captured || frames == 0 || !fine {
		t.Errorf("%d frames in the file, %+v, nanoseconds %v", frames, c, fine)
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	a, b, _ := pair(t, io.Discard)
	frames := []transport.Frame{{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 100)}}
	in := make([]transport.Frame, 1)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Send(frames); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Poll(in); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestWiresharkOpensIt(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "run.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, b, file := pair(t, f)
	send(t, a, b)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", f.Name(), "-T", "fields", "-E", "separator=|", "-e", "frame.interface_name",
		"-e", "eth.src", "-e", "vlan.id", "-e", "vlan.priority").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, l := range []transport.Link{a, b} {
		for _, tag := range []string{"|", "101|5", "0|0"} {
			fmt.Fprintf(&want, "%s|%v|%s\n", transport.Name(l), a.MAC(), tag)
		}
	}
	if string(out) != want.String() {
		t.Errorf("got\n%swant\n%s", out, want.String())
	}
}

func Example() {
	links, _ := fabric.Links(2)
	var out bytes.Buffer // or a file
	link, err := capture.New(links[0], &out)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = link.Send([]transport.Frame{{Dst: links[1].MAC(), EtherType: 0x88b5, Payload: []byte("hello")}})
	err = link.Close() // finishes the capture
	fmt.Println(link.File().Counts(), err)
	// Output: {1 0} <nil>
}
