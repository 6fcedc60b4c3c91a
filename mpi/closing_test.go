package mpi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// A message that comes while a world closes goes into no receive: what has waited for it has
// returned.
func TestClose_WhileAMessageComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		w, err := Open(eps[0], Config{})
		other, err2 := Open(eps[1], Config{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		buf, pooled, done := make([]byte, 4), make([]byte, 4), make(chan error)
		r := Irecv(w.Comm(), buf, 1, 0)
		go func() { _, err := Recv(t.Context(), w.Comm(), pooled, 1, 1); done <- err }()
		synctest.Wait()
		w.mu.Lock() // as Close begins; then it waits for the others
		w.closed = true
		for w.active != nil {
			w.complete(w.active, ErrClosed)
		}
		w.mu.Unlock()
		_, err = r.Wait(t.Context())
		if err := errors.Join(err, <-done); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
		for tag := range 2 {
			if err := Send(t.Context(), other.Comm(), []byte("late"), 0, tag); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if string(buf)+string(pooled) != "\x00\x00\x00\x00\x00\x00\x00\x00" {
			t.Errorf("%q, %q: written after the wait had ended", buf, pooled)
		}
		w.mu.Lock()
		w.closed = false
		w.mu.Unlock()
		if err := errors.Join(w.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A send of a world whose endpoint was closed says so, also one so short that it waits for nobody.
func TestSend_AfterTheEndpointsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		w, err := Open(eps[0], Config{})
		other, err2 := Open(eps[1], Config{})
		if err := errors.Join(err, err2, eps[0].Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := Send(t.Context(), w.Comm(), []byte("lost"), 1, 0); !errors.Is(err, ErrClosed) {
				t.Errorf("Send: %v", err)
			}
		}
		_, _ = w.Close(), other.Close() // each names the other
	})
}

// A world that could not be opened takes no notice of who goes, or sends, while it is closed again.
func TestOpen_FailsWhileOthersGo(t *testing.T) {
	w := &World{ranks: map[mcd.NodeID]matching.Rank{0: 0, 1: 1}, closed: true}
	w.idle.L = &w.mu
	w.down(&memfifo.PeerDownError{Node: 1})
	w.receive(memfifo.Sender{}, []byte{1, 2, 3})
}

// Who waits for any of several requests, the last of which another goroutine returns just then, does
// not wait for ever.
func TestWaitAny_OfNone(t *testing.T) {
	eps := mcdtest.Open(t, 1, mcdtest.Config{})
	w, err := Open(eps[0], Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := Isend(w.Comm(), []byte{1}, ProcNull, 0)
	r.returned.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := awaitAny(ctx, []*Request{r}); err != nil {
		t.Errorf("has waited: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Buffered sends give their windows back as they are received: there may be any number.
func TestBsend_GivesItsWindowBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		w, err := Open(eps[0], Config{EagerLimit: 1})
		other, err2 := Open(eps[1], Config{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2)
		for range 1000 {
			if err := Bsend(w.Comm(), buf, 1, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := Recv(t.Context(), other.Comm(), buf, 0, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := w.spare.made; n != 1 {
			t.Errorf("%d windows for one message at a time", n)
		}
		if err := errors.Join(w.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A world that could not be opened is closed before its layer is: what comes meanwhile is nobody's.
func TestCloseLayer_ClosesTheWorldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		w.mu.Lock()
		err := w.closeLayer()
		closed := w.closed
		w.mu.Unlock()
		if err = errors.Join(err, w.barriers.Close(), other.Close()); err != nil || !closed {
			t.Errorf("closed: %v, %v", closed, err)
		}
	})
}

// Barriers that wait when the world closes end with its error, as does one that is called then:
// also those that wait for others of their own process.
func TestClose_EndsBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		c, d := w.Comm(), other.Comm()
		if err := WaitAll(t.Context(), c.Ibarrier(), d.Ibarrier()); err != nil {
			t.Fatal(err)
		}
		waits := make(chan error)
		go func() { waits <- c.Barrier(t.Context()) }()
		begun := make([]*Request, barrier.Numbers)
		for k := range begun {
			begun[k] = c.Ibarrier()
		}
		synctest.Wait()
		closeTwo(t, w, other)
		for _, r := range begun {
			if _, err := r.Wait(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("begun: %v", err)
			}
		}
		for _, err := range []error{<-waits, c.Barrier(t.Context())} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
		}
	})
}

// What is called with ProcNull once the world is closed fails as all other calls do.
func TestErrClosed_WithProcNull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		c, ctx, one := w.Comm(), t.Context(), []int{1}
		var v *Win[int]
		inBoth(t, func(c *Comm) error {
			of, err := NewWin(ctx, c, []int{0})
			if c == w.Comm() {
				v = of
			}
			return err
		}, w, other)
		taken, err := c.Mprobe(ctx, ProcNull, 0)
		if err != nil {
			t.Fatal(err)
		}
		closeTwo(t, w, other)
		_, recv := Recv(ctx, c, one, ProcNull, 0)
		_, sendrecv := Sendrecv(ctx, c, one, ProcNull, 0, one, ProcNull, 0)
		_, probe := c.Probe(ctx, ProcNull, 0)
		_, _, iprobe := c.Iprobe(ProcNull, 0)
		_, mrecv := MRecv(ctx, taken, one)
		for name, err := range map[string]error{
			"Send": Send(ctx, c, one, ProcNull, 0), "Ssend": Ssend(ctx, c, one, ProcNull, 0),
			"Recv": recv, "Sendrecv": sendrecv, "Probe": probe, "Iprobe": iprobe, "MRecv": mrecv,
			"Put": v.Put(ctx, one, ProcNull, 0), "Lock": v.Lock(ctx, ProcNull, Shared),
		} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Whatever is called once the endpoint was closed without the world, or waits meanwhile, ends with
// ErrClosed: no other process is down.
func TestErrClosed_OfTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		inBoth(t, func(c *Comm) error { return Bcast(t.Context(), c, []int{1}, 0) }, w, other)
		c, ctx, one := w.Comm(), t.Context(), []int{1}
		calls := map[string]func() error{
			"Recv":      func() error { _, err := Recv(ctx, c, one, 1, 0); return err },
			"Any":       func() error { _, err := Recv(ctx, c, one, AnySource, 0); return err },
			"Ssend":     func() error { return Ssend(ctx, c, one, 1, 0) },
			"Probe":     func() error { _, err := c.Probe(ctx, 1, 0); return err },
			"WaitAny":   func() error { _, _, err := WaitAny(ctx, Irecv(c, one, 1, 0)); return err },
			"Agree":     func() error { _, err := c.Agree(ctx, 1); return err },
			"Barrier":   func() error { return c.Barrier(ctx) },
			"Bcast":     func() error { return Bcast(ctx, c, one, 1) },
			"Allreduce": func() error { return Allreduce(ctx, c, one, one, Sum) },
			"Root":      func() error { return Bcast(ctx, c, one, 0) },
		}
		check := func(name, when string, err error) {
			if !errors.Is(err, ErrClosed) || errors.Is(err, ErrProcessFailed) {
				t.Errorf("%s, %s: %v", name, when, err)
			}
		}
		waits := map[string]chan error{}
		for _, name := range []string{"Recv", "Any", "Ssend", "Probe", "WaitAny", "Agree", "Barrier", "Bcast"} {
			waits[name] = make(chan error)
			go func() { waits[name] <- calls[name]() }()
			synctest.Wait()
		}
		_ = w.ep.Close()
		for name, wait := range waits {
			check(name, "meanwhile", <-wait)
		}
		for name, call := range calls {
			check(name, "behind", call())
		}
		_ = w.Close() // of what nobody has confirmed
		_ = other.Close()
	})
}

// What is queued for a process that leaves while the world closes is dropped: else it would be sent to
// nobody, and missed.
func TestClose_ForgetsWhoLeavesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		p := w.all[1]
		w.mu.Lock()
		w.closed = true
		w.queue(1, item{raw: []byte{1}})
		w.mu.Unlock()
		w.down(&memfifo.PeerDownError{Node: p.ID, Reason: memfifo.Left})
		if len(p.queue) > 0 || p.err == nil {
			t.Errorf("%d items, %v", len(p.queue), p.err)
		}
		w.mu.Lock()
		w.closed = false
		w.touched = nil
		w.mu.Unlock()
		closeTwo(t, other, w)
	})
}

// A goroutine waits for requests of two worlds of its process.
func TestWaitAny_OfTwoWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		w2, other2 := openTwo(t, Config{})
		a, b := Irecv(w.Comm(), []byte{0}, 1, 0), Irecv(w2.Comm(), []byte{0}, 1, 0)
		sent := make(chan error)
		go func() {
			synctest.Wait()
			sent <- errors.Join(Send(t.Context(), other2.Comm(), []byte{1}, 0, 0), Send(t.Context(), other.Comm(), []byte{1}, 0, 0))
		}()
		for range 2 {
			if k, _, err := WaitAny(t.Context(), a, b); k < 0 || err != nil {
				t.Errorf("%d, %v", k, err)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		closeTwo(t, w, other)
		closeTwo(t, w2, other2)
	})
}

// The error of WaitSome says which requests have failed.
func TestWaitSome_NamesWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		c, one := w.Comm(), []byte{1}
		_, err := WaitSome(t.Context(), Isend(c, one, 7, 0), Isend(c, one, 1, 0), Irecv(c, one, 1, -7))
		if err == nil || !strings.Contains(err.Error(), "request 0: send") || !strings.Contains(err.Error(), "request 2: receive") {
			t.Errorf("%v", err)
		}
		closeTwo(t, w, other)
	})
}

// A process that stood still through a barrier, which has failed for that, hears so when it waits
// for a message of one that has given it up.
func TestBarrier_TellsWhoIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, links := openFaulty(t)
		links[1].Cut(true)
		if err := worlds[0].Comm().Barrier(t.Context()); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("barrier: %v", err)
		}
		links[1].Cut(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Recv(ctx, worlds[1].Comm(), make([]byte, 1), 0, 0); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("receive: %v", err)
		}
		for _, w := range worlds {
			_ = w.Close()
		}
	})
}

// A message to itself that is on its way as the world closes does not come into the memory of a
// receive that has ended.
func TestClose_MessageToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		buf := make([]byte, 1)
		r := Irecv(w.Comm(), buf, 0, 0)
		w.mu.Lock()
		w.me.busy = true // its queue waits
		w.mu.Unlock()
		Isend(w.Comm(), []byte{1}, 0, 0)
		w.mu.Lock()
		it := w.me.queue[0]
		w.mu.Unlock()
		closed := make(chan error)
		go func() { closed <- w.Close() }()
		if _, err := r.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("the receive: %v", err)
		}
		if err := w.carryHere(&it); err != nil { // as by one that had begun before
			t.Error(err)
		}
		if buf[0] != 0 {
			t.Error("a message has come to who waits no more")
		}
		w.carryOut(w.me, true)
		if err := errors.Join(<-closed, other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A process that dies while the world closes, as does what a process has told itself, finds no
// request in the engine: their callers have them again, and may have begun them anew.
func TestClose_RequestsBegunAnew(t *testing.T) {
	for name, call := range map[string]func(c *Comm, buf []byte) error{
		"receive": func(c *Comm, buf []byte) error {
			_, err := Recv(context.Background(), c, buf, 1, 0)
			return err
		},
		"synchronous send": func(c *Comm, buf []byte) error { return Ssend(context.Background(), c, buf, 1, 0) },
		"to itself":        func(c *Comm, buf []byte) error { return Ssend(context.Background(), c, buf, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, other := openTwo(t, Config{PeerTimeout: time.Second})
				buf, called := make([]byte, 1), make(chan error)
				if err := Send(t.Context(), w.Comm(), buf, 1, 1); err != nil { // they know each other
					t.Fatal(err)
				}
				go func() { called <- call(w.Comm(), buf) }()
				synctest.Wait()
				if err := other.ep.Close(); err != nil {
					t.Fatal(err)
				}
				if err := Send(t.Context(), w.Comm(), buf, 1, 1); err != nil {
					t.Fatal(err)
				}
				closed := make(chan error)
				go func() { closed <- w.Close() }() // for as long as the other one may be silent
				first, again := <-called, call(w.Comm(), buf)
				if !errors.Is(first, ErrClosed) || !errors.Is(again, ErrClosed) {
					t.Errorf("%v, and again: %v", first, again)
				}
				w.mu.Lock()
				w.queue(0, item{record: matching.Record{Kind: matching.Matched, ID: 1 << 32}})
				w.beginTouched()
				w.mu.Unlock()
				if down, ok := errors.AsType[*memfifo.PeerDownError](<-closed); !ok || down.Node != 1 {
					t.Errorf("%v, want that node 1 is down", down)
				}
				_ = other.Close() // its endpoint was closed
			})
		})
	}
}
