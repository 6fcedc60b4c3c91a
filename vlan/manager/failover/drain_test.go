package failover_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
)

// undrained is a link that does not carry the probes of drains: they end with the error, or get lost
// if it is nil. Those of the failover, which have a body, go.
type undrained struct {
	transport.Link
	err error
}

func (l undrained) Send(frames []transport.Frame) (int, error) {
	const probe, head = 4, 20
	if f := &frames[0]; f.Payload[0]&0xf != probe || len(f.Payload) > head+mcd.MinProbe {
		return l.Link.Send(frames)
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(frames), nil
}

// A pair is taken back to the VID that it prefers also where the drain fails at once: the route has
// no override then, and nothing is told to be dead.
func TestADrainThatFailsChangesTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, refusesDrains)
		n.cutAndMend(t)
		time.Sleep(3 * watched.WaitToRestore)
		n.expectVIDs(t, 1)
		moved := n.moves.take()
		if len(moved) != 8 {
			t.Errorf("%d moves back, want 8: %v", len(moved), moved)
		}
		for _, m := range moved {
			if !m.Drained || m.Reason == control.MoveMissed || !errors.Is(m.Err, transport.ErrInterfaceDown) {
				t.Errorf("%v: drained %v, %v", m, m.Drained, m.Err)
			}
		}
	})
}

func refusesDrains(l transport.Link) transport.Link { return undrained{l, transport.ErrInterfaceDown} }
func losesDrains(l transport.Link) transport.Link   { return undrained{l, nil} }

// A drain that nobody answers takes no time from those of other peers, which wait for it, be it one
// of many.
func TestDrainsDoNotExpireInEachOthersTurn(t *testing.T) {
	const peers = 12
	synctest.Test(t, func(t *testing.T) {
		n := newNetworkOf(t, 1, peers, losesDrains)
		n.cutAndMend(t)
		time.Sleep(3 * watched.WaitToRestore)
		n.expectVIDs(t, 1)
		moved := n.moves.take()
		if want := 2 * peers; len(moved) != want {
			t.Errorf("%d moves back, want %d: %v", len(moved), want, moved)
		}
		for _, m := range moved {
			var silent *mcd.NoAnswerError
			if !errors.As(m.Err, &silent) || silent.Silent != 200*time.Millisecond {
				t.Errorf("%v: want that its own drain has waited for 200 ms", m)
			}
		}
	})
}

// A pair whose old VID is given up while its move waits for its drain's turn is moved at once.
func TestDrainsOfAVIDThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetworkOf(t, 1, 40, losesDrains)
		n.cutAndMend(t)
		for len(n.moves.take()) == 0 { // they begin to go back to VID 1, one behind the other
			time.Sleep(time.Millisecond)
		}
		n.cables[0][1].SetUp(false)
		time.Sleep(2 * settle)
		n.expectVIDs(t, 1)
	})
}

// cutAndMend has pairs be watched, and move to VID 2, as a cable is cut that carries VID 1, and
// mends that: they go back to VID 1 from now on.
func (n *network) cutAndMend(t *testing.T) {
	t.Helper()
	n.watch(t)
	time.Sleep(3 * time.Second)
	n.cables[0][0].SetUp(false)
	time.Sleep(settle)
	n.expectVIDs(t, 2)
	n.moves.take()
	n.cables[0][0].SetUp(true)
}

// While the program drains for changes of its own, each of which takes a second, pairs wait for their
// drains' turn to be taken back, and none goes without.
func TestDrainsAwaitThoseOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetworkOf(t, 1, 2)
		n.cutAndMend(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			slow := func() error { time.Sleep(time.Second); return nil }
			for ctx.Err() == nil {
				if err := n.eps[0].Drain(t.Context(), slow, 1); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		time.Sleep(3*watched.WaitToRestore + 3*time.Second)
		cancel()
		<-ended
		n.expectVIDs(t, 1)
		moved := n.moves.take()
		if len(moved) != 4 {
			t.Errorf("%d moves back, want 4: %v", len(moved), moved)
		}
		for _, m := range moved {
			if !m.Drained || m.Err != nil {
				t.Errorf("%v: drained %v, want it behind a drain", m, m.Drained)
			}
		}
	})
}

// A pair whose old VID is given up while the program drains is moved at once.
func TestDrainsOfAVIDThatIsGivenUpWhileTheProgramDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetworkOf(t, 1, 1)
		n.cutAndMend(t)
		for _, ep := range n.eps {
			go func() { _ = ep.Drain(t.Context(), func() error { time.Sleep(time.Minute); return nil }) }()
		}
		time.Sleep(3 * watched.WaitToRestore)
		n.expectVIDs(t, 2)
		n.cables[0][1].SetUp(false)
		time.Sleep(2 * settle)
		n.expectVIDs(t, 1)
		for _, m := range n.moves.take() {
			if m.Drained || m.Err != nil {
				t.Errorf("%v: drained %v, want it without", m, m.Drained)
			}
		}
		time.Sleep(time.Minute) // the drains end
	})
}
