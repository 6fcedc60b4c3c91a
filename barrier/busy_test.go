package barrier_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// busyLink is a link that has no room while busy says so.
type busyLink struct {
	transport.Link
	busy *atomic.Bool
}

func (l *busyLink) Send(frames []transport.Frame) (int, error) {
	if l.busy.Load() {
		return 0, transport.ErrBusy
	}
	return l.Link.Send(frames)
}

// A message for which the link has no room goes as soon as there is some: nobody has to ask for it.
// It is what it was, though other messages are made meanwhile.
func TestBarrier_LinkIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := new(atomic.Bool)
		c := new(cluster)
		c.start(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node == 0 {
					return &busyLink{l, busy}
				}
				return l
			},
		})
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})
		others := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute, ID: 1})
		busy.Store(true)
		var tickets []barrier.Ticket
		for k := range all {
			tickets = append(tickets, arrive(t, all[k], barrier.Options{}), arrive(t, others[k], barrier.Options{Number: 1}))
		}
		synctest.Wait()
		if done, _ := tickets[2].Done(); done {
			t.Error("node 1 did not wait for node 0")
		}
		busy.Store(false)
		begun := time.Now()
		for _, ticket := range tickets {
			if err := ticket.Wait(limit(t)); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took > time.Millisecond {
			t.Errorf("the barriers took %v once the link had room", took)
		}
	})
}
