package rawnet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

// A node that is dead is down to who dials it, however short Config.PeerTimeout is, and not said to
// live.
func TestDial_ShortPeerTimeouts(t *testing.T) {
	for _, timeout := range []time.Duration{1, time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			bubble(t, options{cfg: rawnet.Config{PeerTimeout: timeout}}, func(t *testing.T, c *cluster) {
				c.faults[1].Cut(true)
				if _, err := c.nets[0].Dial("", "1:echo"); !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("%v, want ErrPeerDown", err)
				}
				c.faults[1].Cut(false)
			})
		})
	}
}
