package memfifo_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// What was held up behind a handler that ended its goroutine is not done any more once the domain
// closes, though a Post comes meanwhile: the memory of windows is the program's.
func TestClose_WhatIsHeldIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx, d := limit(t), c.domains[1]
		q, w := c.fifo(t, 1, memfifo.MinFIFO), c.window(t, 1, 64)
		got := badHandler(t, d, runtime.Goexit)
		for range 3 { // the third one waits for room, and all that follows waits behind it
			must(t, c.domains[0].Remote(q.Key()).Push(ctx, make([]byte, 28)))
		}
		must(t, c.domains[0].Remote(memfifo.PublicKey(1, 5)).Push(ctx, []byte("bad")))
		must(t, c.domains[0].Remote(w.Key()).PutNotify(ctx, 0, []byte{1}))
		synctest.Wait()
		c.faults[1].Cut(true) // nothing that comes has the rest done
		outlive(func() { _, _, _ = q.TryPop(make([]byte, 28)) })
		if len(*got) != 1 || w.Notified() != 0 {
			t.Fatalf("%d records were handled, %d notifications: that is no test", len(*got), w.Notified())
		}
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		synctest.Wait()
		to := d.Remote(memfifo.Key{Node: 0, ID: 1})
		if err := d.Post(&memfifo.Parcel{To: to, Data: []byte{1}}); !errors.Is(err, memfifo.ErrClosed) || len(closed) > 0 {
			t.Errorf("Post while the domain closes: %v", err)
		}
		if w.Notified() != 0 || w.Bytes()[0] != 0 {
			t.Errorf("the window holds %d, %d notifications", w.Bytes()[0], w.Notified())
		}
		must(t, <-closed)
	})
}
