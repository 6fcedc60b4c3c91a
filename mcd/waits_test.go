package mcd

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Reset makes a completion as new: what it was completed with is gone, and a wake-up for one that
// slept. Who completes it wakes nobody unless somebody sleeps.
func TestCompletion_Reset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Completion
		failed := errors.New("failed")
		ended := make(chan struct{})
		for round := range 3 {
			slept := make(chan struct{})
			go func() { c.sleep(t.Context(), ended); close(slept) }()
			synctest.Wait()
			c.Complete(failed)
			<-slept
			if !c.Done() || !errors.Is(c.Err(), failed) {
				t.Fatalf("round %d: done %v, %v", round, c.Done(), c.Err())
			}
			c.Reset()
			if c.Done() || c.Err() != nil || len(c.wake) != 0 {
				t.Errorf("round %d: after Reset: done %v, %v, %d wake-ups", round, c.Done(), c.Err(), len(c.wake))
			}
			c.Complete(nil)
			if !c.Done() || len(c.wake) != 0 {
				t.Errorf("round %d: done %v, %d wake-ups where nobody sleeps", round, c.Done(), len(c.wake))
			}
			c.Reset()
		}
	})
}

// A buffer that its port's Close gives back is empty, also if it was used before.
func TestRecvDesc_ClosedPort(t *testing.T) {
	e, p, _, others := openScripts(t, 1)
	d := &RecvDesc{Buf: make([]byte, 10)}
	if err := p.PostRecv(d); err != nil {
		t.Fatal(err)
	}
	sendRaw(t, others[0], e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 1}, []byte("hello"))
	for e.Progress(); !d.Done(); e.Progress() {
	}
	if d.N != 5 || d.Err() != nil {
		t.Fatalf("%d bytes, %v", d.N, d.Err())
	}
	if err := p.PostRecv(d); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if !d.Done() || d.N != 0 || !errors.Is(d.Err(), ErrClosed) {
		t.Errorf("after Close: done %v, %d bytes, %v", d.Done(), d.N, d.Err())
	}
}

// A spinner that has lost its core so often that spinning does not pay looks once more, and sleeps;
// what that wait took says nothing of waits that keep their core.
func TestSpin_EndsWhenRobbed(t *testing.T) {
	for _, came := range []bool{false, true} { // its message, with that look
		synctest.Test(t, func(t *testing.T) {
			e, _, links, _ := openScripts(t, 1)
			defer e.Close()
			e.spinning.crowd.Store(crowdMax)
			e.spinning.yield = func() { e.spinning.avoids.Store(true) }
			const usual = 8000
			e.spinning.usual.Store(usual)
			var c Completion
			polls := 0
			links[0].poll = func() {
				if polls++; came && polls == 2 {
					c.Complete(nil)
				}
			}
			e.spinners.Add(1)
			if done := e.spin(t.Context(), &c, time.Hour); done != came || polls != 2 {
				t.Errorf("done %v after %d polls, want %v after 2", done, polls, came)
			}
			if u := e.spinning.usual.Load(); u != usual {
				t.Errorf("a wait that keeps its core takes %d ns, want %d as before", u, usual)
			}
		})
	}
}

// A link's goroutine looks for more of a stream until nothing has come for more than 60 us.
func TestBusyPoll_LooksForSixtyMicroseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
		defer e.Close()
		polls := 0
		links[0].poll = func() { polls++; time.Sleep(time.Microsecond) }
		for range 2 {
			sendRaw(t, others[0], e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 1}, nil)
		}
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		e.busyPoll(nil)
		if want := 1 + 1 + 61; polls != want { // the stream; nothing for the first time; 61 us later
			t.Errorf("%d polls, a microsecond each; want %d", polls, want)
		}
		if n := e.pollWaiters.Load(); n != 0 {
			t.Errorf("%d goroutines are taken to wait for the poll lock", n)
		}
	})
}

// A link's goroutine that waits for the poll lock when the endpoint ends leaves it to its holder.
func TestLinkLoop_LeavesTheLockToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := twoLinks(t)
		defer y.Close()
		e, err := Open(Config{Spin: -1}, x)
		if err != nil {
			t.Fatal(err)
		}
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		frame := transport.Frame{Dst: x.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, HeaderLen)}
		if _, err := y.Send([]transport.Frame{frame}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := e.pollWaiters.Load(); n != 1 {
			t.Fatalf("%d goroutines wait for the poll lock, want the link's", n)
		}
		e.end(ErrClosed)
		synctest.Wait()
		if !isHeld(e.lock.Load()) || e.pollWaiters.Load() != 0 {
			t.Errorf("the lock is taken: %v; %d wait for it", isHeld(e.lock.Load()), e.pollWaiters.Load())
		}
		if c := e.Counters(); c.DropVersion != 0 {
			t.Error("it has polled without the lock")
		}
		e.unlockPoll()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Messages before a probe, in one batch, come with more to follow: the poll goes on.
func TestReceive_MoreBeforeAProbe(t *testing.T) {
	e, _, _, others := openScripts(t, 1)
	var more []bool
	if _, err := e.OpenPort(2, PortOptions{Receive: func(_ []Message, m bool) { more = append(more, m) }}); err != nil {
		t.Fatal(err)
	}
	if !e.tryLockPoll() {
		t.Fatal("somebody polls")
	}
	sendRaw(t, others[0], e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: 2}, nil)
	probe := probeFrame(e.MAC(0), wire.Probe, wire.ProbeHead{Incarnation: e.probes.incarnation + 1})
	if _, err := others[0].Send([]transport.Frame{probe}); err != nil {
		t.Fatal(err)
	}
	e.poll(false)
	e.unlockPoll()
	if !slices.Equal(more, []bool{true, false}) {
		t.Errorf("more is %v, want a message with more to follow, and a last call", more)
	}
}

// A wait that sleeps is taken into account by how long it slept.
func TestAwait_SleepIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, _ := openScripts(t, 1, func(c *Config) { c.Spin = 100 * time.Microsecond })
		defer e.Close()
		e.spinning.avoids.Store(true)
		e.spinning.lost.Store(int64(time.Millisecond))
		var c Completion
		time.AfterFunc(150*time.Microsecond, func() { c.Complete(nil) })
		if err := e.Await(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if lost := time.Duration(e.spinning.lost.Load()); lost != 850*time.Microsecond {
			t.Errorf("a sleep of 150 us leaves %v of 1 ms to make up for, want 850 us", lost)
		}
	})
}

// A wait that is given up is no short one, however soon it is: a program that looks for messages with
// brief contexts, and whose waits are long, spins now and then to learn whether it pays.
func TestAwait_GivenUpIsNotShort(t *testing.T) {
	for _, brief := range []time.Duration{0, 10 * time.Microsecond, 50 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			e, _, links, _ := openScripts(t, 1, func(c *Config) { c.Spin = 100 * time.Microsecond })
			defer e.Close()
			polled := false
			links[0].poll = func() { polled = true; time.Sleep(time.Microsecond) }
			e.spinning.average.Store(int64(2 * e.spinning.max))
			var c Completion
			spun := 0
			const waits = 680
			for range waits {
				ctx, cancel := context.WithTimeout(t.Context(), brief)
				polled = false
				if err := e.Await(ctx, &c); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if cancel(); polled {
					spun++
				}
			}
			if spun > waits/8 {
				t.Errorf("%d of %d waits spin that are given up after %v, want four after each 64", spun, waits, brief)
			}
		})
	}
}

// What others have of the core while a goroutine spins is not its own time.
func TestSpin_WhatOthersHaveIsNotItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, _ := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
		defer e.Close()
		e.spinning.crowd.Store(crowdMax)
		e.spinning.yield = func() { time.Sleep(10 * time.Microsecond) }
		var c Completion
		polls := 0
		links[0].poll = func() {
			if polls++; polls == 3 {
				c.Complete(nil)
			}
		}
		e.spinners.Add(1)
		if !e.spin(t.Context(), &c, time.Millisecond) {
			t.Fatal("not done")
		}
		if whole, want := time.Duration(e.spinning.whole.Load()), 20*time.Microsecond/averageWeight; whole != want {
			t.Errorf("a first wait of 20 us weighs %v, want %v", whole, want)
		}
		if s := e.spinning.share(); s != 0 {
			t.Errorf("its share is %v after a wait of which others had all", s)
		}
		if a := e.spinning.average.Load(); a != 0 {
			t.Errorf("that wait has cost %d ns of its own, on average", a)
		}
	})
}

// A message that was taken from the link for a port which another one's Receive function closes then
// is counted, whether the port has a Receive function or buffers.
func TestDeliver_ToAPortThatWasJustClosed(t *testing.T) {
	for name, opts := range map[string]PortOptions{
		"buffers": {},
		"Receive": {Receive: func([]Message, bool) { t.Error("the port is closed, and receives") }},
	} {
		e, _, _, others := openScripts(t, 1)
		p, err := e.OpenPort(2, opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.OpenPort(3, PortOptions{Receive: func([]Message, bool) { _ = p.Close() }}); err != nil {
			t.Fatal(err)
		}
		if !e.lockPoll() { // so that both come in one batch
			t.Fatal("no poll lock")
		}
		for _, to := range []uint8{3, 2} {
			sendRaw(t, others[0], e.MAC(0), &wire.Header{Kind: wire.Unicast, From: 1, DstPort: to}, nil)
		}
		e.poll(false)
		e.unlockPoll()
		if c := e.Counters(); c.RxMessages != 1 || c.DropNoPort != 1 {
			t.Errorf("%s: of two messages %d came and %d had no port", name, c.RxMessages, c.DropNoPort)
		}
	}
}
