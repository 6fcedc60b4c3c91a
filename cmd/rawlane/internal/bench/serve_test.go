package bench

import (
	"context"
	"errors"
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

// Where node 0 is interrupted, or finds that it cannot measure, the others end as well, and say so.
func TestServe_Abandoned(t *testing.T) {
	for name, b := range map[string]messageBench{
		"interrupted": {measure: func(*client, context.Context, *result) error { return context.Canceled }},
		"too large":   {bench: bench{sizes: []int{1 << 20}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			served := make(chan error, 1)
			go func() { served <- serve(t.Context(), &node{ep: eps[1]}) }()
			ctx, interrupt := context.WithCancel(t.Context())
			measure := b.measure
			b.measure = func(c *client, ctx context.Context, r *result) error {
				interrupt()
				return measure(c, ctx, r)
			}
			if len(b.sizes) == 0 {
				b.sizes = []int{64}
			}
			start := time.Now()
			if err := b.part(ctx, &node{ep: eps[0]}); err == nil {
				t.Errorf("%s: node 0 has no error", name)
			}
			if err := <-served; !errors.Is(err, errAbandoned) || time.Since(start) > launch.Silence/10 {
				t.Errorf("%s: node 1 ends %v later with %v", name, time.Since(start), err)
			}
			interrupt()
		})
	}
}
