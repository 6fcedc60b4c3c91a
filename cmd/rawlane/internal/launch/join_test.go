package launch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A machine that stood still as the time to look for the others ended has not looked for so long,
// and looks again: those that stood still with it are there soon.
func TestPatiently_Standstill(t *testing.T) {
	const timeout = 30 * time.Second
	for name, c := range map[string]struct {
		late time.Duration // by which the first look ends
		want int           // looks
	}{
		"on time":    {0, 1},
		"late":       {standstill / 2, 1},
		"standstill": {time.Minute, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			err := patiently(t.Context(), timeout, func(ctx context.Context) error {
				if looks++; looks > 1 {
					return ctx.Err()
				}
				<-ctx.Done()
				time.Sleep(c.late)
				return ctx.Err()
			})
			if looks != c.want || errors.Is(err, context.DeadlineExceeded) != (c.want == 1) {
				t.Errorf("%s: %d looks, want %d (%v)", name, looks, c.want, err)
			}
		})
	}
}

// What is not for want of time is not tried again, and nothing is once the caller's context is over.
func TestPatiently_OtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conflict := errors.New("conflict")
		looks := 0
		err := patiently(t.Context(), time.Second, func(context.Context) error { looks++; return conflict })
		if looks != 1 || !errors.Is(err, conflict) {
			t.Errorf("%d looks, %v", looks, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = patiently(ctx, time.Second, func(ctx context.Context) error {
			time.Sleep(time.Minute)
			cancel()
			return ctx.Err()
		})
		if err == nil {
			t.Error("no error of a look that was cut short")
		}
	})
}
