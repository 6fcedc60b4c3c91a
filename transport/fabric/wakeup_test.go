package fabric

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/transport"
)

// startWaiters starts n goroutines that Wait for l, lets them fall asleep, and returns where their
// errors come.
func startWaiters(l *Link, n int) <-chan error {
	ended := make(chan error, n)
	for range n {
		go func() { ended <- l.Wait(context.Background()) }()
	}
	synctest.Wait()
	return ended
}

// In a synctest bubble it is certain which goroutines are asleep.
func TestWait_WhichAreWoken(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, from, l *Link)
		want int // of three waiters
	}{
		{"a frame wakes all", func(t *testing.T, from, l *Link) { send(t, from, numbered(l.MAC(), 1)) }, 3},
		{"a frame for another wakes none", func(t *testing.T, from, l *Link) { send(t, from, numbered(from.MAC(), 1)) }, 0},
		{"masked: a frame wakes none", func(t *testing.T, from, l *Link) {
			l.MaskWakeups(true)
			send(t, from, numbered(l.MAC(), 1))
		}, 0},
		{"unmasking wakes all", func(t *testing.T, from, l *Link) {
			l.MaskWakeups(true)
			send(t, from, numbered(l.MAC(), 1))
			synctest.Wait()
			l.MaskWakeups(false)
		}, 3},
		{"unmasking with nothing there wakes none", func(t *testing.T, from, l *Link) {
			l.MaskWakeups(true)
			l.MaskWakeups(false)
		}, 0},
		{"masked, and the frame was polled by another goroutine", func(t *testing.T, from, l *Link) {
			l.MaskWakeups(true)
			send(t, from, numbered(l.MAC(), 1))
			wantNumbers(t, "the poller", l, 1)
			l.MaskWakeups(false)
		}, 0},
		{"Close wakes all", func(t *testing.T, from, l *Link) { _ = l.Close() }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, err := Links(2)
				if err != nil {
					t.Fatal(err)
				}
				ended := startWaiters(links[1], 3)
				c.do(t, links[0], links[1])
				synctest.Wait()
				if len(ended) != c.want {
					t.Errorf("%d of 3 waiters returned, want %d", len(ended), c.want)
				}
				_ = links[1].Close() // ends the other waits, as the bubble must end empty
			})
		})
	}
}

// A needless wake-up shows in no result, as the waiter looks and sleeps again, but it costs the poller
// time.
func TestMask_WakesNoneInVain(t *testing.T) {
	links, err := Links(2)
	if err != nil {
		t.Fatal(err)
	}
	from, l := links[0], links[1]
	l.wakeup.waiters.Add(1) // a waiter that leaves the signal where it can be seen
	l.MaskWakeups(true)
	send(t, from, numbered(l.MAC(), 1))
	if len(l.wakeup.signal) != 0 {
		t.Error("a frame with wake-ups masked raised a signal")
	}
	wantNumbers(t, "the poller", l, 1)
	l.MaskWakeups(false)
	if len(l.wakeup.signal) != 0 {
		t.Error("MaskWakeups(false) with nothing there raised a signal")
	}
	send(t, from, numbered(l.MAC(), 2))
	if len(l.wakeup.signal) != 1 {
		t.Error("a frame raised no signal")
	}
}

func TestWait_DoesNotAllocate(t *testing.T) {
	links, err := Links(2)
	if err != nil {
		t.Fatal(err)
	}
	out, in := []transport.Frame{numbered(links[1].MAC(), 1)}, make([]transport.Frame, 1)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := links[0].Send(out); err != nil {
			t.Error(err)
		}
		if err := links[1].Wait(context.Background()); err != nil {
			t.Error(err)
		}
		_, _ = links[1].Poll(in)
	})
	if allocs != 0 {
		t.Errorf("Wait with a frame there: %v allocs, want 0", allocs)
	}
	answer := make(chan struct{})
	go func() { // answers, so that the other goroutine sleeps in Wait
		defer close(answer)
		back, in := []transport.Frame{numbered(links[0].MAC(), 1)}, make([]transport.Frame, 1)
		for links[1].Wait(context.Background()) == nil {
			if n, _ := links[1].Poll(in); n == 1 {
				_, _ = links[1].Send(back)
			}
		}
	}()
	allocs = testing.AllocsPerRun(100, func() {
		_, _ = links[0].Send(out)
		for n := 0; n == 0; n, _ = links[0].Poll(in) {
			_ = links[0].Wait(context.Background())
		}
	})
	if allocs != 0 {
		t.Errorf("asleep in Wait: %v allocs, want 0", allocs)
	}
	_ = links[1].Close()
	<-answer
}
