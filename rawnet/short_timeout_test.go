package rawnet_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

// A Read that waits hears of its node's death within Config.PeerTimeout and a half, or 0.6 s, however
// long the connection was idle before.
func TestRead_HearsOfADeath(t *testing.T) {
	for _, timeout := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, time.Minute} {
		for _, idle := range []time.Duration{0, 77 * time.Millisecond, 777 * time.Millisecond, 10 * time.Second} {
			bubble(t, options{cfg: rawnet.Config{PeerTimeout: timeout}}, func(t *testing.T, c *cluster) {
				a, _ := c.pair(t, "x")
				time.Sleep(idle)
				c.faults[1].Cut(true)
				begun := time.Now()
				_, err := a.Read(make([]byte, 1))
				most := max(timeout*3/2, 600*time.Millisecond)
				if took := time.Since(begun); !errors.Is(err, syscall.ECONNRESET) || took > most {
					t.Errorf("a timeout of %v, idle for %v: %v after %v, want ECONNRESET within %v", timeout, idle, err, took, most)
				}
				c.faults[1].Cut(false)
			})
		}
	}
}

// A node that is dead is down to who dials it, however short Config.PeerTimeout is, and not said to
// live.
func TestDial_ShortPeerTimeouts(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, time.Second} {
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
