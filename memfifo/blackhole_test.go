package memfifo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
