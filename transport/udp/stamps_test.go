//go:build linux && !rawlane_portable

package udp_test

import (
	"context"
	"errors"
	"testing"
	"time"

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

// Stamps that nobody took end no Wait, and are not those of later frames, once they are switched
// off.
func TestStampFrames_OffForgetsThoseThatNobodyTook(t *testing.T) {
	l, other := open(t, 1, "127.0.0.1:0"), open(t, 2, "127.0.0.1:0")
	if err := l.AddStation(udp.Station{Addr: other.Addr().String(), MAC: other.MAC()}); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		if err := l.StampFrames(on); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Send([]transport.Frame{{Dst: other.MAC(), Payload: make([]byte, 46)}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v, want the context's error", err)
	}
	if n := l.SentStamps(make([]transport.SentStamp, 4)); n != 0 {
		t.Errorf("%d stamps", n)
	}
}
