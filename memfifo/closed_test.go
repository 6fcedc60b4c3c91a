package memfifo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// A frame that comes while a domain closes, and its port does not yet, does nothing: the memory of
// windows is the program's.
func TestReceive_NothingWhereClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := openRaw(t)
		w, err := d.Register(1, make([]byte, 8), All)
		if err != nil {
			t.Fatal(err)
		}
		w.key.Secret = fuzzKey
		put := func(b byte) {
			r.say(reliable.Requests, rec(opPut, flagNotify, uint16(1), uint64(fuzzKey), uint64(0), []byte{b}))
			synctest.Wait()
		}
		put(1)
		setClosed := func(closed bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.closed = closed
		}
		setClosed(true)
		before := d.Counters()
		put(2)
		d.mu.Lock()
		if err := (Sender{p: d.peer(1)}).Post(1, 0, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("an answer of a handler meanwhile: %v", err)
		}
		d.mu.Unlock()
		if w.Bytes()[0] != 1 || w.Notified() != 1 || d.Counters() != before {
			t.Errorf("the window holds %d, %d notifications, %+v", w.Bytes()[0], w.Notified(), d.Counters())
		}
		setClosed(false)
	})
}

// What has ended leaves nothing of it behind: no part of a record that is refused, no parcels, no
// replies, no memory of callers.
func TestFail_LeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := openRaw(t)
		q, err := d.NewFIFO(1, make([]byte, 1<<12))
		if err != nil {
			t.Fatal(err)
		}
		w, err := d.Register(1, make([]byte, 1<<20), All)
		if err != nil {
			t.Fatal(err)
		}
		w.key.Secret, q.key.Secret = fuzzKey, fuzzKey
		part := func(flags byte) {
			r.say(reliable.Requests, rec(opPush, flags, uint16(1), uint64(fuzzKey), uint32(80), make([]byte, 40)))
			synctest.Wait()
		}
		peer := func() *peer {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.peers[1]
		}
		part(flagFirst)
		if peer().partial == nil {
			t.Error("no part is kept: that is no test")
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		part(flagLast)
		if peer().partial != nil {
			t.Error("a part of a record that was refused is kept")
		}
		r.mute = true
		for range maxReplies {
			r.say(reliable.Requests, rec(opGet, 0, uint16(1), uint64(fuzzKey), uint64(0), uint32(1), uint32(1<<20)))
		}
		to := d.Remote(Key{Node: 1})
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = to.Get(soon, 0, make([]byte, 10))
		_ = to.TryPush(soon, make([]byte, 10))
		if err := d.Post(&Parcel{To: to, Data: make([]byte, 10)}, &Parcel{To: to, Data: make([]byte, 1<<20)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p := peer()
		d.mu.Lock()
		defer d.mu.Unlock()
		if p.parcels != 2 || len(p.replies) == 0 || p.unacked.Front() == nil {
			t.Errorf("%d parcels, %d replies: that is no test", p.parcels, len(p.replies))
		}
		p.fail(&PeerDownError{Node: 1})
		if p.parcels != 0 || len(p.replies)+len(p.pending) != 0 || p.unacked.Front() != nil || p.queue.Front() != nil {
			t.Errorf("%d parcels, %d replies, %d pending", p.parcels, len(p.replies), len(p.pending))
		}
		freed := 0
		for wr := d.pool.unused.Load(); wr != nil; wr = wr.nextUnused {
			freed++
			if wr.data != nil || wr.buf != nil {
				t.Error("a work request that was freed keeps its caller's memory")
			}
		}
		if freed == 0 {
			t.Error("no work request was freed: that is no test")
		}
	})
}
