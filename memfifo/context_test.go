package memfifo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// An operation whose context has ended before the call does nothing, on another node and here.
func TestContext_EndedBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		w := c.window(t, 1, 64)
		q := c.fifo(t, 1, 256)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for k, d := range c.domains {
			r, push := d.Remote(w.Key()), d.Remote(q.Key())
			for name, do := range map[string]func() error{
				"Put":         func() error { return r.Put(ended, 0, []byte{1}) },
				"PutV":        func() error { return r.PutV(ended, memfifo.Segment{Data: []byte{1}}) },
				"Signal":      func() error { return r.Signal(ended) },
				"FetchAdd":    func() error { _, err := r.FetchAdd(ended, 0, 1); return err },
				"Swap":        func() error { _, err := r.Swap(ended, 0, 1); return err },
				"CompareSwap": func() error { _, err := r.CompareSwap(ended, 0, 0, 1); return err },
				"Push":        func() error { return push.Push(ended, []byte{1}) },
				"PushBatch":   func() error { return push.PushBatch(ended, []byte{1}) },
				"TryPush":     func() error { return push.TryPush(ended, []byte{1}) },
			} {
				if err := do(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s from domain %d: %v", name, k, err)
				}
			}
			must(t, d.Flush(limit(t)))
		}
		synctest.Wait()
		if v, _ := w.Load(0); v != 0 || w.Notified() != 0 || q.Len() != 0 {
			t.Errorf("the word is %d, %d notifications, %d bytes in the FIFO", v, w.Notified(), q.Len())
		}
	})
}
