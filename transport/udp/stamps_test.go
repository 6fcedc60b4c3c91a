//go:build linux && !rawlane_portable

package udp_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// Stamps lie between the call that sends a frame and the poll that returns it.
func TestLink_Stamps(t *testing.T) {
	kernellink.TestStamps(t, func(name string) (*udp.Link, error) { return udp.OpenInterface(name, udp.Config{}) })
}

// A link that is closed stamps nothing, and says so.
func TestStampFrames_AfterClose(t *testing.T) {
	l := open(t, 1, "127.0.0.1:0")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		if err := l.StampFrames(on); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%v: %v, want ErrClosed", on, err)
		}
	}
	if n := l.SentStamps(make([]transport.SentStamp, 1)); n != 0 {
		t.Errorf("%d stamps", n)
	}
}
