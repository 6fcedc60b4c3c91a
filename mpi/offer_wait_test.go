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

// silent is a link that loses all that it is to send while its process is dead.
type silent struct {
	transport.Link
	dead *atomic.Bool
}

func (l *silent) Send(frames []transport.Frame) (int, error) {
	if l.dead.Load() {
		return len(frames), nil
	}
	return l.Link.Send(frames)
}

// openSilent opens the worlds of two processes. What the other one sends is lost once dead is set.
func openSilent(t *testing.T) (w, other *World, link *meanwhile, dead *atomic.Bool) {
	t.Helper()
	dead = new(atomic.Bool)
	eps := mcdtest.Open(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			if node != 0 {
				return &silent{l, dead}
			}
			link = &meanwhile{Link: l}
			return link
		},
	})
	w, err := Open(eps[0], Config{PeerTimeout: time.Second})
	other, err2 := Open(eps[1], Config{PeerTimeout: time.Second})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return w, other, link, dead
}

// The first send to a process is revoked while it looks for an offer. Who waits for that process
// later, in the communicator of those that live, hears of its death.
func TestSend_RevokedHasItsReceiverProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other, link, dead := openSilent(t)
		synctest.Wait()
		link.call = w.Comm().Revoke
		if _, err := Isend(w.Comm(), make([]byte, 100_000), 1, 0).Wait(t.Context()); !errors.Is(err, ErrRevoked) {
			t.Errorf("%v", err)
		}
		shrunk := make([]*Comm, 2)
		inBoth(t, func(c *Comm) (err error) {
			shrunk[c.Rank()], err = c.Shrink(t.Context())
			return err
		}, w, other)
		synctest.Wait()
		dead.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Recv(ctx, shrunk[0], []byte{0}, 1, 0); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("a receive from a dead process: %v", err)
		}
		_ = w.Close() // of what was on its way
		_ = other.Close()
	})
}

// A program that asks for a message again and again hears that its sender has died.
func TestIprobe_OfASilentProcess(t *testing.T) {
	for _, from := range []int{1, AnySource} {
		synctest.Test(t, func(t *testing.T) {
			w, other, _, dead := openSilent(t)
			synctest.Wait()
			dead.Store(true)
			var err error
			for asked := 0; err == nil && asked < 100; asked++ {
				_, _, err = w.Comm().Iprobe(from, 0)
				time.Sleep(time.Second / 10)
			}
			if failed, ok := errors.AsType[*ProcessError](err); !ok || failed.Rank != 1 {
				t.Errorf("of %d: %v", from, err)
			}
			_ = w.Close()
			_ = other.Close()
		})
	}
}

// Two goroutines flush a window at once: each waits until the updates before it are confirmed.
func TestWin_FlushByTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other, _, dead := openSilent(t)
		wins := make([]*Win[int], 2)
		inBoth(t, func(c *Comm) (err error) {
			wins[c.Rank()], err = NewWin(t.Context(), c, make([]int, 1))
			return err
		}, w, other)
		v := wins[0].window
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := errors.Join(v.Lock(ctx, 1, Shared), wins[0].Accumulate(ctx, []int{1}, 1, 0, Add)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		dead.Store(true) // it does not answer
		first := make(chan []error)
		go func() { first <- v.confirm(ctx, v.members) }()
		synctest.Wait()
		for name, errs := range map[string][]error{"second": v.confirm(ctx, v.members), "first": <-first} {
			if err := errors.Join(errs...); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the %s: %v", name, err)
			}
		}
		dead.Store(false)
		if err := v.Unlock(t.Context(), 1); err != nil || v.members[1].updates != v.members[1].confirmed {
			t.Errorf("%v, %+v", err, v.members[1])
		}
		closeTwo(t, w, other)
	})
}
