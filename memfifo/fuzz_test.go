package memfifo

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

const fuzzKey = 0x4b4b4b4b4b4b4b4b

// The fuzzer's bytes are the records of frames in order, cut at two places: they change windows and
// FIFOs alone, within bounds.
func FuzzRecords(f *testing.F) {
	const id, key = uint16(1), uint64(fuzzKey)
	for _, seed := range [][][]byte{
		{rec(opPut, flagNotify, id, key, uint64(8), []byte("12345678")), rec(opGet, 0, id, key, uint64(0), uint32(7), uint32(256))},
		{rec(opPush, flagFirst|flagLast, id, key, uint32(4), []byte("four")), rec(opTryPush, 0, id, key, uint32(1), []byte("more"))},
		{rec(opPush, flagFirst, id, key, uint32(8), []byte("four")), rec(opPush, flagLast, id, key, uint32(8), []byte("more"))},
		{rec(opFetchAdd, 0, id, key, uint64(8), uint32(1), uint64(1)), rec(opSwap, 0, id, key, uint64(8), uint32(2), uint64(1)),
			rec(opCompareSwap, flagNotify, id, key, uint64(8), uint32(3), uint64(1), uint64(2)), rec(opFence, 0, uint32(4))},
		{bytes.Repeat(rec(opPush, flagFirst|flagLast, uint16(2), key, uint32(20), make([]byte, 20)), 5), rec(opFence, 0, uint32(4))},
		{bytes.Repeat(rec(opPut, 0, id, key, ^uint64(0), []byte{1}), 40)},
		{rec(opPut, 0, id, key, uint64(200), []byte("12345678")), bytes.Repeat(rec(opPutContinue, flagNotify, []byte("12345678")), 9), rec(opPutContinue, 0)},
	} {
		for _, v := range fuzzseed.Variants(bytes.Join(seed, nil)[:min(40, len(bytes.Join(seed, nil)))]) {
			f.Add(v, uint16(20), uint16(60), byte(0))
		}
		f.Add(bytes.Join(seed, nil), uint16(20), uint16(60), byte(0))
		f.Add(bytes.Join(seed, nil), uint16(0), uint16(0), byte(0)) // whole, in one frame
	}
	d, _ := openRaw(f)
	f.Fuzz(func(t *testing.T, b []byte, cut1, cut2 uint16, lane byte) {
		mem, ring, small := newGuarded(256), newGuarded(4096), newGuarded(MinFIFO)
		w, q, q2 := fuzzSite(t, d, mem, ring, small)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.peers = nil
		p, now := d.peer(1), clock.Now()
		p.conn.Handle(now, &reliable.Header{Kind: reliable.Hello, Src: 5, Sequence: 9}, nil)
		i := min(int(cut1), len(b))
		j := i + min(int(cut2), len(b)-i)
		for _, records := range [][]byte{b[:i], b[i:j], b[j:]} {
			if _, held := p.conn.Buffered(lane & 1); held {
				break // a connection would keep the next one
			}
			p.take(lane&1, bytes.Clone(records))
			p.advance(now)
		}
		if !mem.whole() || !ring.whole() || !small.whole() {
			t.Error("written around a window or FIFO")
		}
		if len(p.replies) > maxReplies || len(p.partial) > q.ring.longest() {
			t.Errorf("%d answers, %d bytes of a record", len(p.replies), len(p.partial))
		}
		for _, f := range []*FIFO{q, q2} {
			r := &f.ring
			for rec, end, ok := r.oldest(); ok; rec, end, ok = r.oldest() {
				if len(rec) > r.longest() || end > r.tail.Load() {
					t.Fatalf("a record of %d bytes, to %d of %d", len(rec), end, r.tail.Load())
				}
				r.head.Store(end)
			}
		}
		for range 1000 { // with room again, all goes on
			for _, f := range []*FIFO{q, q2} {
				f.ring.head.Store(f.ring.tail.Load())
			}
			records, ok := p.conn.Buffered(lane & 1)
			if !ok {
				break
			}
			p.replies = nil
			p.take(lane&1, records)
		}
		if _, held := p.conn.Buffered(lane & 1); held {
			t.Error("held, with room")
		}
		w.wake(nil)
		p.fail(ErrClosed)
		if len(q.senders.peers)+len(q2.senders.peers) != 0 || q.senders.count.Load()+q2.senders.count.Load() != 0 {
			t.Error("a peer that has failed is held")
		}
	})
}

// fuzzSite gives a domain a window and FIFOs of a known key.
func fuzzSite(t *testing.T, d *Domain, mem, ring, small guarded) (w *Window, q, q2 *FIFO) {
	d.mu.Lock()
	clear(d.windows)
	d.recent, d.recentQ = nil, nil
	clear(d.fifos)
	d.mu.Unlock()
	w, err := d.Register(1, mem.inside(), All)
	if err != nil {
		t.Fatal(err)
	}
	if q, err = d.NewFIFO(1, ring.inside()); err != nil {
		t.Fatal(err)
	}
	if q2, err = d.NewFIFO(2, small.inside()); err != nil {
		t.Fatal(err)
	}
	w.key.Secret, q.key.Secret, q2.key.Secret = fuzzKey, fuzzKey, fuzzKey
	return w, q, q2
}

// postAll posts puts: one that fits a frame, one of another node behind it, and two that are longer
// than the window, of which one is taken back. It returns what their Sent is told.
func postAll(t *testing.T, p *peer) *[]error {
	told := new([]error)
	put := func(node mcd.NodeID, size int, next *PostedPut) *PostedPut {
		return &PostedPut{
			Window: Key{Node: 1}, Tail: Key{Node: node}, Data: make([]byte, size), Record: []byte("record"),
			Sent: func(err error) *PostedPut { *told = append(*told, err); return next },
		}
	}
	long := 2 * reliable.Window * p.d.frameSize
	p.postPut(put(1, 8, put(2, 8, nil)))
	p.postPut(put(1, long, nil))
	p.sendQueued(clock.Now())
	if p.posts != 1 || len(*told) != 2 || (*told)[0] != nil || !errors.Is((*told)[1], errOtherNode) {
		t.Errorf("%d puts are posted; told %v", p.posts, *told)
	}
	p.dropPosted()
	if p.posts != 0 || p.queue.Front() != nil || len(*told) != 3 || (*told)[2] != ErrClosed { //nolint:errorlint // the very value
		t.Errorf("%d puts are posted; told %v", p.posts, *told)
	}
	p.postPut(put(1, long, nil))
	return told
}

// The fuzzer's bytes are replies while requests are pending: they write nothing but a Get's buffer,
// and each request ends once.
func FuzzReplies(f *testing.F) {
	f.Add(rec(opData, 0, uint32(1), uint32(0), make([]byte, 64)))
	f.Add(append(rec(opData, 0, uint32(1), uint32(0), make([]byte, 30)), rec(opData, 0, uint32(1), uint32(30), make([]byte, 34))...))
	f.Add(append(rec(opValue, 0, uint32(2), uint64(9)), rec(opError, 0, uint32(3), uint8(2))...))
	f.Add(append(rec(opRefused, 0, uint16(2), uint8(9)), rec(opValue, 0, uint32(4), uint64(3))...))
	d, _ := openRaw(f)
	f.Cleanup(func() { // else Close waits for what the last peer owes
		d.mu.Lock()
		defer d.mu.Unlock()
		d.peers = nil
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		buf := newGuarded(64)
		d.mu.Lock()
		d.peers, d.lastID = nil, 0
		p, now := d.peer(1), clock.Now()
		p.issued = 3
		var calls []*workRequest
		for _, what := range []request{{op: opGet, buf: buf.inside()}, {op: opFetchAdd}, {op: opTryPush}, {op: opFence}, {op: opGet}} {
			wr := d.newRequest(p, &what)
			p.queue.PushBack(&wr.node, wr)
			calls = append(calls, wr)
		}
		if p.encodeQueued(now, p.nextTurn(now)) || p.queue.Front() != nil {
			t.Error("not all requests are in frames")
		}
		told := postAll(t, p)
		p.take(reliable.Replies, b)
		if !buf.whole() {
			t.Error("written around the buffer")
		}
		for _, c := range calls {
			if c.remote.Done() == (p.pending[c.requestID] == c) {
				t.Errorf("request %d: done %v", c.requestID, c.remote.Done())
			}
			if c.received < 0 || c.received > len(c.buf) {
				t.Errorf("request %d: %d bytes have come of %d", c.requestID, c.received, len(c.buf))
			}
		}
		p.fail(&PeerDownError{Node: 1})
		if p.posts != 0 || len(*told) != 4 || !errors.Is((*told)[3], ErrPeerDown) {
			t.Errorf("%d posted puts are left; told %v", p.posts, *told)
		}
		d.mu.Unlock()
		for _, c := range calls {
			_, _ = d.wait(context.Background(), c)
		}
		if len(p.pending) != 0 || p.confirmed > p.issued {
			t.Errorf("%d requests are left; %d of %d are in place", len(p.pending), p.confirmed, p.issued)
		}
		for _, refused := range p.refused {
			_ = refused.Error()
		}
	})
}
