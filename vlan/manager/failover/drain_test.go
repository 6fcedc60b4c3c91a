package failover_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/vlan/control"
)

// unplugged is a link whose interface is down.
type unplugged struct{ transport.Link }

func (unplugged) Send([]transport.Frame) (int, error) { return 0, transport.ErrInterfaceDown }

// A pair is taken back to the VID that it prefers also where the drain fails at once, as another
// interface of the node is down: the route has no override then, and nothing is told to be dead.
func TestADrainThatFailsChangesTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(k int) transport.Link { return unplugged{beside(k)} })
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

// deaf is a link whose network takes frames and delivers none.
type deaf struct{ transport.Link }

func (deaf) Send(frames []transport.Frame) (int, error) { return len(frames), nil }

// A drain that nobody answers takes no time from those of other peers, which wait for it, be it one
// of many.
func TestDrainsDoNotExpireInEachOthersTurn(t *testing.T) {
	const peers = 12
	synctest.Test(t, func(t *testing.T) {
		n := newNetworkOf(t, 1, peers, func(k int) transport.Link { return deaf{beside(k)} })
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
		n := newNetworkOf(t, 1, 40, func(k int) transport.Link { return deaf{beside(k)} })
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

// beside is a link of node k besides that of the network.
func beside(k int) transport.Link {
	l, _ := linktest.Pipe()
	return at{l, transport.MAC{2, 0xee, 0, 0, 0, byte(k)}}
}

// at is a link with another address.
type at struct {
	transport.Link
	mac transport.MAC
}

func (l at) MAC() transport.MAC { return l.mac }
