package linktest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// earlyQuiet is how often a Wait may return early around calls of Quiet without having been woken
// by frames: a link that ignores Quiet returns hundreds of times.
const earlyQuiet = 2

// quietSleeps: with Quiet on, frames end no Wait; Poll gets them all the same.
func quietSleeps(t *testing.T, a, b transport.Link) {
	q, ok := transport.As[transport.WakeupMasker](b)
	if !ok {
		return
	}
	q.MaskWakeups(true)
	for round := range 3 { // the second and third time, frames are there already
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		result := make(chan error, 1)
		early := 0
		go func() {
			var err error
			early, err = waitUntilError(ctx, b)
			result <- err
		}()
		send(t, a, numberedBatch(b.MAC(), uint64(10*round), 10)...)
		if err := endOf(t, result); !errors.Is(err, context.DeadlineExceeded) || early > earlyQuiet {
			t.Errorf("Wait with wake-ups masked returned %d times, then %v; want only the deadline to end it", early, err)
		}
		cancel()
	}
	q.MaskWakeups(false)
	wantSeeds(t, receive(t, b, 30), 0, 30)
}

// quietOff: MaskWakeups(false) ends a Wait if there is something to poll, and leaves it if not.
func quietOff(t *testing.T, a, b transport.Link) {
	q, ok := transport.As[transport.WakeupMasker](b)
	if !ok {
		return
	}
	for i := range uint64(20) {
		q.MaskWakeups(true)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		started, result := make(chan struct{}), make(chan error, 1)
		go func() {
			close(started)
			result <- b.Wait(ctx)
		}()
		<-started
		for range 10 {
			runtime.Gosched() // most likely it sleeps in Wait after this
		}
		send(t, a, numbered(b.MAC(), i))
		q.MaskWakeups(false)
		if err := endOf(t, result); err != nil {
			t.Fatalf("Wait after MaskWakeups(false), with a frame there: %v", err)
		}
		cancel()
		wantSeeds(t, receive(t, b, 1), i, 1)
	}
	q.MaskWakeups(true)
	q.MaskWakeups(false)
	waitDeadline(t, b, a)
}

func quietClose(t *testing.T, _, b transport.Link) {
	q, ok := transport.As[transport.WakeupMasker](b)
	if !ok {
		return
	}
	q.MaskWakeups(true)
	ended := waiting(context.Background(), b)
	mustClose(t, b)
	wantClosed(t, "Wait with wake-ups masked", endOf(t, ended))
	q.MaskWakeups(false)
	wantClosed(t, "Wait", b.Wait(context.Background()))
}
