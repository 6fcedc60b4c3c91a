package linktest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// closedCalls: after Close each call says ErrClosed, also where frames are still there to poll.
func closedCalls(t *testing.T, a, b transport.Link) {
	mac, mtu := a.MAC(), a.MTU()
	send(t, b, numbered(a.MAC(), 1))
	wantSomething(t, a)
	mustClose(t, a)

	n, err := a.Send([]transport.Frame{numbered(b.MAC(), 1)})
	wantClosed(t, "Send", err)
	if n != 0 {
		t.Errorf("Send after Close took %d frames", n)
	}
	n, err = a.Poll(make([]transport.Frame, 4))
	wantClosed(t, "Poll", err)
	if n != 0 {
		t.Errorf("Poll after Close returned %d frames", n)
	}
	wantClosed(t, "Wait", a.Wait(context.Background()))
	if j, ok := transport.As[transport.Joiner](a); ok {
		wantClosed(t, "Join", j.Join(group))
		wantClosed(t, "Leave", j.Leave(group))
	}
	if q, ok := transport.As[transport.WakeupMasker](a); ok {
		q.MaskWakeups(true)
		q.MaskWakeups(false)
	}
	if a.MAC() != mac || a.MTU() != mtu {
		t.Errorf("after Close: MAC %v MTU %d, before: %v %d", a.MAC(), a.MTU(), mac, mtu)
	}
	a.Counters()
}

func closeTwice(t *testing.T, a, _ transport.Link) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { mustClose(t, a) })
	}
	wg.Wait()
	mustClose(t, a)
}

// closeUnderTraffic: Close at any moment lets senders, the poller and the waiter go, with
// ErrClosed.
func closeUnderTraffic(t *testing.T, a, b transport.Link) {
	var wg sync.WaitGroup
	started := make(chan struct{}, 3)
	until := func(what string, call func() error) {
		wg.Go(func() {
			err := call()
			started <- struct{}{}
			for err == nil || errors.Is(err, transport.ErrBusy) {
				err = call()
			}
			wantClosed(t, what, err)
		})
	}
	out, in := numberedBatch(b.MAC(), 0, 4), make([]transport.Frame, 4)
	until("Send in progress", func() error { _, err := a.Send(out); return err })
	until("Poll in progress", func() error { _, err := a.Poll(in); return err })
	until("Wait in progress", func() error {
		a.Counters()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		err := a.Wait(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		return err
	})
	for range 3 {
		<-started
	}
	mustClose(t, a)
	wg.Wait()
}

// closedPeer: to a sender, a link that was closed is an unplugged station: frames to it are lost,
// and nothing is held up. So many frames do not fit into any queue that is left behind.
func closedPeer(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, 4)...)
	mustClose(t, b)
	batch := numberedBatch(b.MAC(), 0, batchFrames)
	for range 100 {
		send(t, a, batch...)
		send(t, a, numbered(transport.Broadcast, 1))
	}
}
