package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// held is a context that holds up who asks whether it is over, once.
type held struct {
	context.Context
	hold  time.Duration
	ended time.Time
}

func (h *held) Err() error {
	if h.ended.IsZero() {
		time.Sleep(h.hold)
		h.ended = time.Now()
	}
	return h.Context.Err()
}

// A node that stood still does not take that for the silence of node 0, which it notices all the
// same.
func TestEcho_StandstillIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		ping, err := eps[1].OpenPort(benchPing, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := &held{Context: t.Context(), hold: time.Minute}
		err = echo(ctx, ping, &turnRecords{})
		const want = launch.Silence * (silentTurns - 1) / silentTurns
		if after := time.Since(ctx.ended); err == nil || after != want {
			t.Errorf("%v, %v after it stood still; want an error after %v", err, after, want)
		}
	})
}
