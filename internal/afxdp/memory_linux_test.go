package afxdp

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
)

// Each receive queue has memory of its own: what one socket may lock, several may not.
func TestFits(t *testing.T) {
	const chunk, slots = 2048, 1024
	one := uint64(chunk * slots)
	two := 2*one + chunk*xsk.SendFrames // the first one sends, too
	for _, c := range []struct {
		queues int
		limit  uint64
		ok     bool
	}{{1, two, true}, {2, two, true}, {2, two - 1, false}, {3, two, false}, {64, ^uint64(0), true}, {1, 0, false}} {
		err := fits(c.queues, chunk, slots, c.limit)
		if (err == nil) != c.ok || err != nil && !(errors.Is(err, errMemory) && errors.Is(err, unix.ENOBUFS)) {
			t.Errorf("%d queues, %d bytes: %v", c.queues, c.limit, err)
		}
	}
}
