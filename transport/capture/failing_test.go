package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/fabric"
)

// full is a disk with room for so many bytes, and the file there.
type full struct {
	room int
	file bytes.Buffer
}

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return f.file.Write(b)
}

// frames counts those that are whole in the file.
func (f *full) frames(t *testing.T) (n uint64) {
	t.Helper()
	r, err := pcapgo.NewNgReader(&f.file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := r.ReadPacketData(); err != nil {
			return n
		}
		n++
	}
}

// A writer that fails does not disturb the traffic; each Close returns its error. What it had not
// taken of the frames before counts as lost.
func TestFailingWriter(t *testing.T) {
	disk := &full{room: 200_000}
	a, b, file := pair(t, disk)
	const rounds = 1000
	for range rounds {
		send(t, a, b)
	}
	for range 2 {
		if err := file.Close(); !errors.Is(err, errFull) {
			t.Errorf("Close: %v", err)
		}
	}
	c := file.Counts()
	if there := disk.frames(t); c.Captured != there || there == 0 {
		t.Errorf("%d frames are in the file, of %d captured", there, c.Captured)
	}
	if c.Lost == 0 || c.Captured+c.Lost != uint64(2*rounds*len(sample)) {
		t.Errorf("%+v", c)
	}
	if _, err := file.Wrap(a); !errors.Is(err, errFull) {
		t.Errorf("Wrap: %v", err)
	}
}

// That buffered frames cannot be written is returned by Close, also by that of a link with its own File.
func TestFailingFlush(t *testing.T) {
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	defer links[1].Close()
	l, err := capture.New(links[0], &full{})
	if err != nil {
		t.Fatal(err)
	}
	send(t, l, links[1])
	if err := l.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	} else if !strings.Contains(err.Error(), fmt.Sprintf("(0 frames recorded, %d not)", len(sample))) {
		t.Errorf("Close: %v, and nothing is in the file", err)
	}
	if _, err := links[0].Poll(nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the link inside was left open: %v", err)
	}
}

// After the File is closed the links go on, and frames are counted as lost.
func TestLinksOutliveTheirFile(t *testing.T) {
	var out bytes.Buffer
	a, b, file := pair(t, &out)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	size := out.Len()
	send(t, a, b)
	if c := file.Counts(); c.Captured != 0 || c.Lost != uint64(2*len(sample)) {
		t.Errorf("%+v", c)
	}
	if err := file.Flush(); err != nil || out.Len() != size {
		t.Errorf("Flush: %v; %d bytes written after Close", err, out.Len()-size)
	}
	if _, err := file.Wrap(a); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Wrap: %v", err)
	}
}
