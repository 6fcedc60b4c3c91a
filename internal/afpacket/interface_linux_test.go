package afpacket_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// An interface that goes down ends waits and sends with an error that says so. Up again, the link works.
func TestInterfaceGoesDownAndComesBack(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		waited := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for {
				err := b.Wait(ctx)
				if err == nil {
					_, err = b.Poll(make([]transport.Frame, 1))
				}
				if err != nil {
					waited <- err
					return
				}
			}
		}()
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("Wait: %v", err)
		}
		frame := transport.Frame{Dst: a.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
		if _, err := b.Send([]transport.Frame{frame}); !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("Send: %v", err)
		}
		if err := bed.Node(1).SetUp(0, true); err != nil {
			t.Fatal(err)
		}
		// The kernel needs a moment to start the queues: send until it arrives.
		frame.Dst = b.MAC()
		arrived := make(chan struct{})
		go func() {
			for {
				_, _ = a.Send([]transport.Frame{frame}) // until it gets through
				select {
				case <-arrived:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		defer close(arrived)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			n, err := b.Poll(make([]transport.Frame, 1))
			if n == 1 && err == nil {
				break
			}
			if err := b.Wait(ctx); err != nil && ctx.Err() != nil {
				t.Fatal("nothing arrives after the interface has come back")
			}
		}
	})
}

// An interface that is removed ends a wait, and later ones say that it is gone.
func TestInterfaceVanishes(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		waited := make(chan error, 1)
		go func() { waited <- waitForError(ctx, b) }()
		if err := bed.Node(1).Remove(0); err != nil {
			t.Fatal(err)
		}
		// It goes down before it is removed, and the first wait may have seen that.
		if err := <-waited; !errors.Is(err, transport.ErrInterfaceDown) && !errors.Is(err, transport.ErrNoInterface) {
			t.Errorf("Wait in progress: %v", err)
		}
		for range 3 {
			if err := waitForError(ctx, b); !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), "eth0: wait: no such interface: it is gone") {
				t.Errorf("Wait: %v", err)
			}
			if n, err := b.Send([]transport.Frame{{Dst: a.MAC(), EtherType: transport.EtherTypeDefault}}); n != 0 || !errors.Is(err, transport.ErrNoInterface) {
				t.Errorf("Send: %d, %v", n, err)
			}
			if n, err := b.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
				t.Errorf("Poll: %d, %v", n, err)
			}
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// waitForError waits, again where a wait ends early, until an error.
func waitForError(ctx context.Context, l transport.Link) error {
	for {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		if _, err := l.Poll(make([]transport.Frame, 4)); err != nil {
			return err
		}
	}
}

// While the interface is down each wait says so, also one that begins after it went down.
func TestWaitWhileDown(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		b := open(1, settings{})
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for i := range 3 {
			if err := waitForError(ctx, b); !errors.Is(err, transport.ErrInterfaceDown) {
				t.Errorf("wait %d: %v", i, err)
			}
		}
	})
}

// Without a carrier frames are lost, as on an unplugged cable, and Send goes on. It may be busy until
// the kernel has noticed that the carrier is gone.
func TestNoCarrier(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		batch := make([]transport.Frame, 40)
		for i := range batch {
			batch[i] = transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
		}
		for give := time.Now().Add(patience); ; {
			n, err := a.Send(batch)
			if n == len(batch) && err == nil {
				break
			}
			if !errors.Is(err, transport.ErrBusy) || time.Now().After(give) {
				t.Fatalf("%d of %d sent: %v", n, len(batch), err)
			}
		}
		if n := a.Counters().RxFrames; n != 0 {
			t.Errorf("%d frames came from nowhere", n)
		}
	})
}

// A frame that fitted when the link was opened and fits no longer is refused with the reason.
func TestMTULowered(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		if err := bed.Node(0).SetMTU(0, 1000); err != nil {
			t.Fatal(err)
		}
		frame := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1400)}
		n, err := a.Send([]transport.Frame{frame})
		if n != 0 || !errors.Is(err, transport.ErrTooLarge) || !strings.Contains(err.Error(), "MTU") {
			t.Errorf("%d, %v; want ErrTooLarge, and the MTU named", n, err)
		}
		frame.Payload = frame.Payload[:900]
		send(t, a, frame)
		testbed.Receive(t, b, 1)
	})
}

// Trains meet no such error, whatever their segments: the link looks at the MTU at each offer, and
// their frames go as they are, and meet it.
func TestMTULowered_WithTrains(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		if err := bed.Node(0).SetMTU(0, 1000); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for { // the next offer is due in a quarter of a second
			n, err := a.Send(series(b, 0, 20, 1400))
			if errors.Is(err, transport.ErrTooLarge) && n == 0 && strings.Contains(err.Error(), "MTU") {
				break
			}
			if ctx.Err() != nil || err != nil && !errors.Is(err, transport.ErrBusy) {
				t.Fatalf("%d, %v; want ErrTooLarge, and the MTU named", n, err)
			}
			drain(t, a) // the answers to earlier offers
		}
		send(t, a, series(b, 0, 20, 900)...)
	})
}

// A frame longer than the link's memory for one, as the MTU was raised since, is not handed out in
// part: it counts as malformed.
func TestMTURaised(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		b := open(1, settings{})
		for node := range 2 {
			if err := bed.Node(node).SetMTU(0, 9000); err != nil {
				t.Fatal(err)
			}
		}
		a := open(0, settings{})
		frame := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 9000)}
		short := frame
		short.Payload = []byte("short")
		send(t, a, frame, short)
		if got := testbed.Receive(t, b, 1)[0]; !bytes.HasPrefix(got.Payload, short.Payload) {
			t.Errorf("got %d bytes, want the short frame alone", len(got.Payload))
		}
		if c := b.Counters(); c.RxMalformed != 1 || c.RxFrames != 1 {
			t.Errorf("%+v, want one malformed and one frame", c)
		}
	})
}

// One frame ends all waits: there is something to poll for each of them.
func TestSeveralWait(t *testing.T) {
	eachLink(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		const waiters = 4
		started, ended := make(chan struct{}), make(chan error, waiters)
		for range waiters {
			go func() {
				started <- struct{}{}
				ended <- b.Wait(ctx)
			}()
		}
		for range waiters {
			<-started
		}
		for range 100 {
			runtime.Gosched() // most likely they sleep after this; it must be right either way
		}
		send(t, a, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault})
		for i := range waiters {
			if err := <-ended; err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		}
		if n := len(testbed.Receive(t, b, 1)); n != 1 {
			t.Errorf("%d frames", n)
		}
	})
}

// A wait that is cancelled ends while others go on, whichever of them came first.
func TestOneOfSeveralWaitsIsCancelled(t *testing.T) {
	eachLink(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		l := open(0, settings{})
		others := make(chan error, 4)
		for range cap(others) {
			go func() { others <- waitForError(context.Background(), l) }()
		}
		within(t, "a cancelled Wait", func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- waitForError(ctx, l) }()
				for range i {
					runtime.Gosched() // so that it is met in many states
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want context.Canceled", err)
				}
			}
		})
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for range cap(others) {
			if err := <-others; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("one that was not cancelled: %v, want ErrClosed", err)
			}
		}
	})
}

// An interface that was moved to another namespace and back is up, but the kernel has detached the
// link's socket from it: waits say that it is gone, and do not hang.
func TestInterfaceMovesAwayAndBack(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		b := open(1, settings{})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		elsewhere := testbed.ForTest(t, testbed.Config{Nodes: 1}).Node(0)
		// Without one there, the interface keeps its name and index.
		if err := elsewhere.Remove(0); err != nil {
			t.Fatal(err)
		}
		if err := bed.Node(1).Move(0, elsewhere); err != nil {
			t.Fatal(err)
		}
		if err := elsewhere.Move(0, bed.Node(1)); err != nil {
			t.Fatal(err)
		}
		for {
			err := waitForError(ctx, b)
			if errors.Is(err, transport.ErrNoInterface) {
				return
			}
			if !errors.Is(err, transport.ErrInterfaceDown) { // the first wait may have seen it go down
				t.Fatal(err)
			}
		}
	})
}

// An interface that was given another address no longer receives what the link waits for: waits say
// so. Most drivers want it down for that, and so does this test.
func TestInterfaceGetsAnotherAddress(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		b := open(1, settings{})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		err := bed.Node(1).Do(func() error {
			eth0, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetHardwareAddr(eth0, transport.MAC{2, 0, 0, 0, 7, 7}.HardwareAddr())
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := waitForError(ctx, b); !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("while it is down: %v", err)
		}
		if err := bed.Node(1).SetUp(0, true); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := waitForError(ctx, b); !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), "its address was changed") {
				t.Errorf("up with another address: %v", err)
			}
		}
	})
}
