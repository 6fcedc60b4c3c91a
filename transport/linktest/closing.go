package linktest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// closedCalls: after Close each call returns ErrClosed, even if there are frames to poll.
func closedCalls(t *testing.T, a, b transport.Link) {
	mac, mtu := a.MAC(), a.MTU()
	send(t, b, numbered(a.MAC(), 1))
	wantSomething(t, a)
	for range 2 { // so that a call changes the count of joins alone
		mustJoin(t, a, group)
	}
	mustClose(t, a)

	n, err := a.Send([]transport.Frame{numbered(b.MAC(), 1)})
	wantClosed(t, "Send", err)
	m, err := a.Poll(make([]transport.Frame, 4))
	wantClosed(t, "Poll", err)
	_, err = a.Send(nil)
	wantClosed(t, "Send of no frames", err)
	_, err = a.Poll(nil)
	wantClosed(t, "Poll without room", err)
	if n != 0 || m != 0 {
		t.Errorf("after Close: Send took %d frames, Poll returned %d", n, m)
	}
	wantClosed(t, "Wait", a.Wait(context.Background()))
	if j, ok := transport.As[transport.Joiner](a); ok {
		wantClosed(t, "Join", j.Join(group))
		wantClosed(t, "Leave", j.Leave(group))
	}
	if m, ok := transport.As[transport.WakeupMasker](a); ok {
		m.MaskWakeups(true)
		m.MaskWakeups(false)
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

// closeUnderTraffic: Close at any moment ends calls in progress, with ErrClosed.
func closeUnderTraffic(t *testing.T, a, b transport.Link) {
	out, in := numberedBatch(b.MAC(), 0, 4), make([]transport.Frame, 4)
	calls := map[string]func() error{
		"Send": func() error { _, err := a.Send(out); return err },
		"Poll": func() error { _, err := a.Poll(in); return err },
		"Wait": func() error {
			a.Counters()
			ctx, cancel := context.WithTimeout(context.Background(), shortly)
			defer cancel()
			return a.Wait(ctx)
		},
	}
	var wg, started sync.WaitGroup
	started.Add(len(calls))
	for name, call := range calls {
		wg.Go(func() {
			err := call()
			started.Done()
			for err == nil || errors.Is(err, transport.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
				err = call()
			}
			wantClosed(t, name+" in progress", err)
		})
	}
	started.Wait()
	mustClose(t, a)
	wg.Wait()
}

// closedPeer: to a sender, a link that was closed is an unplugged station: frames to it are lost
// and stop nobody. These are more than fit into any queue that it may have left behind.
func closedPeer(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, 4)...)
	mustClose(t, b)
	batch := numberedBatch(b.MAC(), 0, batchFrames)
	for range 100 {
		send(t, a, batch...)
		send(t, a, numbered(transport.Broadcast, 1))
	}
}
