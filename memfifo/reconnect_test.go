package memfifo_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// PushReconnect goes on with a node that was down, unless the record is not for its next life.
func TestPushReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		_, r := c.handler(t, got.config())
		lose := func() {
			t.Helper()
			must(t, c.domains[0].Flush(ctx))
			c.faults[1].Cut(true)
			must(t, r.Push(ctx, []byte("lost")))
			time.Sleep(2 * memfifo.DefaultPeerTimeout)
			c.faults[1].Cut(false)
			if err := r.Push(ctx, []byte("refused")); !errors.Is(err, memfifo.ErrPeerDown) {
				t.Fatalf("a push to a node that was down: %v", err)
			}
		}
		lose()
		asked := 0
		no := func() bool { asked++; return false }
		if err := r.PushReconnect(ctx, []byte("unwanted"), no); !errors.Is(err, memfifo.ErrPeerDown) || asked != 1 {
			t.Errorf("%v, asked %d times", err, asked)
		}
		err := r.PushReconnect(ctx, []byte("unwanted"), no) // another goroutine may have heard that it was down
		if !errors.Is(err, memfifo.ErrPeerDown) || asked != 2 {
			t.Errorf("%v, asked %d times", err, asked)
		}
		must(t, r.PushReconnect(ctx, []byte("a"), func() bool { return true }))
		lose()
		must(t, r.PushReconnect(ctx, []byte("b"), func() bool { return true }))
		lose()
		must(t, r.PushReconnect(ctx, []byte("c"), nil))
		must(t, c.domains[0].Flush(ctx))
		synctest.Wait()
		var text []string
		for _, rec := range got.records {
			text = append(text, string(rec))
		}
		if !slices.Equal(text, []string{"a", "b", "c"}) {
			t.Errorf("%q were handled", text)
		}
		if err := c.domains[0].Remote(memfifo.PublicKey(9, 5)).PushReconnect(ctx, nil, nil); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("%v", err)
		}
		lose()
		ended, end := context.WithCancel(ctx)
		end()
		if err := r.PushReconnect(ended, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// What a node has refused before it was down is still told, to Flush.
func TestPushReconnect_KeepsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		_, r := c.handler(t, got.config())
		must(t, c.domains[0].Remote(memfifo.PublicKey(1, 77)).Put(ctx, 0, []byte("refused")))
		synctest.Wait()
		time.Sleep(time.Second) // the refusal is here
		c.faults[1].Cut(true)
		must(t, r.Push(ctx, []byte("lost")))
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		c.faults[1].Cut(false)
		must(t, r.PushReconnect(ctx, []byte("a"), nil))
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrAccess) || errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("flush: %v, want the refusal alone", err)
		}
	})
}
