package linktest

import (
	"context"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// earlyReturns is how often a Wait may return early while wake-ups are masked, because of the
// masking itself. On a link that ignores MaskWakeups it returns hundreds of times.
const earlyReturns = 2

// ifMasks runs a test on links that can mask wake-ups; the others promise nothing.
func ifMasks(test func(t *testing.T, a, b transport.Link, mask func(on bool))) func(t *testing.T, a, b transport.Link) {
	return func(t *testing.T, a, b transport.Link) {
		if m, ok := transport.As[transport.WakeupMasker](b); ok {
			test(t, a, b, m.MaskWakeups)
		}
	}
}

// maskSleeps: while wake-ups are masked, frames end no Wait, whether they are there at its start or
// arrive later; Poll gets them all the same.
func maskSleeps(t *testing.T, a, b transport.Link, mask func(on bool)) {
	mask(true)
	for round := range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), shortly)
		early := 0
		ended := startWait(func() (err error) { early, err = waitUntilError(ctx, b); return err })
		send(t, a, numberedBatch(b.MAC(), uint64(10*round), 10)...)
		if err := endOf(t, ended); !errors.Is(err, context.DeadlineExceeded) || early > earlyReturns {
			t.Errorf("masked: Wait returned %d times, then %v; want only the deadline to end it", early, err)
		}
		cancel()
	}
	mask(false)
	wantSeeds(t, receive(t, b, 30), 0, 30)
}

// maskOff: MaskWakeups(false) ends a Wait if there is something to poll, and only then.
func maskOff(t *testing.T, a, b transport.Link, mask func(on bool)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range uint64(20) {
		mask(true)
		ended := startWait(func() error { return b.Wait(ctx) })
		send(t, a, numbered(b.MAC(), i))
		mask(false)
		if err := endOf(t, ended); err != nil {
			t.Fatalf("Wait after MaskWakeups(false), with a frame there: %v", err)
		}
		wantSeeds(t, receive(t, b, 1), i, 1)
	}
	mask(true)
	mask(false)
	waitDeadline(t, b, a)
}

func maskClose(t *testing.T, _, b transport.Link, mask func(on bool)) {
	mask(true)
	ended := startWait(func() error { _, err := waitUntilError(context.Background(), b); return err })
	mustClose(t, b)
	wantClosed(t, "Wait with wake-ups masked", endOf(t, ended))
	mask(false)
	wantClosed(t, "Wait", b.Wait(context.Background()))
}
