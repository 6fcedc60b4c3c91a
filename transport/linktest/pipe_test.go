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
