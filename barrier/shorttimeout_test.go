package barrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/transport/fault"
)

// The shortest timeout that is taken ends a wait for a member that is gone.
func TestGroup_ShortestPeerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		g := group(t, c.services[0], barrier.GroupConfig{PeerTimeout: time.Millisecond})
		_ = c.eps[1].Close()
		downOf(t, g.Barrier(limit(t)))
	})
}
