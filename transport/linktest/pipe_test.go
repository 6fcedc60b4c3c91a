package linktest_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// A frame that no Ethernet would take does not arrive cut off.
func TestPipe_TakesWhatALinkTakes(t *testing.T) {
	a, b := linktest.Pipe()
	n, err := a.Send([]transport.Frame{{Dst: b.MAC(), Payload: make([]byte, linktest.PipeMTU)}, {Dst: b.MAC(), Payload: make([]byte, linktest.PipeMTU+1)}})
	if n != 1 || !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("%d taken, %v", n, err)
	}
	var got [4]transport.Frame
	if n, err := b.Poll(got[:]); n != 1 || err != nil || len(got[0].Payload) != linktest.PipeMTU || got[0].Src != a.MAC() {
		t.Errorf("%d arrived: %+v, %v", n, got[0], err)
	}
}

// The end that was closed says so, and takes and gives nothing more.
func TestPipe_AfterClose(t *testing.T) {
	a, b := linktest.Pipe()
	if _, err := b.Send([]transport.Frame{{Dst: a.MAC(), Payload: make([]byte, 60)}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got [1]transport.Frame
	if n, err := a.Poll(got[:]); n != 0 || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Poll: %d, %v", n, err)
	}
	if n, err := a.Send([]transport.Frame{{Dst: b.MAC(), Payload: make([]byte, 60)}}); n != 0 || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send: %d, %v", n, err)
	}
	if err := a.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
}
