package memfifo_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// calls is what a handler's functions were called with. They run one at a time, and a test reads
// them behind a Flush and synctest.Wait.
type calls struct {
	from    []mcd.NodeID
	records [][]byte
	down    []*memfifo.PeerDownError
}

func (l *calls) config() memfifo.HandlerConfig {
	return memfifo.HandlerConfig{
		Record: func(from memfifo.Sender, rec []byte) {
			l.from = append(l.from, from.Node())
			l.records = append(l.records, bytes.Clone(rec))
		},
		Down:   func(err *memfifo.PeerDownError) { l.down = append(l.down, err) },
		Public: true,
	}
}

// handler has node 1 handle id 5 publicly.
func (c *cluster) handler(t testing.TB, cfg memfifo.HandlerConfig) (h *memfifo.Handler, r *memfifo.Remote) {
	t.Helper()
	h, err := c.domains[1].Handle(5, cfg)
	must(t, err)
	return h, c.domains[0].Remote(memfifo.PublicKey(1, 5))
}

// Records of all lengths, by Push, PushBatch, TryPush and PostPush, are handled once, whole and in
// order, also over a network that loses, duplicates and reorders frames.
func TestHandler_EachRecordOnceAndInOrder(t *testing.T) {
	for _, f := range []fault.Config{{}, {Loss: 0.1, Duplicate: 0.1, Reorder: 0.1}} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, f, 3)
			ctx := limit(t)
			var got calls
			_, r := c.handler(t, got.config())
			var want [][]byte
			send := func(size int, push func(rec []byte) error) {
				rec := bytes.Repeat([]byte{byte(len(want))}, size)
				must(t, push(rec))
				want = append(want, rec)
			}
			one := func(rec []byte) error { return r.Push(ctx, rec) }
			for size := range 200 {
				send(size*7, one)
				send(size, func(rec []byte) error { return r.PushBatch(ctx, rec) })
				send(size, func(rec []byte) error { return r.TryPush(ctx, rec) })
				must(t, c.domains[0].Flush(ctx))
				send(c.domains[0].MaxFrameRecord()-size, r.PostPush)
			}
			send(memfifo.MaxRecord, one)
			must(t, c.domains[0].Flush(ctx))
			synctest.Wait()
			if len(got.records) != len(want) {
				t.Fatalf("%d records were pushed, and %d handled", len(want), len(got.records))
			}
			for i := range want {
				if !bytes.Equal(got.records[i], want[i]) || got.from[i] != 0 {
					t.Fatalf("record %d: %d bytes of node %d, want %d of node 0", i, len(got.records[i]), got.from[i], len(want[i]))
				}
			}
		})
	}
}

// A handler's key, id and end are as a FIFO's.
func TestHandler_Refusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		cfg := got.config()
		h, r := c.handler(t, cfg)
		q := c.fifo(t, 1, 64) // id 1
		cfg.Public = false
		private, err := c.domains[1].Handle(6, cfg)
		must(t, err)
		refused := func(r *memfifo.Remote, want memfifo.Refusal) {
			t.Helper()
			for _, push := range []func() error{
				func() error { return errors.Join(r.Push(ctx, []byte{1}), c.domains[0].Flush(ctx)) },
				func() error { return r.TryPush(ctx, []byte{1}) },
				func() error { return errors.Join(r.PostPush([]byte{1}), c.domains[0].Flush(ctx)) },
			} {
				if e, ok := errors.AsType[*memfifo.AccessError](push()); !ok || e.Reason != want {
					t.Errorf("%v, want %v", e, want)
				}
			}
		}
		refused(c.domains[0].Remote(memfifo.PublicKey(1, 6)), memfifo.WrongKey)
		refused(c.domains[0].Remote(memfifo.Key{Node: 1, ID: 5, Secret: 1}), memfifo.WrongKey)
		refused(c.domains[0].Remote(memfifo.PublicKey(1, 7)), memfifo.NoSuchID)
		must(t, c.domains[0].Remote(private.Key()).TryPush(ctx, []byte{2}))
		must(t, r.TryPush(ctx, []byte{3}))
		for _, id := range []uint16{1, 5} {
			if _, err := c.domains[1].Handle(id, cfg); !errors.Is(err, memfifo.ErrTaken) {
				t.Errorf("id %d is taken: %v", id, err)
			}
		}
		if _, err := c.domains[1].NewFIFO(5, make([]byte, 64)); !errors.Is(err, memfifo.ErrTaken) {
			t.Errorf("a handler's id for a FIFO: %v", err)
		}
		if _, err := c.domains[1].Handle(8, memfifo.HandlerConfig{}); err == nil {
			t.Error("a handler without a function")
		}
		must(t, q.Close())
		must(t, h.Close())
		must(t, h.Close())
		refused(r, memfifo.NoSuchID)
		again, err := c.domains[1].Handle(5, cfg)
		must(t, err)
		if again.Key().Secret == 0 || again.Key() == private.Key() {
			t.Errorf("key %v is no secret", again.Key())
		}
		must(t, c.domains[0].Remote(again.Key()).TryPush(ctx, []byte{4}))
		synctest.Wait()
		if fmt.Sprint(got.records) != "[[2] [3] [4]]" {
			t.Errorf("handled: %v", got.records)
		}
		must(t, c.domains[1].Close())
		if _, err := c.domains[1].Handle(9, cfg); !errors.Is(err, memfifo.ErrClosed) {
			t.Errorf("of a closed domain: %v", err)
		}
		if err := errors.Join(again.Expect(0), h.Expect(0)); !errors.Is(err, memfifo.ErrClosed) {
			t.Errorf("Expect of a closed handler: %v", err)
		}
	})
}

// The function answers by Sender.Post, and a node's records to itself are handled, too.
func TestHandler_AnswersAndItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var answers calls
		_, err := c.domains[0].Handle(9, answers.config())
		must(t, err)
		var own error
		_, r := c.handler(t, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
			err := from.Post(9, 0, append([]byte{77}, rec...))
			if from.Node() == 1 {
				own = err
			} else if err != nil {
				t.Error(err)
			}
		}})
		for i := range 100 {
			must(t, r.Push(ctx, []byte{byte(i)}))
		}
		must(t, c.domains[0].Flush(ctx))
		synctest.Wait()
		for i, rec := range answers.records {
			if !bytes.Equal(rec, []byte{77, byte(i)}) || answers.from[i] != 1 {
				t.Fatalf("answer %d: %v of node %d", i, rec, answers.from[i])
			}
		}
		if len(answers.records) != 100 {
			t.Errorf("%d answers to 100 records", len(answers.records))
		}
		must(t, c.domains[1].Remote(memfifo.PublicKey(1, 5)).Push(ctx, []byte{1}))
		if !errors.Is(own, memfifo.ErrBusy) {
			t.Errorf("Post to itself: %v", own)
		}
		must(t, c.domains[1].Remote(memfifo.PublicKey(0, 9)).PostPush([]byte{8}))
		must(t, c.domains[0].Remote(memfifo.PublicKey(0, 9)).PostPush([]byte{9}))
		must(t, c.domains[1].Flush(ctx))
		synctest.Wait()
		if n := len(answers.records); n != 102 {
			t.Errorf("%d records, want 102", n)
		}
	})
}

// PostPush and Post do not wait: they are refused while a window is full, or a record in parts waits,
// and the records that were taken arrive.
func TestHandler_PostPushDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		_, r := c.handler(t, got.config())
		if err := r.PostPush(make([]byte, c.domains[0].MaxFrameRecord()+1)); !errors.Is(err, memfifo.ErrTooLarge) {
			t.Errorf("longer than a frame: %v", err)
		}
		if err := c.domains[0].Remote(memfifo.PublicKey(7, 5)).PostPush(nil); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("to nobody: %v", err)
		}
		must(t, r.Push(ctx, nil))
		must(t, c.domains[0].Flush(ctx))
		c.faults[0].Cut(true)
		taken := 0
		rec := make([]byte, c.domains[0].MaxFrameRecord()-100) // parts of some are in two frames
		for err := error(nil); err == nil; taken++ {
			binary.BigEndian.PutUint32(rec, uint32(taken))
			if err = r.PostPush(rec); err != nil && !errors.Is(err, memfifo.ErrBusy) {
				t.Fatal(err)
			}
		}
		waits := make(chan error)
		go func() { waits <- r.Push(ctx, make([]byte, 5000)) }()
		synctest.Wait()
		must(t, r.PostPush([]byte("last"))) // there is room for so little, and the one that waits has not begun
		c.faults[0].Cut(false)
		must(t, <-waits)
		must(t, c.domains[0].Flush(ctx))
		synctest.Wait()
		if taken < 100 || len(got.records) != taken+2 {
			t.Fatalf("%d records were taken, and %d handled", taken, len(got.records))
		}
		for i, rec := range got.records[1:taken] {
			if n := binary.BigEndian.Uint32(rec); int(n) != i {
				t.Fatalf("record %d is number %d", i, n)
			}
		}
		if end := got.records[taken:]; string(end[0]) != "last" || len(end[1]) != 5000 {
			t.Errorf("records of %d and %d bytes are at the end", len(end[0]), len(end[1]))
		}
		c.faults[0].Cut(true)
		const long = 3 // do not fit the window, and one is in parts
		for range long {
			go func() { waits <- r.Push(ctx, make([]byte, memfifo.MaxRecord)) }()
		}
		synctest.Wait()
		if err := r.PostPush(nil); !errors.Is(err, memfifo.ErrBusy) {
			t.Errorf("before one that is in parts: %v", err)
		}
		c.faults[0].Cut(false)
		for range long {
			must(t, <-waits)
		}
		must(t, c.domains[0].Flush(ctx))
		if n := len(got.records); n != taken+2+long {
			t.Errorf("%d records at the end, want %d", n, taken+2+long)
		}
	})
}

// Down is told of a peer that leaves, or restarts, and of one that dies without a word only if it is
// expected. Pushes go on after a Flush.
func TestHandler_HearsWhoIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		h, r := c.handler(t, got.config())
		for k := range 4 {
			must(t, c.domains[k].Remote(h.Key()).Push(ctx, []byte{byte(k)}))
		}
		must(t, c.domains[0].Flush(ctx))
		must(t, h.Expect(0))
		must(t, h.Expect(0))
		must(t, h.Expect(1))
		must(t, h.Expect(2))
		h.Unexpect(2)
		h.Unexpect(2)
		if err := h.Expect(9); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("%v", err)
		}
		time.Sleep(5 * memfifo.DefaultPeerTimeout)
		synctest.Wait()
		if len(got.down) > 0 {
			t.Fatalf("all are up: %v", got.down)
		}
		c.faults[0].Cut(true)
		c.faults[2].Cut(true) // not expected any more
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		synctest.Wait()
		if len(got.down) != 1 || got.down[0].Node != 0 || got.down[0].Reason != memfifo.Silent {
			t.Fatalf("node 0 is cut off: %v", got.down)
		}
		c.faults[0].Cut(false)
		must(t, c.domains[3].Close())
		synctest.Wait()
		if len(got.down) != 2 || got.down[1].Node != 3 || got.down[1].Reason != memfifo.Left {
			t.Fatalf("node 3 has left: %v", got.down)
		}
		for err := memfifo.ErrPeerDown; errors.Is(err, memfifo.ErrPeerDown); {
			must(t, ctx.Err())
			err = errors.Join(r.Push(ctx, []byte("again")), c.domains[0].Flush(ctx))
		}
		synctest.Wait()
		if last := got.records[len(got.records)-1]; string(last) != "again" {
			t.Errorf("the last record is %q", last)
		}
	})
}

// Expect from within the function, as the first record of a sender comes.
func TestHandler_ExpectsWhoeverPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var got calls
		cfg := got.config()
		cfg.Record = func(from memfifo.Sender, _ []byte) { from.Expect() }
		_, r := c.handler(t, cfg)
		must(t, r.Push(ctx, nil))
		must(t, c.domains[0].Flush(ctx))
		must(t, c.domains[1].Remote(memfifo.PublicKey(1, 5)).Push(ctx, nil))
		c.faults[0].Cut(true)
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		synctest.Wait()
		if len(got.down) != 1 || got.down[0].Reason != memfifo.Silent {
			t.Errorf("node 0 is cut off: %v", got.down)
		}
	})
}

// A batch that fails in the middle says how far it has come.
func TestBatchError_SaysHowFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		var got calls
		_, r := c.handler(t, got.config())
		err := r.PushBatch(limit(t), nil, nil, make([]byte, memfifo.MaxRecord+1), nil)
		if e, ok := errors.AsType[*memfifo.BatchError](err); !ok || e.Done != 2 || !errors.Is(err, memfifo.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		err = r.PutV(limit(t), memfifo.Segment{Off: -1})
		if e, ok := errors.AsType[*memfifo.BatchError](err); !ok || e.Done != 0 {
			t.Errorf("%v", err)
		}
	})
}
