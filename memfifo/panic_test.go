package memfifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// badHandler has node 1 handle id 5 by a function that does not return from the record "bad", and
// notes all.
func badHandler(t *testing.T, d *memfifo.Domain, end func()) (got *[]string) {
	t.Helper()
	got = new([]string)
	_, err := d.Handle(5, memfifo.HandlerConfig{Public: true, Record: func(_ memfifo.Sender, rec []byte) {
		if *got = append(*got, string(rec)); string(rec) == "bad" {
			end()
		}
	}})
	must(t, err)
	return got
}

// outlive calls a function that may panic or end its goroutine.
func outlive(do func()) {
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		defer func() { _ = recover() }()
		do()
	}()
	done.Wait()
}

// A handler that panics, or ends its goroutine, in a push to the own node or behind a Pop leaves no
// lock held, and its record counts as taken.
func TestHandler_ThatDoesNotReturn(t *testing.T) {
	for name, end := range noreturn.Ways {
		synctest.Test(t, func(t *testing.T) { // in the goroutine that pushes to its own node
			_, d := piped(t)
			got := badHandler(t, d[1], end)
			own := d[1].Remote(memfifo.PublicKey(1, 5))
			outlive(func() { _ = own.Push(t.Context(), []byte("bad")) })
			outlive(func() { _ = own.PostPush([]byte("bad")) })
			must(t, own.Push(t.Context(), []byte("good")))
			if s := fmt.Sprint(*got); s != "[bad bad good]" {
				t.Errorf("%s in a push: %s were handled", name, s)
			}
		})
		synctest.Test(t, func(t *testing.T) { // in the goroutine that pops
			eps, d := piped(t)
			ctx := limit(t)
			q, err := d[1].NewFIFO(1, make([]byte, memfifo.MinFIFO))
			must(t, err)
			got := badHandler(t, d[1], end)
			for range 3 { // the third one waits for room
				must(t, while(eps, func() error { return d[0].Remote(q.Key()).Push(ctx, make([]byte, 28)) }))
			}
			to := d[0].Remote(memfifo.PublicKey(1, 5))
			must(t, while(eps, func() error { return to.PushBatch(ctx, []byte("bad"), []byte("good")) }))
			flushed := make(chan error, 1)
			go func() { flushed <- d[0].Flush(ctx) }()
			synctest.Wait()
			settle(eps) // all wait behind the third record
			popped := 0
			for range 3 {
				outlive(func() {
					if _, ok, _ := q.TryPop(make([]byte, 28)); ok {
						popped++
					}
				})
			}
			must(t, while(eps, func() error { return <-flushed }))
			if s := fmt.Sprint(*got); s != "[bad good]" || popped != 2 || q.Len() > 0 {
				t.Errorf("%s in a pop: %s were handled, %d pops returned, %d bytes are left", name, s, popped, q.Len())
			}
		})
	}
}

// A handler that panics, or ends its goroutine, in one that polls in Flush unlocks nothing that is not
// locked, which would end the process.
func TestHandler_ThatDoesNotReturnInAFlush(t *testing.T) {
	for name, end := range noreturn.Ways {
		ctx, polls := limit(t), false
		for !polls && ctx.Err() == nil { // on a busy machine it may sleep in place of polling: then begin anew
			polls = endsInFlush(t, ctx, end)
		}
		if !polls {
			t.Errorf("%s: no Flush has polled", name)
		}
	}
}

// endsInFlush has a handler not return in a Flush, and reports whether one has polled at all.
func endsInFlush(t *testing.T, ctx context.Context, end func()) bool {
	t.Helper()
	eps, d := pipedWith(t, mcd.Config{Spin: time.Minute}) // in real time: Flush polls
	w, err := d[0].Register(1, make([]byte, 64), memfifo.All)
	must(t, err)
	got := badHandler(t, d[1], end)
	r := d[1].Remote(w.Key())
	must(t, while(eps, func() error { return errors.Join(r.Signal(ctx), d[1].Flush(ctx)) }))
	must(t, r.Signal(ctx))
	must(t, d[0].Remote(memfifo.PublicKey(1, 5)).Push(ctx, []byte("bad")))
	returned := false
	outlive(func() {
		turn, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_ = d[1].Flush(turn) // which node 0, as nobody polls there, does not answer
		returned = true
	})
	if returned {
		must(t, errors.Join(eps[0].Close(), eps[1].Close())) // among many open ones none polls
		return false
	}
	must(t, while(eps, func() error { return errors.Join(d[0].Flush(ctx), d[1].Flush(ctx)) }))
	if s := fmt.Sprint(*got); s != "[bad]" {
		t.Errorf("%s were handled", s)
	}
	return true
}
