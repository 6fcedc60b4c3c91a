package memfifo_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
)

// A long record of which a part came while nobody handled its id is refused, and its sender hears of
// that, also if the last part finds a handler.
func TestHandler_MadeAmidALongRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d := piped(t)
		ctx := limit(t)
		var got calls
		r := d[0].Remote(memfifo.PublicKey(1, 5))
		if err := while(eps, func() error { return r.TryPush(ctx, nil) }); !errors.Is(err, memfifo.ErrAccess) {
			t.Fatal(err)
		}
		pushed := make(chan error, 1)
		go func() { pushed <- r.Push(ctx, make([]byte, memfifo.MaxRecord)) }()
		synctest.Wait()
		for eps[1].Progress() { // what the congestion window lets go
		}
		_, err := d[1].Handle(5, got.config())
		must(t, err)
		err = while(eps, func() error { return errors.Join(<-pushed, d[0].Flush(ctx)) })
		if e, ok := errors.AsType[*memfifo.AccessError](err); !ok || e.Reason != memfifo.NoSuchID || e.Count != 1 {
			t.Errorf("%v, want that the record is refused", err)
		}
		must(t, r.Push(ctx, make([]byte, memfifo.MaxRecord)))
		must(t, while(eps, func() error { return d[0].Flush(ctx) }))
		if len(got.records) != 1 || d[1].Counters().Malformed > 0 {
			t.Errorf("%d records were handled, and %d malformed, want the later one", len(got.records), d[1].Counters().Malformed)
		}
	})
}
