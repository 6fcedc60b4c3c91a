package memfifo_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport/fault"
)

// Store wakes the waiters of the word, as an operation of another node does.
func TestWindow_StoreWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w := c.window(t, 0, 64)
		var waiting sync.WaitGroup
		begun := time.Now()
		for want := range uint64(3) {
			waiting.Go(func() {
				v, err := w.WaitWord(ctx, 8, func(v uint64) bool { return v > want })
				if err != nil || v <= want {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		for v := range uint64(3) {
			synctest.Wait()
			must(t, w.Store(8, v+1))
		}
		waiting.Wait()
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
	c := open(t, 2, 0, fault.Config{}, 0) // and none is lost between a look at the word and the sleep
	ctx := limit(t)
	w := c.window(t, 0, 16)
	const rounds = 2000
	go func() {
		for v := range uint64(rounds) {
			if _, err := w.WaitWord(ctx, 0, func(is uint64) bool { return is == v+1 }); err != nil {
				t.Errorf("round %d: %v", v, err)
				return
			}
			_ = w.Store(8, v+1)
		}
	}()
	for v := range uint64(rounds) {
		must(t, w.Store(0, v+1))
		_, err := w.WaitWord(ctx, 8, func(is uint64) bool { return is == v+1 })
		must(t, err)
	}
}

// What is put and got is the bytes that were asked for, and no others: of any length, at any place,
// also where words are written and read at once.
func TestWindow_EveryLengthAndPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w := c.window(t, 1, 32)
		r := c.domains[0].Remote(w.Key())
		for n := range 10 {
			for at := range 9 {
				before := bytes.Repeat([]byte{0xee}, 32)
				copy(w.Bytes(), before)
				data := []byte("0123456789")[:n]
				must(t, r.Put(ctx, int64(8+at), data))
				must(t, c.domains[0].Flush(ctx))
				copy(before[8+at:], data)
				if !bytes.Equal(w.Bytes(), before) {
					t.Errorf("%d bytes put at %d: %x, want %x", n, 8+at, w.Bytes(), before)
				}
				got := bytes.Repeat([]byte{0xdd}, n+8)
				must(t, r.Get(ctx, int64(8+at), got[:n]))
				if want := fmt.Appendf(nil, "%s\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", data); !bytes.Equal(got, want) {
					t.Errorf("%d bytes got at %d: %x, want %x", n, 8+at, got, want)
				}
			}
		}
	})
}
