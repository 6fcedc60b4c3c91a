package memfifo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// A peer acknowledges a request, and then dies, restarts or leaves before it replies. Nothing else
// is under way: the domain has to probe.
func TestFailure_BetweenACallAndItsAnswer(t *testing.T) {
	for _, x := range []struct {
		name     string
		becomes  func(r *raw)
		want     error
		from, to time.Duration
	}{
		{"it dies", func(r *raw) { _ = r.port.Close() }, ErrPeerDown, DefaultPeerTimeout, 3 * DefaultPeerTimeout / 2},
		{"it restarts", func(r *raw) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.begin()
		}, ErrPeerDown, 0, DefaultPeerTimeout},
		{"it leaves", func(r *raw) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.conn.Close()
			r.pump()
		}, ErrPeerDown, 0, 20 * time.Millisecond},
		{"it takes its time", func(r *raw) {
			go func() {
				time.Sleep(10 * DefaultPeerTimeout)
				r.say(reliable.Replies, rec(opValue, 0, uint32(1), uint64(5)))
			}()
		}, nil, 10 * DefaultPeerTimeout, 11 * DefaultPeerTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, r := openRaw(t)
			begun := time.Now()
			ended := make(chan error, 1)
			go func() {
				_, err := d.Remote(Key{Node: 1}).FetchAdd(context.Background(), 0, 1)
				ended <- err
			}()
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
			if d.mu.Lock(); !d.peers[1].conn.AllAcked(reliable.Requests) {
				t.Errorf("%s: the call is not acknowledged", x.name)
			}
			d.mu.Unlock()
			x.becomes(r)
			select {
			case err := <-ended:
				if took := time.Since(begun); !errors.Is(err, x.want) || took < x.from || took > x.to {
					t.Errorf("%s: %v, after %v", x.name, err, took)
				}
			case <-time.After(time.Hour):
				t.Errorf("%s: nothing for an hour", x.name)
			}
			if n := d.Counters().Sent; n > 60 {
				t.Errorf("%s: %d frames", x.name, n)
			}
		})
	}
}
