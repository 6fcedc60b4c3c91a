package mpi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// A program that waits for one request after the other comes to an end also where the endpoint was
// closed before the world: each has ErrClosed.
func TestEndpointClosed_EndsRequests(t *testing.T) {
	for name, next := range map[string]func(rs []*Request) ([]int, error){
		"any": func(rs []*Request) ([]int, error) {
			k, _, err := WaitAny(context.Background(), rs...)
			return []int{k}, err
		},
		"some": func(rs []*Request) ([]int, error) { return WaitSome(context.Background(), rs...) },
		"test": func(rs []*Request) (places []int, err error) {
			for k, r := range rs {
				if !r.returned.Load() {
					if _, done, failed := r.Test(); done {
						places, err = append(places, k), errors.Join(err, failed)
					}
				}
			}
			return places, err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, other := openTwo(t, Config{PeerTimeout: time.Second})
			own, long := make([]byte, 4), make([]byte, 100_000)
			rs := []*Request{
				Irecv(w.Comm(), own, 0, 0), Irecv(w.Comm(), long, 1, 0), Irecv(w.Comm(), own[:1], AnySource, 1),
				Isend(w.Comm(), long, 1, 2), w.Comm().Ibarrier(),
			}
			synctest.Wait()
			if err := w.ep.Close(); err != nil {
				t.Error(err)
			}
			left := len(rs)
			for range 10 {
				places, err := next(rs)
				for _, k := range places {
					if k < 0 || !errors.Is(err, ErrClosed) {
						t.Fatalf("%s: place %d: %v", name, k, err)
					}
					left--
				}
				if left <= 0 {
					break
				}
			}
			if left != 0 {
				t.Errorf("%s: %d of %d requests have not ended", name, left, len(rs))
			}
			copy(own, "mine")
			if err := Send(t.Context(), w.Comm(), []byte("sent"), 0, 0); !errors.Is(err, ErrClosed) || string(own) != "mine" {
				t.Errorf("%s: a send: %v, %q", name, err, own)
			}
			if _, _, err := w.Comm().Iprobe(0, 0); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: a probe: %v", name, err)
			}
			_, _ = w.Close(), other.Close()
		})
	}
}

// A world closes without a wait for a process that has died, if that is known: a barrier has found it
// down, and messages would take as long again.
func TestClose_DoesNotWaitForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := new(atomic.Bool)
		eps := mcdtest.Open(t, 3, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node != 2 {
					return l
				}
				return &silent{l, dead}
			},
		})
		worlds := openEach(t, eps, Config{PeerTimeout: 2 * time.Second})
		inEach(worlds, func(c *Comm) {
			if err := c.Barrier(t.Context()); err != nil {
				t.Error(err)
			}
		})
		dead.Store(true)
		inEach(worlds[:2], func(c *Comm) {
			if err := c.Barrier(t.Context()); !errors.Is(err, ErrProcessFailed) && !errors.Is(err, ErrRevoked) { // by the other
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
			c.Revoke()
			if s, err := c.Shrink(t.Context()); err != nil || s.Size() != 2 {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
			start := time.Now()
			if err := c.w.Close(); err != nil || time.Since(start) > time.Second {
				t.Errorf("rank %d: Close has taken %v: %v", c.Rank(), time.Since(start), err)
			}
		})
		_ = worlds[2].Close()
	})
}

// A world closes without a wait for a process that it has waited for alone, and never heard of: that
// one has left before, or is not there yet.
func TestClose_BesideAStranger(t *testing.T) {
	for what, opened := range map[string]int{"has left": 2, "is not there yet": 1} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			worlds := openEach(t, eps[:opened], Config{PeerTimeout: 2 * time.Second})
			for _, w := range worlds[1:] {
				_ = w.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := Recv(ctx, worlds[0].Comm(), []byte{0}, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one %s: %v", what, err)
			}
			start := time.Now()
			if err := worlds[0].Close(); err != nil || time.Since(start) > 100*time.Millisecond {
				t.Errorf("one %s: Close has taken %v: %v", what, time.Since(start), err)
			}
		})
	}
}
