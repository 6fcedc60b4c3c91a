package hrtimer

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elapsed sets a timer while nothing else runs in this process, and returns how long it took.
func elapsed(t *Timer, fired <-chan struct{}, d time.Duration) time.Duration {
	start := time.Now()
	t.Reset(d)
	<-fired
	return time.Since(start)
}

// A precise timer does not take the millisecond of an idle process. A busy machine makes it late now
// and then, but not each time.
func TestTimer_IsOnTimeInAnIdleProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is a timerfd on Linux alone")
	}
	fired := make(chan struct{}, 1)
	timer := New(true, func() { fired <- struct{}{} })
	defer timer.Stop()
	const tries, want = 1000, 600 * time.Microsecond
	best := time.Hour
	for range tries {
		d := elapsed(timer, fired, 50*time.Microsecond)
		if d < 50*time.Microsecond {
			t.Fatalf("50 µs took %v", d)
		}
		if best = min(best, d); best < want {
			return
		}
	}
	t.Errorf("50 µs took %v at least, in %d tries; want less than %v", best, tries, want)
}

// A timer that is postponed does not fire when the timerfd ends, which was set before. On a busy
// machine it may have fired by then, but not each time.
func TestTimer_PostponedFiresLate(t *testing.T) {
	const tries, d = 100, 5 * time.Millisecond
	for range tries {
		fired := make(chan time.Time, 2)
		timer := New(true, func() { fired <- time.Now() })
		timer.Reset(time.Millisecond)
		begin := time.Now()
		timer.Postpone(d)
		took := (<-fired).Sub(begin)
		timer.Stop()
		if took >= d {
			return
		}
	}
	t.Errorf("a timer that was postponed by %v fired before, in each of %d tries", d, tries)
}

// Both of its clocks may be late or early, but it fires once for each Reset, and one that is set
// anew does not fire when it would have.
func TestTimer_FiresOnce(t *testing.T) {
	for _, precise := range []bool{true, false} {
		var count atomic.Int32
		fired := make(chan struct{}, 1000)
		timer := New(precise, func() { count.Add(1); fired <- struct{}{} })
		for range 100 {
			timer.Reset(time.Hour)
			timer.Reset(10 * time.Microsecond)
			<-fired
		}
		done := make(chan struct{})
		second := New(precise, func() { close(done) }) // what is still to come comes before it
		second.Reset(5 * time.Millisecond)
		<-done
		second.Stop()
		timer.Stop()
		if n := count.Load(); n != 100 {
			t.Errorf("precise %v: %d calls for 100 times that it was set", precise, n)
		}
	}
}

// A stopped timer does not fire, and can be stopped and set again without harm.
func TestTimer_Stopped(t *testing.T) {
	for _, precise := range []bool{true, false} {
		timer := New(precise, func() { t.Error("fired after Stop") })
		timer.Reset(time.Hour)
		timer.Stop()
		timer.Stop()
		done := make(chan struct{})
		other := New(precise, func() { close(done) })
		other.Reset(time.Millisecond)
		<-done
		other.Stop()
	}
}

// Without precise it keeps to a bubble's time.
func TestTimer_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		fired := make(chan time.Duration)
		timer := New(false, func() { fired <- time.Since(start) })
		defer timer.Stop()
		timer.Reset(250 * time.Microsecond)
		if at := <-fired; at != 250*time.Microsecond {
			t.Errorf("fired after %v, want 250 µs", at)
		}
	})
}

func TestTimer_PostponeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 1)
		timer := New(false, func() { fired <- time.Now() })
		defer timer.Stop()
		const d = 250 * time.Microsecond
		for range 10 {
			timer.Postpone(d)
			time.Sleep(d - time.Nanosecond)
		}
		last := time.Now().Add(time.Nanosecond)
		if at := <-fired; !at.Equal(last) {
			t.Errorf("fired %v after it was postponed last, want %v", d+at.Sub(last), d)
		}
	})
}

func BenchmarkTimer(b *testing.B) {
	for name, precise := range map[string]bool{"precise": true, "runtime": false} {
		b.Run(name+"/50us", func(b *testing.B) {
			fired := make(chan struct{}, 1)
			timer := New(precise, func() { fired <- struct{}{} })
			defer timer.Stop()
			for b.Loop() {
				elapsed(timer, fired, 50*time.Microsecond)
			}
		})
	}
}

// Of two that set a timer at once one may have set its clock, and the other one the instant.
func TestTimer_SetByTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		fired := make(chan time.Duration, 1)
		timer := New(false, func() { fired <- time.Since(begun) })
		defer timer.Stop()
		timer.Reset(time.Millisecond)
		timer.at.Add(int64(4 * time.Millisecond))
		if after := <-fired; after != 5*time.Millisecond {
			t.Errorf("fired after %v, want 5ms", after)
		}
	})
}

// A timer that is set anew just as it looks whether it is time fires when it was set to last, and not
// when it was set to before.
func TestTimer_SetWhileItLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		fired := make(chan time.Duration, 1)
		timer := New(false, func() { fired <- time.Since(begun) })
		defer timer.Stop()
		timer.Reset(time.Hour)
		seen := timer.at.Load() // by fire, of an alarm before
		timer.Reset(time.Millisecond)
		if timer.fireAt(seen) {
			timer.fire()
		}
		if after := <-fired; after != time.Millisecond {
			t.Errorf("fired after %v, want 1ms", after)
		}
	})
}
