package memfifo_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A window that is rebound has another key and other memory: what comes with the former key is
// refused, also the rest of a Get that is being answered.
func TestWindow_Rebind(t *testing.T) {
	for _, other := range [][]byte{nil, bytes.Repeat([]byte{0xee}, 1<<20)} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
					f, err := fault.New(l, rand.New(rand.NewPCG(1, 1)), fault.Config{
						Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond,
					})
					must(t, err)
					return f
				},
			})
			a, err := memfifo.Open(eps[0], memfifo.Config{})
			must(t, err)
			b, err := memfifo.Open(eps[1], memfifo.Config{})
			must(t, err)
			w, err := a.Register(1, make([]byte, 1<<20), memfifo.Read)
			must(t, err)
			former := b.Remote(w.Key())
			got, done := make([]byte, 1<<20), make(chan error)
			go func() { done <- former.Get(t.Context(), 0, got) }()
			time.Sleep(10 * time.Millisecond) // some of it has come, and not all
			key, err := w.Rebind(other)
			must(t, err)
			if err := <-done; !errors.Is(err, memfifo.ErrAccess) || bytes.Contains(got, []byte{0xee}) {
				t.Errorf("a Get with the former key: %v", err)
			}
			if err := former.Get(t.Context(), 0, got[:1]); !errors.Is(err, memfifo.ErrAccess) {
				t.Errorf("a later Get with the former key: %v", err)
			}
			if other != nil {
				must(t, b.Remote(key).Get(t.Context(), 0, got))
				if !bytes.Equal(got, other) {
					t.Error("a Get with the new key has read something else")
				}
			}
			w.Revoke()
			if _, err := w.Rebind(other); !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("a revoked window is rebound: %v", err)
			}
			must(t, a.Close())
			must(t, b.Close())
		})
	}
}

// Waits for a window that is rebound end as those for one that is revoked: nothing that comes later
// changes the memory that they look at.
func TestWindow_RebindEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 1, -1, fault.Config{}, 0)
		w := c.window(t, 0, 64)
		for name, wait := range map[string]func() error{
			"Wait":     func() error { _, err := w.Wait(limit(t), w.Notified()); return err },
			"WaitWord": func() error { _, err := w.WaitWord(limit(t), 0, func(v uint64) bool { return v != 0 }); return err },
		} {
			ended := make(chan error, 1)
			go func() { ended <- wait() }()
			synctest.Wait()
			_, err := w.Rebind(make([]byte, 64))
			must(t, err)
			if err := <-ended; !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A wait whose condition is being looked at as the window is rebound, since an operation has woken it
// just before, ends as those that sleep.
func TestWindow_RebindEndsAWaitThatLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 1, -1, fault.Config{}, 0)
		w := c.window(t, 0, 64)
		looks, goOn := make(chan bool), make(chan bool)
		ended := make(chan error, 1)
		go func() {
			_, err := w.WaitWord(limit(t), 0, func(v uint64) bool {
				if v == 1 {
					looks <- true
					<-goOn
				}
				return false
			})
			ended <- err
		}()
		synctest.Wait()
		must(t, w.Store(0, 1))
		<-looks
		_, err := w.Rebind(make([]byte, 64))
		must(t, err)
		close(goOn)
		for waits := true; waits; {
			select {
			case <-looks:
			case err := <-ended:
				if waits = false; !errors.Is(err, memfifo.ErrClosed) {
					t.Errorf("%v, want ErrClosed", err)
				}
			}
		}
	})
}
