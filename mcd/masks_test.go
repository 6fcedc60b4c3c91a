package mcd

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/hrtimer"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// Waits that are fulfilled while they spin make spinning worth its while again; those that are not
// fulfilled do not count as if they were.
func TestSpin_LearnsFromQuickWaits(t *testing.T) {
	e, _, links, _ := openScripts(t, 1, func(c *Config) { c.Spin = 100 * time.Microsecond })
	var c Completion
	links[0].poll = func() { c.Complete(nil) }
	e.spinning.average.Store(int64(90 * time.Microsecond))
	for range 50 {
		c.Reset()
		e.spinners.Add(1)
		if !e.spin(t.Context(), &c, e.spinning.max) {
			t.Fatal("not done")
		}
	}
	if a := time.Duration(e.spinning.average.Load()); a > 45*time.Microsecond {
		t.Errorf("the average wait is %v after 50 that took no time", a)
	}
	links[0].poll = nil
	e.spinning.average.Store(int64(90 * time.Microsecond))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		c.Reset()
		e.spinners.Add(1)
		if e.spin(ended, &c, e.spinning.max) {
			t.Fatal("done")
		}
	}
	if a := time.Duration(e.spinning.average.Load()); a != 90*time.Microsecond {
		t.Errorf("the average wait is %v after 50 that were given up, want it as it was", a)
	}
}

// A goroutine that spins has the links' own goroutines sleep through arrivals, once, and leaves them
// so when it has its message; one that gives up unmasks them.
func TestSpin_MasksWakeups(t *testing.T) {
	for _, fulfilled := range []bool{true, false} {
		e, _, links, _ := openScripts(t, 1)
		var c Completion
		ctx, cancel := context.WithCancel(t.Context())
		polls := 0
		links[0].poll = func() {
			switch polls++; {
			case polls < 5:
			case fulfilled:
				c.Complete(nil)
			default:
				cancel()
			}
		}
		e.spinners.Add(1)
		if done := e.spin(ctx, &c, time.Hour); done != fulfilled {
			t.Errorf("done: %v, want %v", done, fulfilled)
		}
		cancel()
		want := []bool{true}
		if !fulfilled {
			want = []bool{true, false}
		}
		links[0].mu.Lock()
		if got := links[0].masks; len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("fulfilled %v: masked and unmasked %v, want %v", fulfilled, got, want)
		}
		links[0].mu.Unlock()
		links[0].poll = nil
	}
}

// A spinner looks at the clock and its context after every 64th empty poll; where others want the
// core, after each.
func TestSpin_LooksNowAndThen(t *testing.T) {
	for crowd, want := range map[int32]int{0: 64, crowdMax: 5} {
		e, _, links, _ := openScripts(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		polls := 0
		links[0].poll = func() {
			if polls++; polls == 5 {
				cancel()
			}
		}
		e.spinning.crowd.Store(crowd)
		e.spinning.usual.Store(int64(time.Hour)) // on a crowded machine, too
		e.spinners.Add(1)
		var never Completion
		if e.spin(ctx, &never, time.Hour) || polls < want || polls > want+1 { // it polls once more as it ends
			t.Errorf("crowd %d: it ended after %d polls, want %d", crowd, polls, want)
		}
		cancel()
		links[0].poll = nil
	}
}

// A link's goroutine that finds several frames at once masks its wake-ups while it looks for more,
// and unmasks them when none come; for a single frame it does neither.
func TestBusyPoll_MasksWakeupsForAStream(t *testing.T) {
	for frames, want := range map[int][]bool{1: nil, 2: {true, false}, 7: {true, false}} {
		e, p, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
		for range frames {
			arrive(t, e, others[0], 1)
		}
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		e.busyPoll(nil)
		links[0].mu.Lock()
		if got := links[0].masks; !slices.Equal(got, want) {
			t.Errorf("%d frames: masked and unmasked %v, want %v", frames, got, want)
		}
		links[0].mu.Unlock()
		if n := p.Counters().RxMessages; n != uint64(frames) {
			t.Errorf("%d messages of %d", n, frames)
		}
		if !e.tryLockPoll() {
			t.Fatal("the poll lock was not given back")
		}
		e.unlockPoll()
	}
}

// A link's goroutine that finds a stream stays awake as long as frames come within 60 us of each
// other, however long that is; the unmaskLoop sleeps meanwhile.
func TestBusyPoll_StaysAwakeForAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
		put := func(frames int) {
			for range frames {
				arrive(t, e, others[0], 1)
			}
		}
		polls := 0
		links[0].poll = func() { // each takes 20 us, and every third one of 60 finds a frame
			time.Sleep(20 * time.Microsecond)
			if polls++; polls <= 60 && polls%3 == 0 {
				put(1)
			}
		}
		var turns atomic.Int32
		e.tick = hrtimer.New(false, func() {
			turns.Add(1)
			e.ticks <- struct{}{}
		})
		put(2)
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		e.maskWakeups() // as a leader with its own message leaves them
		synctest.Wait() // the unmaskLoop waits for its turn
		begun := time.Now()
		e.busyPoll(nil)
		if n := p.Counters().RxMessages; n != 22 {
			t.Errorf("it has seen %d messages, want 22", n)
		}
		if stayed := time.Since(begun); stayed < 1200*time.Microsecond || stayed > 1300*time.Microsecond {
			t.Errorf("it stayed awake for %v, want 1.2 ms and little more", stayed)
		}
		if n := turns.Load(); n > 0 {
			t.Errorf("%d turns of the unmaskLoop meanwhile, want none", n)
		}
	})
}

// The unmaskLoop sets no timer where another has unmasked the wake-ups before it wakes up.
func TestUnmaskLoop_RestsWhereNothingIsMasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, _ := openScripts(t, 1)
		defer e.Close()
		var turns atomic.Int32
		e.tick = hrtimer.New(false, func() {
			turns.Add(1)
			e.ticks <- struct{}{}
		})
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		e.setMasks(true)
		e.setMasks(false)
		e.unlockPoll()
		e.wakeUnmaskLoop()
		time.Sleep(4 * unmaskAfter)
		synctest.Wait()
		if n := turns.Load(); n != 0 {
			t.Errorf("%d turns, want none", n)
		}
	})
}

// A link's goroutine that gives way to another one, in a stream, or that a Receive function takes
// along, leaves its masked wake-ups to the unmaskLoop.
func TestBusyPoll_LeavesMaskedWakeupsToTheUnmaskLoop(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, _, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
			defer e.Close()
			batches := 0
			if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) {
				if batches++; panics && batches == 3 {
					panic("of a program")
				}
			}}); err != nil {
				t.Fatal(err)
			}
			links[0].poll = func() {
				for range 2 {
					arrive(t, e, others[0], 2)
				}
			}
			if !e.lockPoll() {
				t.Fatal("no poll lock")
			}
			e.setMasks(true)
			over, taken := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				defer func() { _ = recover() }()
				e.busyPoll(nil)
			}()
			go func() {
				defer close(taken)
				for !panics && !e.tryLockPoll() {
					runtime.Gosched()
				}
			}()
			<-taken
			<-over
			links[0].poll = nil
			if !panics {
				e.unlockPoll()
			}
			if n := e.streams.Load(); n != 0 {
				t.Errorf("%d links' goroutines stay awake, want none", n)
			}
			time.Sleep(2 * unmaskAfter)
			synctest.Wait()
			if masked(e) {
				t.Error("the wake-ups are masked, and nobody polls")
			}
		})
	}
}

// A link's goroutine gives the poll lock back as often as it has taken it: once too often, and it is
// taken from another that has it by then.
func TestBusyPoll_GivesTheLockBack(t *testing.T) {
	for frames, want := range map[int]uint64{0: 1, 1: 1, 2: 2} { // in a stream, before it looks for more
		synctest.Test(t, func(t *testing.T) {
			e, _, links, others := openScripts(t, 1, func(c *Config) { c.Spin = time.Millisecond })
			links[0].poll = func() { time.Sleep(10 * time.Microsecond) }
			for range frames {
				if _, err := others[0].Send([]transport.Frame{
					{Dst: e.MAC(0), EtherType: transport.EtherTypeDefault, Payload: make([]byte, HeaderLen)},
				}); err != nil {
					t.Fatal(err)
				}
			}
			if !e.lockPoll() {
				t.Fatal("no poll lock")
			}
			before := e.turns()
			e.busyPoll(nil)
			if n := e.turns() - before; n != want || isHeld(e.lock.Load()) {
				t.Errorf("%d frames: the lock was given back %d times, want %d; taken: %v", frames, n, want, isHeld(e.lock.Load()))
			}
		})
	}
}

// A link's goroutine that may not stay awake gives the poll lock back now and then, however long each
// look finds a frame: else nobody could close the endpoint.
func TestBusyPoll_GivesTheLockBackInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, links, others := openScripts(t, 1, func(c *Config) { c.Backlog = 100 })
		const frames = 100
		polls := 0
		links[0].poll = func() {
			if polls++; polls > frames {
				return
			}
			arrive(t, e, others[0], 1)
		}
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		before := e.turns()
		e.busyPoll(nil)
		if n := p.Counters().RxMessages; n != frames {
			t.Errorf("%d messages of %d", n, frames)
		}
		if n := e.turns() - before; n < frames/2 {
			t.Errorf("the lock was given back %d times in %d looks, want every second time", n, polls)
		}
	})
}

// A link's goroutine that looks once more after a single frame promises no more than it knows of: it is
// the last batch, unless a next one is there.
func TestBusyPoll_LooksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, others := openScripts(t, 1)
		defer e.Close()
		var promises []bool
		if _, err := e.OpenPort(2, PortOptions{Receive: func(batch []Message, more bool) {
			promises = append(promises, more)
			if len(batch) != 1 {
				t.Errorf("a batch of %d, want 1", len(batch))
			}
		}}); err != nil {
			t.Fatal(err)
		}
		frames := 2
		links[0].poll = func() { // the second frame comes while the goroutine looks for it
			if frames--; frames < 0 {
				return
			}
			arrive(t, e, others[0], 2)
		}
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		e.busyPoll(nil)
		if !slices.Equal(promises, []bool{false, false}) {
			t.Errorf("more was promised %v, want two batches and nothing promised", promises)
		}
	})
}

// While a program polls now and then, within unmaskAfter, its links' wake-ups stay masked; soon
// after it has stopped they are unmasked.
func TestUnmaskLoop_WaitsForThoseWhoPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, _ := openScripts(t, 1)
		defer e.Close()
		masks := func() []bool {
			links[0].mu.Lock()
			defer links[0].mu.Unlock()
			return slices.Clone(links[0].masks)
		}
		if !e.tryLockPoll() {
			t.Fatal("somebody polls")
		}
		e.maskWakeups()
		e.unlockPoll()
		for range 100 {
			time.Sleep(unmaskAfter / 2)
			e.Progress()
		}
		if m := masks(); !slices.Equal(m, []bool{true}) {
			t.Errorf("masked and unmasked %v while the program polls, want masked once", m)
		}
		time.Sleep(2*unmaskAfter + time.Nanosecond)
		synctest.Wait()
		if m := masks(); !slices.Equal(m, []bool{true, false}) {
			t.Errorf("masked and unmasked %v when it polls no more", m)
		}
	})
}

// Who waits for the poll lock to look after contacts leaves it alone when the endpoint ends: another
// goroutine has it.
func TestAdvanceContacts_LeavesTheLockToOthers(t *testing.T) {
	x, _ := linktest.Pipe()
	e, err := Open(Config{Spin: -1, Keys: &keyring.Ring{Keys: []keyring.Key{{1}}}}, x)
	if err != nil {
		t.Fatal(err)
	}
	if !e.lockPoll() {
		t.Fatal("no poll lock")
	}
	e.end(ErrClosed)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if e.advanceContacts(timer, false, monotime.Time{}) || !isHeld(e.lock.Load()) {
		t.Errorf("it went on, or has given back the lock of another one (taken: %t)", isHeld(e.lock.Load()))
	}
	e.unlockPoll()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
