//go:build linux && !rawlane_portable

package udp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/internal/testbed"
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

// A stamp of a frame that was under way when stamps were switched off comes later, and nobody takes
// it. It does not end each Wait from then on.
func TestStampFrames_OffWhileAFrameIsUnderWay(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	a, b := testbed.OpenPair(t, bed, func(name string) (*udp.Link, error) {
		return udp.OpenInterface(name, udp.Config{})
	})
	const rate, burst, tick = 100_000, 3000, 64 // bytes a second, bytes at once, ns
	err := bed.Node(0).Do(func() error {
		l, err := netlink.LinkByName(testbed.Interface(0))
		if err != nil {
			return err
		}
		at := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		return netlink.QdiscReplace(&netlink.Tbf{QdiscAttrs: at, Rate: rate, Limit: 1 << 20, Buffer: burst * 1e9 / rate / tick})
	})
	if err != nil {
		t.Skip("a slow line: ", err) // the kernel has no sch_tbf
	}
	if err := a.StampFrames(true); err != nil {
		t.Fatal(err)
	}
	large := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1400)}
	for range 4 {
		send(t, a, large) // together they would be a train, of one stamp
	}
	if err := a.StampFrames(false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	frames := make([]transport.Frame, 8)
	for came := 0; came < 4; {
		n, err := b.Poll(frames)
		if came += n; n == 0 && err == nil {
			err = b.Wait(ctx)
		}
		if err != nil {
			t.Fatalf("%d of 4 frames came: %v", came, err)
		}
	}
	for range 10 { // what a hears of b may end some
		if _, err := a.Poll(frames); err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		err := a.Wait(brief)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("each Wait ends, and nothing has come")
}
