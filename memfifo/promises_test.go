package memfifo_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// What docs/memory-model.md promises, section by section.

// Order: a goroutine that pops a record sees the Put before it, and not the one after it, whatever
// the network does.
func TestPromise_OrderAcrossOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{Loss: 0.1, Duplicate: 0.1, Reorder: 0.3}, 5)
		ctx := limit(t)
		const rounds = 300
		w := c.window(t, 1, 8*rounds)
		q := c.fifo(t, 1, 64)
		r, push := c.domains[0].Remote(w.Key()), c.domains[0].Remote(q.Key())
		var putting sync.WaitGroup
		defer putting.Wait()
		putting.Go(func() {
			for i := range int64(rounds) {
				if err := errors.Join(r.Put(ctx, 8*i, []byte{1, 0, 0, 0, 0, 0, 0, 1}), push.Push(ctx, []byte{byte(i)})); err != nil {
					t.Error(err)
				}
			}
		})
		for i := range int64(rounds) {
			var b [1]byte
			if _, err := q.Pop(ctx, b[:]); err != nil || b[0] != byte(i) {
				t.Fatal(b, err)
			}
			if v, _ := w.Load(8 * i); v == 0 {
				t.Fatalf("record %d is here, and the word that was put before is not", i)
			}
		}
	})
}

// Order: what is done after Post lands behind the parcel.
func TestPromise_PutBehindParcel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{Loss: 0.05}, 6, 1<<20)
		must(t, c.domains[0].Post(&memfifo.Parcel{To: r, Data: make([]byte, 1<<20)}))
		must(t, r.Put(ctx, 1<<20-1, []byte{9}))
		must(t, r.Put(ctx, 0, []byte{8}))
		must(t, c.domains[0].Flush(ctx))
		if w.Bytes()[0] != 8 || w.Bytes()[1<<20-1] != 9 {
			t.Error("a parcel has overwritten what was put after it")
		}
	})
}

// What a reader may see: aligned words are written at once.
func TestPromise_WordsAreWhole(t *testing.T) {
	c := open(t, 2, 0, fault.Config{}, 0)
	ctx := limit(t)
	w := c.window(t, 1, 8)
	r := c.domains[0].Remote(w.Key())
	var putting sync.WaitGroup
	defer putting.Wait()
	putting.Go(func() {
		for v := range uint64(20_000) {
			if err := r.Put(ctx, 0, binary.NativeEndian.AppendUint64(nil, (v+1)*0x0001_0001_0001_0001)); err != nil {
				t.Error(err)
			}
		}
	})
	for last, v := uint64(0), uint64(0); v != 20_000*0x0001_0001_0001_0001; last = v {
		var err error
		if v, err = w.Load(0); err != nil || v%0x0001_0001_0001_0001 != 0 || v < last || ctx.Err() != nil {
			t.Fatalf("%x after %x, %v", v, last, err)
		}
	}
}

// FIFOs: a full one holds up all operations of its sender, for as long as it takes, and of no other
// node.
func TestPromise_AFullFIFOHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		ctx := limit(t)
		w := c.window(t, 1, 16)
		q := c.fifo(t, 1, 64)
		push := c.domains[0].Remote(q.Key())
		for i := range byte(9) { // 8 fit
			must(t, push.Push(ctx, []byte{i}))
		}
		must(t, c.domains[0].Remote(w.Key()).Put(ctx, 0, binary.NativeEndian.AppendUint64(nil, 1)))
		short, cancel := context.WithTimeout(ctx, 5*memfifo.DefaultPeerTimeout)
		defer cancel()
		if err := c.domains[0].Flush(short); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Flush behind a full FIFO: %v", err)
		}
		if v, _ := w.Load(0); v != 0 {
			t.Error("a Put has overtaken a Push that waits")
		}
		if _, err := c.domains[2].Remote(w.Key()).FetchAdd(ctx, 8, 1); err != nil {
			t.Errorf("another sender: %v", err)
		}
		if err := c.domains[2].Remote(q.Key()).TryPush(ctx, nil); !errors.Is(err, memfifo.ErrFull) {
			t.Errorf("TryPush: %v", err)
		}
		oldest, _ := q.Peek()
		q.Release(oldest)
		must(t, c.domains[0].Flush(ctx))
		if v, _ := w.Load(0); v != 1 {
			t.Error("the Put is not there")
		}
		// After Close what is there can be popped.
		must(t, push.Push(ctx, nil)) // waits
		must(t, q.Close())
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("a push that waited for a FIFO that was closed: %v", err)
		}
		for i := range byte(8) {
			var b [1]byte
			if n, err := q.Pop(ctx, b[:]); n != 1 || b[0] != i+1 || err != nil {
				t.Errorf("record %d: %d, %v", i, b, err)
			}
		}
		if _, err := q.Pop(ctx, nil); !errors.Is(err, memfifo.ErrClosed) {
			t.Errorf("popped from a FIFO that is closed: %v", err)
		}
	})
}

// Failure: every operation on a node that was down fails until Flush has said so; after that it
// works.
func TestPromise_DeathIsToldByFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 16)
		_, err := r.FetchAdd(ctx, 0, 1)
		must(t, err)
		c.faults[1].Cut(true)
		parcel := &memfifo.Parcel{To: r, Data: make([]byte, 8)}
		must(t, c.domains[0].Post(parcel))
		if _, err := r.FetchAdd(ctx, 0, 1); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("FetchAdd: %v", err)
		}
		if err := parcel.WaitRemote(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("WaitRemote: %v", err)
		}
		c.faults[1].Cut(false)
		if err := r.Put(ctx, 0, nil); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Put before Flush: %v", err)
		}
		if old, err := r.FetchAdd(ctx, 0, 1); old != 0 || !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("FetchAdd before Flush: %d, %v", old, err)
		}
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Flush: %v", err)
		}
		must(t, r.Put(ctx, 0, make([]byte, 8)))
		must(t, c.domains[0].Flush(ctx))
	})
}

// Refusals are counted until Flush; Revoke ends waits; operations on the node's own memory are done
// at once.
func TestPromise_RefusalsRevokeAndOwnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 16)
		for range 3 {
			must(t, r.Put(ctx, 16, []byte{1}))
		}
		var access *memfifo.AccessError
		if err := c.domains[0].Flush(ctx); !errors.As(err, &access) || access.Count != 3 {
			t.Errorf("three refusals: %v", err)
		}

		own := c.domains[1].Remote(w.Key())
		must(t, own.PutNotify(ctx, 8, binary.NativeEndian.AppendUint64(nil, 5)))
		if v, _ := w.Load(8); v != 5 || w.Notified() != 1 {
			t.Errorf("put here: %d, %d notifications", v, w.Notified())
		}
		if err := own.Put(ctx, 16, []byte{1}); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("beyond, here: %v", err)
		}
		q := c.fifo(t, 1, 64)
		push := c.domains[1].Remote(q.Key())
		for range 8 {
			must(t, push.Push(ctx, nil))
		}
		if err := push.Push(ctx, nil); !errors.Is(err, memfifo.ErrFull) {
			t.Errorf("pushed here, too much: %v", err)
		}

		ended := make(chan error)
		go func() {
			_, err := w.Wait(ctx, 1)
			ended <- err
		}()
		time.Sleep(time.Second)
		w.Revoke()
		if err := <-ended; !errors.Is(err, memfifo.ErrClosed) {
			t.Errorf("Wait for a window that was revoked: %v", err)
		}
	})
}

// What a node refuses of its own operations on itself comes back from these, and not from a Flush.
func TestOwnNode_RefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 1)
		d, q := c.domains[0], c.fifo(t, 0, memfifo.MinFIFO)
		w, err := d.Register(1, make([]byte, 8), memfifo.Write)
		must(t, err)
		r, ctx := d.Remote(w.Key()), limit(t)
		good, bad, behind := &memfifo.Parcel{To: r, Data: []byte("good")}, &memfifo.Parcel{To: r, Off: 8, Data: []byte("bad")}, &memfifo.Parcel{To: r}
		for what, err := range map[string]error{
			"Put":      r.Put(ctx, 8, []byte("x")),
			"Signal":   d.Remote(memfifo.Key{ID: 1}).Signal(ctx),
			"Push":     d.Remote(memfifo.Key{ID: 0}).Push(ctx, nil),
			"PostPush": d.Remote(memfifo.Key{ID: 0}).PostPush(nil),
			"PostPut":  d.PostPut(new(heard).put(r, 8, []byte("x"), r, "")),
			"Get":      r.Get(ctx, 0, make([]byte, 1)),
			"Post":     d.Post(good, bad, behind),
		} {
			if !errors.Is(err, memfifo.ErrAccess) {
				t.Errorf("%s: %v, want %v", what, err, memfifo.ErrAccess)
			}
		}
		if err := bad.WaitRemote(ctx); !good.Done() || string(w.Bytes()[:4]) != "good" || !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("the first parcel: done %v, %q; the second: %v", good.Done(), w.Bytes(), err)
		}
		own := d.Remote(q.Key())
		for err == nil {
			err = own.PostPush([]byte("record"))
		}
		if !errors.Is(err, memfifo.ErrFull) {
			t.Errorf("PostPush into a full FIFO: %v", err)
		}
		must(t, d.Flush(ctx))
	})
}
