package fault_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A delayed frame comes when it is due, which ends a Wait, also one in progress.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, fault.Config{Delay: 1, DelayMin: 3 * time.Second, DelayMax: 3 * time.Second})
		start := time.Now()
		woken := make(chan time.Duration)
		go func() {
			for time.Since(start) < 3*time.Second {
				if err := b.Wait(context.Background()); err != nil {
					t.Error(err)
				}
				if got := poll(t, b, make([]transport.Frame, 4)); len(got) > 0 {
					break
				}
			}
			woken <- time.Since(start)
		}()
		synctest.Wait()
		if got := exchange(t, a, b, 1); len(got) != 0 {
			t.Errorf("came at once: %v", got)
		}
		if at := <-woken; at != 3*time.Second {
			t.Errorf("came after %v, want 3 s", at)
		}
		if c := b.Counts(); c.Delayed != 1 || c.Delivered != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// While wake-ups are masked, a frame that becomes due ends no Wait; MaskWakeups(false) does.
func TestMaskCoversDelayedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, fault.Config{Delay: 1, DelayMin: time.Second, DelayMax: time.Second})
		exchange(t, a, b, 1)
		woken := make(chan error, 1)
		wait := func() { woken <- b.Wait(t.Context()) }
		go wait() // before MaskWakeups(true), with the frame in the delay queue
		synctest.Wait()
		b.MaskWakeups(true)
		time.Sleep(10 * time.Second) // virtual; the frame has become due
		synctest.Wait()
		select {
		case err := <-woken:
			t.Fatalf("Wait with wake-ups masked: %v", err)
		default:
		}
		b.MaskWakeups(false)
		synctest.Wait()
		select {
		case err := <-woken:
			if err != nil {
				t.Errorf("Wait: %v", err)
			}
		default:
			t.Error("MaskWakeups(false) left the waiter asleep, with a frame due")
		}
		if got := poll(t, b, make([]transport.Frame, 4)); len(got) != 1 {
			t.Errorf("%d frames", len(got))
		}
		b.MaskWakeups(true)
		exchange(t, a, b, 1)
		go wait()
		synctest.Wait()
		b.MaskWakeups(false)
		time.Sleep(time.Second)
		if err := <-woken; err != nil {
			t.Errorf("Wait for a frame that was delayed with wake-ups masked: %v", err)
		}
	})
}
