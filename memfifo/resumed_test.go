package memfifo_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
)

// A handler that answers a record that had to wait until replies have gone ends no work to its
// sender: what is queued for it later is sent.
func TestHandler_AnswersARecordThatWaitedForReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d := piped(t)
		ctx := limit(t)
		window, err := d[1].Register(1, make([]byte, 1<<16), memfifo.All)
		must(t, err)
		back, err := d[0].Register(1, make([]byte, 1<<20), memfifo.All)
		must(t, err)
		answers := 0
		_, err = d[0].Handle(6, memfifo.HandlerConfig{Public: true, Record: func(memfifo.Sender, []byte) { answers++ }})
		must(t, err)
		_, err = d[1].Handle(5, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
			if err := from.Post(6, 0, rec); err != nil {
				t.Error(err)
			}
		}})
		must(t, err)
		r := d[0].Remote(window.Key())
		must(t, while(eps, func() error { return r.Get(ctx, 0, make([]byte, 1)) }))
		var getting sync.WaitGroup
		for range 100 { // replies to more than are kept
			getting.Go(func() {
				if err := r.Get(ctx, 0, make([]byte, 1<<16)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		must(t, d[0].Remote(memfifo.PublicKey(1, 5)).Push(ctx, []byte{1}))
		for eps[1].Progress() { // all requests, before replies are acknowledged
		}
		if answers > 0 {
			t.Fatal("the record has not waited")
		}
		must(t, while(eps, func() error { getting.Wait(); return nil }))
		if answers != 1 {
			t.Errorf("%d answers", answers)
		}
		began := time.Now()
		must(t, while(eps, func() error { return d[1].Remote(back.Key()).Put(ctx, 0, make([]byte, 1<<20)) }))
		if took := time.Since(began); took > time.Second {
			t.Errorf("the put behind it took %v", took)
		}
	})
}
