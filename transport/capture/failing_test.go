package capture_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/fabric"
)

// full is a disk with room for so many bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A writer that fails does not disturb the traffic; each Close returns its error.
func TestFailingWriter(t *testing.T) {
	a, b, file := pair(t, &full{room: 100_000})
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
	if c.Captured == 0 || c.Lost == 0 || c.Captured+c.Lost != uint64(2*rounds*len(sample)) {
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
