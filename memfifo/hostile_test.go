package memfifo

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// A hostile peer's records write nothing but what a key allows, and are counted.
func TestHostile_Records(t *testing.T) {
	const id = uint16(1)
	const key, wrong = uint64(77), uint64(78)
	put := func(off uint64, n int) []byte { return rec(opPut, 0, id, key, off, bytes.Repeat([]byte{1}, n)) }
	for _, x := range []struct {
		name    string
		lane    reliable.Lane
		records []byte
		want    Counters
	}{
		{"nothing", reliable.Requests, nil, Counters{}},
		{"half a head", reliable.Requests, []byte{1, 2}, Counters{Malformed: 1}},
		{"opcode 0", reliable.Requests, make([]byte, 100), Counters{Malformed: 1}},
		{"an opcode that nobody knows", reliable.Requests, rec(opcodes, 0), Counters{Malformed: 1}},
		{"a Put that ends early", reliable.Requests, put(0, 8)[:20], Counters{Malformed: 1}},
		{"a Put that lies about its length", reliable.Requests, append([]byte{byte(opPut), 0, 0xff, 0xff}, put(0, 8)[4:]...), Counters{Malformed: 1}},
		{"a Put before the beginning", reliable.Requests, put(math.MaxUint64, 1), Counters{Refused: 1}},
		{"a Put whose end overflows", reliable.Requests, put(math.MaxUint64-3, 8), Counters{Refused: 1}},
		{"a Put over the end", reliable.Requests, put(57, 8), Counters{Refused: 1}},
		{"nothing put behind the end", reliable.Requests, put(65, 0), Counters{Refused: 1}},
		{"nothing put at the end", reliable.Requests, put(64, 0), Counters{}},
		{"more of no Put", reliable.Requests, rec(opPutContinue, 0, []byte{1}), Counters{Malformed: 1}},
		{"more over the end", reliable.Requests, append(put(64, 0), rec(opPutContinue, 0, []byte{1})...), Counters{Refused: 1}},
		{"more behind one refused", reliable.Requests, append(put(57, 8), rec(opPutContinue, 0, []byte{1})...), Counters{Refused: 2}},
		{"more behind the last offset of all", reliable.Requests, append(put(math.MaxUint64, 1), rec(opPutContinue, 0, make([]byte, 65))...), Counters{Refused: 2}},
		{"a wrong key", reliable.Requests, rec(opPut, 0, id, wrong, uint64(0), []byte{1}), Counters{Refused: 1}},
		{"another id", reliable.Requests, rec(opPut, 0, id+1, key, uint64(0), []byte{1}), Counters{Refused: 1}},
		{"a Put in the lane of replies", reliable.Replies, put(0, 8), Counters{Malformed: 1}},
		{"a reply in the lane of requests", reliable.Requests, rec(opValue, 0, uint32(1), uint64(1)), Counters{Malformed: 1}},
		{"a reply to no call", reliable.Replies, rec(opValue, 0, uint32(9), uint64(1)), Counters{Orphans: 1}},
		{"data to no call", reliable.Replies, rec(opData, 0, uint32(9), uint32(0), []byte{1}), Counters{Orphans: 1}},
		{"an error to no call", reliable.Replies, rec(opError, 0, uint32(9), uint8(200)), Counters{Orphans: 1}},
		{"a Get of 4 GB", reliable.Requests, rec(opGet, 0, id, key, uint64(0), uint32(1), uint32(math.MaxUint32)), Counters{Refused: 1}},
		{"a Get whose end overflows", reliable.Requests, rec(opGet, 0, id, key, uint64(math.MaxUint64), uint32(1), uint32(2)), Counters{Refused: 1}},
		{"a Get with data", reliable.Requests, rec(opGet, 0, id, key, uint64(0), uint32(1), uint32(8), []byte{1, 2, 3}), Counters{}},
		{"half a word", reliable.Requests, rec(opFetchAdd, 0, id, key, uint64(4), uint32(1), uint64(1)), Counters{Refused: 1}},
		{"a word behind the end", reliable.Requests, rec(opSwap, 0, id, key, uint64(64), uint32(1), uint64(1)), Counters{Refused: 1}},
		{"a word over the end", reliable.Requests, rec(opCompareSwap, 0, id, key, uint64(57), uint32(1), uint64(1), uint64(0)), Counters{Refused: 1}},
		{"a Push longer than it says", reliable.Requests, rec(opPush, flagFirst|flagLast, id, key, uint32(3), []byte("four")), Counters{Malformed: 1}},
		{"a Push shorter than it says", reliable.Requests, rec(opPush, flagFirst|flagLast, id, key, uint32(5), []byte("four")), Counters{Malformed: 1}},
		{"a Push of 4 GB", reliable.Requests, rec(opPush, flagFirst|flagLast, id, key, uint32(math.MaxUint32), []byte("four")), Counters{Refused: 1}},
		{"the last part of no Push", reliable.Requests, rec(opPush, flagLast, id, key, uint32(9), []byte("four")), Counters{Malformed: 1}},
		{"a part of more than there is", reliable.Requests, rec(opPush, flagFirst, id, key, uint32(3), []byte("four")), Counters{Malformed: 1}},
		{"a TryPush that is too long", reliable.Requests, rec(opTryPush, 0, id, key, uint32(1), make([]byte, 100)), Counters{Refused: 1}},
		{"a Put behind what is malformed", reliable.Requests, append(rec(opcodes, 0), put(0, 8)...), Counters{Malformed: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, r := openRaw(t)
			mem, ring := newGuarded(64), newGuarded(128)
			w, err := d.Register(id, mem.inside(), All)
			if err != nil {
				t.Fatal(err)
			}
			q, err := d.NewFIFO(id, ring.inside())
			if err != nil {
				t.Fatal(err)
			}
			w.key.Secret, q.key.Secret = key, key
			if !r.say(x.lane, x.records) {
				t.Fatalf("%s: not taken", x.name)
			}
			synctest.Wait()
			got := d.Counters()
			if got.Malformed != x.want.Malformed || got.Refused != x.want.Refused || got.Orphans != x.want.Orphans || got.UnknownNode != 1 {
				t.Errorf("%s: %+v", x.name, got)
			}
			if !mem.whole() || !ring.whole() || !bytes.Equal(w.Bytes(), make([]byte, 64)) || q.Len() != 0 {
				t.Errorf("%s: something was written", x.name)
			}
			if !r.say(reliable.Requests, rec(opPut, flagNotify, id, key, uint64(0), []byte{42})) {
				t.Errorf("%s: nothing is taken any more", x.name)
			}
			synctest.Wait()
			if w.Bytes()[0] != 42 || w.Notified() != 1 {
				t.Errorf("%s: what comes behind it is not done", x.name)
			}
		})
	}
}

// Frames of random bytes, and random bytes behind a good header, do no harm.
func TestHostile_RandomFrames(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		d, r := openRaw(t)
		mem := newGuarded(64)
		w, err := d.Register(1, mem.inside(), All)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		for i := range 50_000 {
			b := make([]byte, rng.IntN(200))
			for k := range b {
				b[k] = byte(rng.Uint32())
			}
			if i%2 == 0 && len(b) > 2 {
				b[0], b[1] = reliable.Version<<4|byte(1+rng.IntN(4)), byte(rng.IntN(8))
			}
			r.send(b)
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if !mem.whole() || !bytes.Equal(w.Bytes(), make([]byte, 64)) {
			t.Errorf("something was written; seed %d", seed)
		}
		if n := d.Counters(); n.Malformed == 0 || n.StaleIncarnation == 0 {
			t.Errorf("%+v; seed %d", n, seed)
		}
	})
}

// A peer that asks for refusals and replies, and never acknowledges one, is made to wait: the
// replies kept for it are bounded.
func TestHostile_FloodsThatAreNeverAcknowledged(t *testing.T) {
	for name, record := range map[string]func() []byte{
		"refused Puts": func() []byte { return rec(opPut, 0, uint16(9), uint64(9), uint64(0)) },
		"fences":       func() []byte { return rec(opFence, 0, uint32(1)) },
		"long Gets":    func() []byte { return rec(opGet, 0, uint16(1), uint64(77), uint64(0), uint32(1), uint32(1<<20)) },
		"parts":        func() []byte { return rec(opPush, flagFirst, uint16(1), uint64(77), uint32(100_000), make([]byte, 40)) },
		"more parts":   func() []byte { return rec(opPush, 0, uint16(1), uint64(77), uint32(100_000), make([]byte, 40)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d, r := openRaw(t)
			w, err := d.Register(1, make([]byte, 1<<20), All)
			if err != nil {
				t.Fatal(err)
			}
			q, err := d.NewFIFO(1, make([]byte, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			w.key.Secret, q.key.Secret = 77, 77
			r.mute = true
			frame := bytes.Repeat(record(), 1400/len(record()))
			taken := 0
			for range 3000 {
				if !r.say(reliable.Requests, frame) {
					break
				}
				taken++
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			p := d.peers[1]
			if len(p.replies) > maxReplies || cap(p.replies) > 4*maxReplies || cap(p.partial) > 2*MaxRecord {
				t.Errorf("%s: %d answers, %d bytes of a record", name, len(p.replies), cap(p.partial))
			}
			if asks := name == "refused Puts" || name == "fences" || name == "long Gets"; asks == (taken == 3000) {
				t.Errorf("%s: %d frames were taken", name, taken)
			}
		})
	}
}

// A peer that lies in its replies changes nothing but the buffers of the requests that wait for
// them, and each request ends.
func TestHostile_Answers(t *testing.T) {
	for _, x := range []struct {
		name    string
		records func(tag uint32) []byte
		want    Counters
	}{
		{"too much", func(tag uint32) []byte { return rec(opData, 0, tag, uint32(0), make([]byte, 65)) }, Counters{Malformed: 1}},
		{"behind the end", func(tag uint32) []byte { return rec(opData, 0, tag, uint32(64), []byte{1}) }, Counters{Malformed: 1}},
		{"far behind", func(tag uint32) []byte { return rec(opData, 0, tag, uint32(math.MaxUint32), []byte{1}) }, Counters{Malformed: 1}},
		{"a gap", func(tag uint32) []byte { return rec(opData, 0, tag, uint32(8), make([]byte, 56)) }, Counters{Malformed: 1}},
		{"another call's", func(tag uint32) []byte { return rec(opData, 0, tag+1, uint32(0), make([]byte, 64)) }, Counters{Orphans: 1}},
		{"nothing", func(tag uint32) []byte { return rec(opData, 0, tag, uint32(0)) }, Counters{}},
		{"refusals that nobody knows", func(tag uint32) []byte { return rec(opRefused, 0, uint16(1), uint8(255)) }, Counters{}},
		{"a call", func(tag uint32) []byte { return rec(opFence, 0, tag) }, Counters{Malformed: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, r := openRaw(t)
			buf := newGuarded(64)
			ended := make(chan error, 1)
			go func() { ended <- d.Remote(Key{Node: 1}).Get(context.Background(), 0, buf.inside()) }()
			synctest.Wait()
			var tag uint32
			d.mu.Lock()
			for tag = range d.peers[1].pending {
			}
			d.mu.Unlock()
			before := d.Counters()
			if !r.say(reliable.Replies, x.records(tag)) {
				t.Fatalf("%s: not taken", x.name)
			}
			synctest.Wait()
			got := d.Counters()
			if got.Malformed-before.Malformed != x.want.Malformed || got.Orphans != x.want.Orphans || len(ended) > 0 {
				t.Errorf("%s: %+v, ended %v", x.name, got, len(ended) > 0)
			}
			r.say(reliable.Replies, rec(opData, 0, tag, uint32(0), bytes.Repeat([]byte{7}, 64)))
			if err := <-ended; err != nil || !bytes.Equal(buf.inside(), bytes.Repeat([]byte{7}, 64)) || !buf.whole() {
				t.Errorf("%s: %v, %x", x.name, err, buf)
			}
			r.say(reliable.Replies, rec(opError, 0, tag, uint8(200))) // again
			soon, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := d.Flush(soon); err != nil && !errors.Is(err, context.DeadlineExceeded) { // it does not answer that
				t.Errorf("%s: %v", x.name, err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if n := len(d.peers[1].pending); n != 0 {
				t.Errorf("%s: %d calls are left", x.name, n)
			}
		})
	}
}

// A peer that restarts again and again leaves no memory behind.
func TestHostile_ManyIncarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := openRaw(t)
		w, err := d.Register(1, make([]byte, 1<<20), All)
		if err != nil {
			t.Fatal(err)
		}
		w.key.Secret = 77
		var before, after runtime.MemStats
		for i := range 300 {
			if i == 50 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			r.mu.Lock()
			r.begin()
			r.mute = true
			r.mu.Unlock()
			r.say(reliable.Requests, bytes.Repeat(rec(opGet, 0, uint16(1), uint64(77), uint64(0), uint32(1), uint32(1<<20)), 20))
			time.Sleep(time.Millisecond)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("%d bytes more", grown)
		}
	})
}
