package memfifo_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"

	"github.com/rawlane/rawlane/memfifo"
)

// writer is a goroutine of the model that operates on all nodes, its own too, and knows what its
// part of their memory has to be.
type writer struct {
	m       *model
	number  int
	rng     *rand.Rand
	d       *memfifo.Domain
	mem     [][]byte // by node
	end     []int    // where its last piece ended, by node
	own     []uint64 // the word that only it changes
	pushed  [][]int  // by node, and FIFO
	parcels []*memfifo.Parcel
}

func newWriter(m *model, number int) *writer {
	w := &writer{m: m, number: number, rng: rand.New(rand.NewPCG(m.seed, uint64(1+number))), d: m.sites[number/writers].d}
	for _, s := range m.sites {
		w.mem = append(w.mem, make([]byte, region))
		w.own = append(w.own, 0)
		w.end = append(w.end, 0)
		w.pushed = append(w.pushed, make([]int, len(s.fifos)))
	}
	return w
}

func (w *writer) ownWord() int64 { return int64(8 * (words + w.number)) }

// run does many operations, and then flushes.
func (w *writer) run(ctx context.Context) {
	for range w.m.each {
		w.m.ops.Add(1)
		k := w.rng.IntN(len(w.m.sites))
		if err := w.step(ctx, k, w.m.sites[k]); err != nil {
			w.m.t.Errorf("writer %d, to node %d: %v", w.number, k, err)
			return
		}
	}
	for _, q := range w.parcels {
		if err := errors.Join(q.Wait(ctx), q.WaitRemote(ctx)); err != nil {
			w.m.t.Errorf("writer %d: parcel: %v", w.number, err)
		}
	}
	if err := w.d.Flush(ctx); err != nil {
		w.m.t.Errorf("writer %d: %v", w.number, err)
	}
}

// size draws how long something is: all kinds of lengths, seldom long, or mostly.
func (w *writer) size(most int) int {
	n := [...]int{0, 1, 4, 8, 8, 64, w.rng.IntN(300), 1400 + w.rng.IntN(100), w.rng.IntN(9000), w.rng.IntN(most + 1), most}
	if w.m.heavy {
		return min(n[max(w.rng.IntN(len(n)), w.rng.IntN(len(n)))], most)
	}
	return min(n[min(w.rng.IntN(len(n)), w.rng.IntN(len(n)))], most)
}

// piece draws what to put where, and notes it in the model.
func (w *writer) piece(k int) (off int64, data []byte) {
	data = make([]byte, w.size(region))
	for i := range data {
		data[i] = byte(w.rng.Uint32())
	}
	at := w.rng.IntN(region - len(data) + 1)
	switch w.rng.IntN(4) {
	case 0, 1:
		at &^= 7
	case 2: // behind the last one
		at = min(w.end[k], region-len(data))
	}
	w.end[k] = at + len(data)
	copy(w.mem[k][at:], data)
	return regionAt(w.number) + int64(at), data
}

// step is one operation.
func (w *writer) step(ctx context.Context, k int, s *site) error {
	r := w.d.Remote(s.w.Key())
	op := w.rng.IntN(16)
	if w.m.heavy && w.rng.IntN(2) == 0 {
		op = 15
	}
	switch op {
	case 0, 1, 2:
		off, data := w.piece(k)
		return scribble(r.Put(ctx, off, data), data)
	case 3:
		s.notes.Add(1)
		off, data := w.piece(k)
		return scribble(r.PutNotify(ctx, off, data), data)
	case 4:
		var pieces []memfifo.Segment
		for range w.rng.IntN(5) {
			off, data := w.piece(k)
			pieces = append(pieces, memfifo.Segment{Off: off, Data: data})
		}
		return r.PutV(ctx, pieces...)
	case 5:
		s.notes.Add(1)
		return r.Signal(ctx)
	case 6:
		return w.get(ctx, r, k)
	case 7, 8, 9:
		return w.operate(ctx, r, k, s)
	case 10:
		return w.post(k, s, r)
	case 11:
		if err := w.d.Flush(ctx); err != nil {
			return err
		}
		for k, s := range w.m.sites {
			if !bytes.Equal(s.mem(w.number), w.mem[k]) {
				return errors.New("flushed, and not in place")
			}
		}
		return nil
	default:
		i := w.rng.IntN(len(s.fifos))
		return w.push(ctx, k, i, s.fifos[i])
	}
}

// scribble overwrites an argument, which is the caller's again.
func scribble(err error, data []byte) error {
	for i := range data {
		data[i] = 0x5a
	}
	return err
}

// get compares a part of the writer's region with the model.
func (w *writer) get(ctx context.Context, r *memfifo.Remote, k int) error {
	got := make([]byte, w.size(region))
	at := w.rng.IntN(region - len(got) + 1)
	if err := r.Get(ctx, regionAt(w.number)+int64(at), got); err != nil {
		return err
	}
	if !bytes.Equal(got, w.mem[k][at:][:len(got)]) {
		return errors.New("what was got is not what was put")
	}
	return nil
}

// operate changes words: shared ones, whose sum is known, or its own, whose value is.
func (w *writer) operate(ctx context.Context, r *memfifo.Remote, k int, s *site) error {
	word, v := w.rng.IntN(words), w.rng.Uint64N(1000)
	var old uint64
	var err error
	switch w.rng.IntN(4) {
	case 0:
		s.added[word].Add(v)
		_, err = r.FetchAdd(ctx, int64(8*word), v)
		return err
	case 1: // the same by hand
		s.added[word].Add(v)
		for now := uint64(0); ; now = old {
			if old, err = r.CompareSwap(ctx, int64(8*word), now, now+v); err != nil || old == now {
				return err
			}
		}
	case 2:
		old, err = r.Swap(ctx, w.ownWord(), v)
	case 3:
		old, err = r.FetchAdd(ctx, w.ownWord(), v-w.own[k])
	}
	if err == nil && old != w.own[k] {
		err = errors.New("a word that nobody else changes has changed")
	}
	w.own[k] = v
	return err
}

// post posts parcels, and uses those again that are done.
func (w *writer) post(k int, s *site, r *memfifo.Remote) error {
	off, data := w.piece(k)
	q := &memfifo.Parcel{}
	if n := len(w.parcels); n > 5 {
		i := w.rng.IntN(n)
		if err := errors.Join(w.parcels[i].Wait(context.Background()), w.parcels[i].WaitRemote(context.Background())); err != nil {
			return err
		}
		q = w.parcels[i]
	} else {
		w.parcels = append(w.parcels, q)
	}
	q.To, q.Off, q.Data, q.Notify = r, off, data, memfifo.Notify(w.rng.IntN(3))
	if q.Notify != memfifo.Never {
		s.notes.Add(1)
	}
	return w.d.Post(q)
}

// push appends records of all sizes.
func (w *writer) push(ctx context.Context, k, i int, q *memfifo.FIFO) error {
	next := func(most int) []byte {
		rec := stamped(w.number, w.pushed[k][i], w.size(most))
		w.pushed[k][i]++
		return rec
	}
	r, most := w.d.Remote(q.Key()), w.m.sites[k].most[i]
	var err error
	switch w.rng.IntN(4) {
	case 0:
		var recs [][]byte
		for range w.rng.IntN(20) {
			recs = append(recs, next(min(most, 1000)))
		}
		if k != w.number/writers {
			return r.PushBatch(ctx, recs...)
		}
		w.pushed[k][i] -= len(recs) // here it would be a TryPush of several
	case 1:
		err = r.TryPush(ctx, next(min(most, 300)))
	default:
		rec := next(most)
		err = scribble(r.Push(ctx, rec), rec)
	}
	if errors.Is(err, memfifo.ErrFull) || errors.Is(err, memfifo.ErrTooLarge) { // here, or in a frame
		w.pushed[k][i]--
		err = nil
	}
	return err
}
