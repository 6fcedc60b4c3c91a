package mpi

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// meanwhile is a link that calls a function in its next poll.
type meanwhile struct {
	transport.Link
	call func()
}

func (l *meanwhile) Poll(frames []transport.Frame) (int, error) {
	if call := l.call; call != nil {
		l.call = nil
		call()
	}
	return l.Link.Poll(frames)
}

// A long send polls for an offer. If its communicator is revoked in that poll, nothing is sent.
func TestSend_IsRevokedWhileItLooksForAnOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var link *meanwhile
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node != 0 {
					return l
				}
				link = &meanwhile{Link: l}
				return link
			},
		})
		w, err := Open(eps[0], Config{})
		other, err2 := Open(eps[1], Config{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		c := w.Comm()
		synctest.Wait() // nobody else polls now
		link.call = c.Revoke
		r := Isend(c, make([]byte, 100_000), 1, 0)
		if link.call != nil || !c.Revoked() {
			t.Error("the send has not polled")
		}
		if _, err := r.Wait(t.Context()); !errors.Is(err, ErrRevoked) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if n := w.Counters(); n.Requested != 0 || n.Eager != 0 || n.Written != 0 {
			t.Errorf("it was sent: %+v", n)
		}
		closeTwo(t, w, other)
	})
}
