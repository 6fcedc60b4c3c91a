package mcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// diary notes when something was done, since it was begun.
type diary struct {
	mu    sync.Mutex
	begun time.Time
	times []time.Duration
}

func (d *diary) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun, d.times = time.Now(), nil
}

func (d *diary) note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, time.Since(d.begun))
}

// expect compares the diary with times in a unit.
func (d *diary) expect(t *testing.T, what string, unit time.Duration, want ...time.Duration) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range want {
		want[i] *= unit
	}
	if !slices.Equal(d.times, want) {
		t.Errorf("%s at %v, want %v", what, d.times, want)
	}
}

// deadLink is a link whose interface is down: its Wait fails at once.
type deadLink struct {
	transport.Link
	waits  diary
	polls  atomic.Int32
	closed chan struct{}
}

func (l *deadLink) Wait(context.Context) error {
	select {
	case <-l.closed:
		return transport.ErrClosed
	default:
	}
	l.waits.note()
	return transport.ErrInterfaceDown
}

func (l *deadLink) Poll(frames []transport.Frame) (int, error) {
	l.polls.Add(1)
	return l.Link.Poll(frames)
}

func (l *deadLink) Close() error { close(l.closed); return l.Link.Close() }

// A link that fails to wait is asked again every 10 ms, and is not polled for that.
func TestIntervals_LinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := twoLinks(t)
		defer y.Close()
		l := &deadLink{Link: x, closed: make(chan struct{})}
		l.waits.begin()
		e, err := Open(Config{Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		time.Sleep(45 * time.Millisecond)
		l.waits.expect(t, "Wait", time.Millisecond, 0, 10, 20, 30, 40)
		if err := e.LinkErr(0); !errors.Is(err, transport.ErrInterfaceDown) || l.polls.Load() != 0 {
			t.Errorf("LinkErr: %v; %d polls", err, l.polls.Load())
		}
	})
}

// The probes of a drain are repeated after 5 ms, and then after twice as long each time, up to
// 200 ms.
func TestIntervals_ProbesOfADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, _ := openScripts(t, 1)
		var probes diary
		links[0].send = func(frames []transport.Frame) (int, error) { probes.note(); return len(frames), nil }
		probes.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 950*time.Millisecond)
		defer cancel()
		err := e.Drain(ctx, func() error { t.Error("changed"); return nil }, 1)
		var silent *NoAnswerError
		if !errors.As(err, &silent) || silent.Silent != 950*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want no answer for 950 ms", err)
		}
		probes.expect(t, "probes", time.Millisecond, 0, 5, 15, 35, 75, 155, 315, 515, 715, 915)
		_ = e.Close()
	})
}

// A link that has no room is tried again after 50 us and then, while nobody makes progress, after
// twice as long each time, up to 1 ms; once it has taken a message, after 50 us again.
func TestIntervals_LinkWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, links, _ := openScripts(t, 1)
		var tries diary
		room := 0 // messages
		links[0].send = func([]transport.Frame) (int, error) {
			tries.note()
			if room == 0 {
				return 0, transport.ErrBusy
			}
			room--
			return 1, nil
		}
		tries.begin()
		first, second := descTo(1, "first"), descTo(1, "second")
		if err := p.PostSend(first, second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Millisecond)
		e.nics[0].queue.mu.Lock()
		room = 1
		e.nics[0].queue.mu.Unlock()
		time.Sleep(800 * time.Microsecond)
		tries.expect(t, "tries", time.Microsecond, 0, 50, 150, 350, 750, 1550, 2550, 3550, 3550, 3600, 3700)
		if !first.Done() || first.Err() != nil || second.Done() {
			t.Errorf("with room for one: done %v, %v; the second one %v", first.Done(), first.Err(), second.Done())
		}
		_ = e.Close()
	})
}

// Wake-ups that were left masked are unmasked when nobody has polled for a whole interval of 250 us:
// here for the second, as the poller gave its lock back within the first.
func TestIntervals_Unmask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, _ := openScripts(t, 1)
		masks := func() []bool {
			synctest.Wait()
			links[0].mu.Lock()
			defer links[0].mu.Unlock()
			return slices.Clone(links[0].masks)
		}
		if !e.tryLockPoll() {
			t.Fatal("somebody polls")
		}
		e.maskWakeups()
		synctest.Wait() // the first interval has begun
		e.unlockPoll()
		time.Sleep(500*time.Microsecond - time.Nanosecond)
		if m := masks(); !slices.Equal(m, []bool{true}) {
			t.Errorf("masked and unmasked %v before 500 us", m)
		}
		time.Sleep(time.Nanosecond)
		if m := masks(); !slices.Equal(m, []bool{true, false}) {
			t.Errorf("masked and unmasked %v after 500 us", m)
		}
		_ = e.Close()
	})
}

// A poller that looks at the clock postpones that: the unmaskLoop does not wake up meanwhile.
func TestIntervals_PostponedUnmask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, _ := openScripts(t, 1)
		defer e.Close()
		masks := func() []bool {
			synctest.Wait()
			links[0].mu.Lock()
			defer links[0].mu.Unlock()
			return slices.Clone(links[0].masks)
		}
		poll := func(mask bool) (postponed monotime.Time) {
			if !e.tryLockPoll() {
				t.Fatal("the unmaskLoop polls")
			}
			defer e.unlockPoll()
			if mask {
				e.maskWakeups()
			}
			e.postponeUnmask(clock.Now())
			return e.postponed
		}
		poll(true)
		synctest.Wait() // it waits for its turn
		before := e.turns()
		poll(false)
		const rounds = 20
		for range rounds {
			time.Sleep(unmaskAfter / 2)
			if last := poll(false); last == clock.Now() {
				t.Error("postponed twice within half of the interval")
			}
			time.Sleep(time.Nanosecond)
			if now := poll(false); now != clock.Now() {
				t.Errorf("not postponed for %v", clock.Now().Sub(now))
			}
			synctest.Wait()
		}
		if n := e.turns() - before; n != 1+2*rounds {
			t.Errorf("%d polls, want %d: the unmaskLoop wakes up while the program polls", n, 1+2*rounds)
		}
		time.Sleep(2*unmaskAfter - time.Nanosecond)
		if m := masks(); !slices.Equal(m, []bool{true}) {
			t.Errorf("masked and unmasked %v before 500 us", m)
		}
		time.Sleep(time.Nanosecond)
		if m := masks(); !slices.Equal(m, []bool{true, false}) {
			t.Errorf("masked and unmasked %v 500 us after the last poll", m)
		}
	})
}

// A timer that is late finds that nobody polls any more: a poller would have postponed it again.
func TestTryUnmask_LateTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, _ := openScripts(t, 1)
		defer e.Close()
		seen, set := e.turns(), clock.Now()
		unmasks := func(set monotime.Time) bool {
			if !e.tryLockPoll() {
				t.Fatal("somebody polls")
			}
			e.unlockPoll() // one more poll than was seen
			return e.tryUnmask(seen, set)
		}
		time.Sleep(time.Microsecond)
		e.postponed = clock.Now()
		time.Sleep(2*unmaskAfter - time.Nanosecond)
		if unmasks(set) {
			t.Error("unmasked, and a poller may be there")
		}
		time.Sleep(time.Nanosecond)
		if unmasks(clock.Now()) {
			t.Error("unmasked for a poller that was gone before the timer was set")
		}
		if !unmasks(set) {
			t.Error("not unmasked for a poller that is gone")
		}
	})
}

// A wait weighs an eighth of the average, and twice the limit at most. Where waits do not pay, four
// spin to learn whether they would, after pauses of 1, 2, 4 and at last 64, or a quarter less.
func TestIntervals_SpinPolicy(t *testing.T) {
	p := spinPolicy{max: 100 * time.Microsecond}
	p.note(80 * time.Microsecond)
	if a := p.average.Load(); a != 10_000 {
		t.Errorf("the average is %d ns after a wait of 80 us, want 10 us", a)
	}
	p.note(time.Second)
	if a := p.average.Load(); a != 10_000+(200_000-10_000)/8 {
		t.Errorf("the average is %d ns after a wait of 1 s, which counts as 200 us", a)
	}
	p.average.Store(int64(100*time.Microsecond + 1))
	spins := p.limit() > 0
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 64, 64, 64} {
		tries, sleeps := 0, 0
		for ; spins && tries < 100; tries++ {
			spins = p.limit() > 0
		}
		for ; !spins && sleeps < 100; sleeps++ {
			spins = p.limit() > 0
		}
		if tries != 4 || sleeps > pause || sleeps < pause-pause/4 {
			t.Errorf("%d waits spin and then %d sleep, want 4, and then %d or a quarter less", tries, sleeps, pause)
		}
	}
	p.average.Store(int64(100 * time.Microsecond))
	if p.limit() != p.max {
		t.Error("a wait that costs just the limit does not spin")
	}
	q := spinPolicy{max: 0}
	if q.note(time.Second); q.average.Load() != 0 {
		t.Error("waits count where nothing spins")
	}
}
