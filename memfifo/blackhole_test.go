package memfifo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A path that loses long frames, as a switch without jumbo frames does, ends a long Put with
// ErrPeerDown and its cause, though the peer answers. Short operations go on afterwards.
func TestFailure_PathLosesLongFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := fault.Config{Loss: 1, Match: func(f *transport.Frame) bool { return len(f.Payload) > 1000 }}
		c := open(t, 2, -1, long, 1)
		w := c.window(t, 1, 100_000)
		r := c.domains[0].Remote(w.Key())
		begun := time.Now()
		err := errors.Join(r.Put(limit(t), 0, make([]byte, 100_000)), c.domains[0].Flush(limit(t)))
		took := time.Since(begun)
		var down *memfifo.PeerDownError
		if !errors.As(err, &down) || !errors.Is(err, memfifo.ErrPeerDown) || down.Reason != memfifo.DataLost {
			t.Fatalf("after %v: %v, want a PeerDownError with DataLost", took, err)
		}
		if !strings.Contains(err.Error(), "MTU") {
			t.Errorf("%q does not say what to look at", err)
		}
		if took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		_ = c.domains[0].Flush(limit(t)) // what was lost is reported once
		must(t, errors.Join(r.Put(limit(t), 0, make([]byte, 100)), c.domains[0].Flush(limit(t))))
	})
}

// Where this node itself cannot send, the error says so, and blames neither the node nor the path.
func TestFailure_NotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 1)
		w := c.window(t, 1, 100)
		r := c.domains[0].Remote(w.Key())
		must(t, errors.Join(r.Put(limit(t), 0, make([]byte, 100)), c.domains[0].Flush(limit(t))))
		nodes := c.eps[0].Nodes()
		must(t, c.eps[0].SetNodes(append(nodes[:1:1], nodes[2:]...))) // without node 1
		err := errors.Join(r.Put(limit(t), 0, make([]byte, 100)), c.domains[0].Flush(limit(t)))
		down, ok := errors.AsType[*memfifo.PeerDownError](err)
		if !ok || !errors.Is(down.NotSent, mcd.ErrUnknownNode) || !strings.Contains(err.Error(), "cannot be sent") {
			t.Errorf("%v, want a PeerDownError with what was not sent, and why", err)
		}
		must(t, c.eps[0].SetNodes(nodes))
		_ = c.domains[0].Flush(limit(t))
		must(t, errors.Join(r.Put(limit(t), 0, make([]byte, 100)), c.domains[0].Flush(limit(t))))
	})
}
