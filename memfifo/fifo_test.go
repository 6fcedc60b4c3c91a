package memfifo_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// Records of every length come out unchanged, at every place of the ring, over its end and at it.
func TestFIFO_EveryLengthAtEveryPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		for i, size := range []int{64, 72, 80, 104, 200, 1001, 4096}[:enough(7, 6)] {
			mem := bytes.Repeat([]byte{0xa5}, size+16)
			q, err := c.domains[1].NewFIFO(uint16(i), mem[8:8+size])
			must(t, err)
			longest := size&^7/2 - 4
			b := make([]byte, longest)
			for _, d := range c.domains { // another node's, and the owner's own
				r := d.Remote(q.Key())
				for n := range longest + 1 {
					for range max(2, min(size/8, 30)) {
						rec := bytes.Repeat([]byte{byte(n)}, n)
						must(t, r.Push(ctx, rec))
						if got, err := q.Pop(ctx, b); got != n || err != nil || !bytes.Equal(b[:n], rec) {
							t.Fatalf("%d bytes of memory, a record of %d: %d, %v", size, n, got, err)
						}
					}
				}
				err := errors.Join(r.Push(ctx, make([]byte, longest+1)), d.Flush(ctx))
				if access, ok := errors.AsType[*memfifo.AccessError](err); !ok || access.Reason != memfifo.OutOfRange {
					t.Errorf("%d bytes of memory, a record of %d: %v", size, longest+1, err)
				}
			}
			if !bytes.Equal(mem[:8], mem[8+size:]) || mem[0] != 0xa5 {
				t.Errorf("%d bytes of memory: written around them", size)
			}
			if q.Len() != 0 && q.Len() >= size/2 {
				t.Errorf("an empty FIFO uses %d bytes", q.Len())
			}
		}
	})
}

func TestFIFO_TooLongForAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		q := c.fifo(t, 1, 1<<20)
		r := c.domains[0].Remote(q.Key())
		rec := stamped(0, 0, memfifo.MaxRecord+1)
		if err := r.Push(ctx, rec); !errors.Is(err, memfifo.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		if err := r.TryPush(ctx, rec[:2000]); !errors.Is(err, memfifo.ErrTooLarge) {
			t.Errorf("longer than a frame: %v", err)
		}
		must(t, r.Push(ctx, rec[:memfifo.MaxRecord]))
		b := make([]byte, memfifo.MaxRecord)
		if n, err := q.Pop(ctx, b); err != nil || !bytes.Equal(b[:n], rec[:memfifo.MaxRecord]) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if _, err := c.domains[0].NewFIFO(1, make([]byte, memfifo.MinFIFO-1)); err == nil {
			t.Error("a FIFO of 63 bytes")
		}
		if _, err := c.domains[1].NewFIFO(1, make([]byte, 64)); !errors.Is(err, memfifo.ErrTaken) {
			t.Errorf("%v", err)
		}
	})
}

func TestFIFO_AShortBufferTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		q := c.fifo(t, 1, 256)
		if r, ok := q.Peek(); ok || q.Release(r) {
			t.Errorf("%q in an empty FIFO", r.Data)
		}
		must(t, c.domains[0].Remote(q.Key()).PushBatch(ctx, []byte("a record"), []byte("another"), nil))
		must(t, c.domains[0].Flush(ctx))
		for range 3 {
			if n, err := q.Pop(ctx, make([]byte, 7)); n != 0 || !errors.Is(err, io.ErrShortBuffer) {
				t.Errorf("%d, %v", n, err)
			}
			if n, ok, err := q.TryPop(make([]byte, 7)); n != 0 || !ok || !errors.Is(err, io.ErrShortBuffer) {
				t.Errorf("%d, %v, %v: there is a record", n, ok, err)
			}
			if r, ok := q.Peek(); !ok || string(r.Data) != "a record" || cap(r.Data) != len(r.Data) {
				t.Errorf("%q, %v", r.Data, ok)
			}
		}
		first, _ := q.Peek()
		if !q.Release(first) || q.Release(first) {
			t.Error("a record is not released once")
		}
		b := make([]byte, 7)
		if n, ok, err := q.TryPop(b); !ok || err != nil || string(b[:n]) != "another" {
			t.Errorf("%q, %v, %v", b[:n], ok, err)
		}
		if n, err := q.Pop(ctx, nil); n != 0 || err != nil {
			t.Errorf("a record of no bytes: %d, %v", n, err)
		}
		if _, ok, err := q.TryPop(nil); ok || err != nil || q.Len() != 0 {
			t.Errorf("%v, %v, %d bytes in use", ok, err, q.Len())
		}
	})
}

func TestFIFO_AThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var all []*memfifo.FIFO
		for id := range uint16(1000) {
			q, err := c.domains[1].NewFIFO(id, make([]byte, 128))
			must(t, err)
			all = append(all, q)
		}
		for i := range 3 {
			for id, q := range all {
				must(t, c.domains[0].Remote(q.Key()).Push(ctx, stamped(id, i, 20)))
			}
		}
		must(t, c.domains[0].Flush(ctx))
		b := make([]byte, 20)
		for i := range 3 {
			for id, q := range all {
				n, err := q.Pop(ctx, b)
				must(t, err)
				if k, number, err := readStamp(b[:n]); k != id || number != i || err != nil {
					t.Fatalf("FIFO %d: record %d of %d, %v", id, number, k, err)
				}
			}
		}
	})
}

// A record whose sender dies in the middle of it is never seen.
func TestFIFO_ASenderDiesInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		ctx := limit(t)
		q := c.fifo(t, 1, 600_000)
		frames := 0
		must(t, c.faults[1].SetConfig(fault.Config{Loss: 1, Match: func(f *transport.Frame) bool { frames++; return frames > 40 }}))
		err := errors.Join(c.domains[0].Remote(q.Key()).Push(ctx, stamped(0, 0, 100_000)), c.domains[0].Flush(ctx))
		if !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		must(t, c.faults[1].SetConfig(fault.Config{}))
		must(t, c.domains[0].Remote(q.Key()).Push(ctx, stamped(0, 1, 100_000)))
		must(t, c.domains[2].Remote(q.Key()).Push(ctx, stamped(2, 0, 100_000)))
		must(t, errors.Join(c.domains[0].Flush(ctx), c.domains[2].Flush(ctx)))
		b := make([]byte, memfifo.MaxRecord)
		for range 2 {
			n, err := q.Pop(ctx, b)
			must(t, err)
			if sender, number, err := readStamp(b[:n]); err != nil || sender == 0 && number == 0 {
				t.Errorf("record %d of %d, %v", number, sender, err)
			}
		}
		if q.Len() != 0 {
			t.Errorf("%d bytes in use", q.Len())
		}
	})
}
