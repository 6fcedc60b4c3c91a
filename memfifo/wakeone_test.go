package memfifo

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// A record wakes one of those who wait for it, the first, and not all of them.
func TestFIFO_ARecordWakesOne(t *testing.T) {
	d, _ := openRaw(t)
	f, err := d.NewFIFO(1, make([]byte, 1024))
	if err != nil {
		t.Fatal(err)
	}
	f.waiting.Add(3)
	d.mu.Lock()
	defer d.mu.Unlock()
	var waits [3]mcd.Completion
	for i := range waits {
		f.waiters = append(f.waiters, &waits[i])
	}
	for n := range waits {
		if !f.append(nil, []byte("a record")) {
			t.Fatal("there is no room")
		}
		for i := range waits {
			if woken := waits[i].Done(); woken != (i <= n) {
				t.Errorf("after %d records wait %d is woken: %v", n+1, i, woken)
			}
		}
	}
}

// Who was woken and leaves the record, or takes one of several, wakes the next one: nobody waits
// while there is a record.
func TestFIFO_WhoWasWokenWakesTheNext(t *testing.T) {
	for name, leave := range map[string]func(context.Context, *FIFO) error{
		"it has waited alone": func(ctx context.Context, f *FIFO) error { return f.Wait(ctx) },
		"its buffer is short": func(ctx context.Context, f *FIFO) error {
			if _, err := f.Pop(ctx, nil); !errors.Is(err, io.ErrShortBuffer) {
				return errors.New("the record has gone into no memory")
			}
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := openRaw(t)
			defer d.ep.Close()
			defer d.Close()
			f, err := d.NewFIFO(1, make([]byte, 1024))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			all.Go(func() {
				if err := leave(ctx, f); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait() // it is the first
			const others = 5
			sum := uint64(0)
			for range others {
				all.Go(func() {
					var b [8]byte
					if n, err := f.Pop(ctx, b[:]); n != len(b) || err != nil {
						t.Errorf("%s: %d bytes, %v", name, n, err)
					}
					d.mu.Lock()
					sum += binary.BigEndian.Uint64(b[:])
					d.mu.Unlock()
				})
			}
			synctest.Wait()
			d.mu.Lock()
			run := f.ring.begin()
			for i := range uint64(others) {
				run.append(binary.BigEndian.AppendUint64(nil, 1+i))
			}
			run.publish()
			f.waiters.wakeOne() // as applyPushes does for all of a frame
			d.mu.Unlock()
			all.Wait()
			if sum != others*(others+1)/2 {
				t.Errorf("%s: the records' sum is %d", name, sum)
			}
		})
	}
}

// Records that are there go to those who wait as their FIFO is closed, or the domain: each record
// has woken one of them at most by then.
func TestFIFO_RecordsOfAClosedOneGoToThoseWhoWait(t *testing.T) {
	for name, end := range map[string]func(*FIFO) error{
		"the FIFO":   (*FIFO).Close,
		"the domain": func(f *FIFO) error { return f.d.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := openRaw(t)
			defer d.ep.Close()
			defer d.Close()
			f, err := d.NewFIFO(1, make([]byte, 1024))
			if err != nil {
				t.Fatal(err)
			}
			const records = 3
			var all sync.WaitGroup
			var closed atomic.Int32
			for range records + 1 {
				all.Go(func() {
					var b [8]byte
					switch n, err := f.Pop(t.Context(), b[:]); {
					case errors.Is(err, ErrClosed):
						closed.Add(1)
					case n != len(b) || err != nil:
						t.Errorf("%s: %d bytes, %v", name, n, err)
					}
				})
			}
			synctest.Wait()
			f.pops.Lock() // who was woken has not come to the records yet
			d.mu.Lock()
			run := f.ring.begin()
			for i := range uint64(records) {
				run.append(binary.BigEndian.AppendUint64(nil, i))
			}
			run.publish()
			f.waiters.wakeOne()
			d.mu.Unlock()
			if err := end(f); err != nil {
				t.Error(err)
			}
			f.pops.Unlock()
			all.Wait()
			if left := f.Len(); left > 0 || closed.Load() != 1 {
				t.Errorf("%s is closed: %d waits of %d have ended with that, and %d bytes of records are left",
					name, closed.Load(), records+1, left)
			}
		})
	}
}
