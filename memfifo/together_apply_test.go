package memfifo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Records that come in one frame do what they do one by one, whatever else is in it: they land in
// the same order, what makes no sense is counted, and what finds no room waits.
func TestApply_TogetherOrOneByOne(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	da, _ := openRaw(t)
	db, _ := openRaw(t)
	for round := range 2000 {
		a, b := newTwin(t, da), newTwin(t, db)
		b.q[0].key.Secret, b.q[1].key.Secret = a.q[0].key.Secret, a.q[1].key.Secret
		records := a.records(rng)
		held := len(records)
		a.d.mu.Lock()
		rest, full := a.p.apply(reliable.Requests, bytes.Join(records, nil))
		a.d.mu.Unlock()
		var restOne []byte
		var fullOne *FIFO
		b.d.mu.Lock()
		for i, r := range records {
			b.d.recentQ = nil // so that each is looked at by itself
			before := b.d.stats.Malformed
			if restOne, fullOne = b.p.apply(reliable.Requests, r); restOne != nil {
				restOne, held = slices.Concat(restOne, bytes.Join(records[i+1:], nil)), i
				break
			}
			if b.d.stats.Malformed != before && !(&record{}).parse(r) {
				break // what follows in the frame is skipped
			}
		}
		b.d.mu.Unlock()
		if got, want := a.state(full), b.state(fullOne); got != want || !bytes.Equal(rest, restOne) {
			t.Fatalf("seed %d, round %d: %d records, of which %d are done one by one;\ntogether   %s, %d bytes left\none by one %s, %d bytes left",
				seed, round, len(records), held, got, len(rest), want, len(restOne))
		}
		a.close()
		b.close()
	}
}

// twin is a domain with two FIFOs, and a peer that pushes to them.
type twin struct {
	d *Domain
	p *peer
	q [2]*FIFO
}

func newTwin(t *testing.T, d *Domain) *twin {
	t.Helper()
	x := &twin{d: d}
	for i, size := range []int{256, 1024} {
		q, err := d.NewFIFO(uint16(1+i), make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		x.q[i] = q
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers, d.stats = nil, Counters{}
	x.p = d.peer(1)
	return x
}

// records makes a frame's.
func (x *twin) records(rng *rand.Rand) (records [][]byte) {
	for range 1 + rng.IntN(30) {
		q := x.q[rng.IntN(8)/7]
		data := bytes.Repeat([]byte{byte(len(records))}, rng.IntN(20))
		id, secret, total, flags := q.key.ID, q.key.Secret, uint32(len(data)), byte(flagFirst|flagLast)
		op := opPush
		switch rng.IntN(60) {
		case 0:
			id = 9
		case 1:
			secret++
		case 2:
			total++
		case 3:
			total, data = uint32(q.ring.longest()+1), make([]byte, q.ring.longest()+1)
		case 4:
			flags = flagFirst
		case 5:
			flags = flagLast
		case 6:
			op = opcodes
		case 7:
			op = opTryPush
		case 8:
			flags |= flagNotify
		case 12:
			flags = 0 // neither the first part of a record nor the last one
		case 9, 10, 11:
			total, data = uint32(q.ring.longest()), make([]byte, q.ring.longest())
		}
		if op == opcodes {
			records = append(records, []byte{byte(op), 0, 0, 0})
			continue
		}
		records = append(records, rec(op, flags, id, secret, total, data))
	}
	return records
}

// state is what the records have done.
func (x *twin) state(full *FIFO) string {
	s := fmt.Sprintf("malformed %d, refused %d, %d replies, %d bytes of a part", x.d.stats.Malformed, x.d.stats.Refused,
		len(x.p.replies), len(x.p.partial))
	for i, q := range x.q {
		s += fmt.Sprintf("; FIFO %d full %v:", i, q == full)
		for r := &q.ring; ; {
			rec, end, ok := r.oldest()
			if !ok {
				break
			}
			s += fmt.Sprintf(" %x", rec)
			r.head.Store(end)
		}
	}
	return s
}

func (x *twin) close() {
	for _, q := range x.q {
		_ = q.Close()
	}
}

// An appender lays records as ring.append does. It may refuse one that this takes, at the end of the
// memory, and never takes one that this refuses. What it has laid is there once it is published.
func TestRing_AppenderAgrees(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		size := MinFIFO + ringAlign*rng.IntN(20)
		a, b := ring{mem: make([]byte, size)}, ring{mem: make([]byte, size)}
		number := byte(0)
		for range 200 {
			run, published := a.begin(), a.tail.Load()
			for range rng.IntN(6) {
				number++
				rec := bytes.Repeat([]byte{number}, rng.IntN(b.longest()+1))
				took, room := run.append(rec), b.append(rec)
				switch {
				case took && !room:
					t.Fatalf("seed %d: it takes %d bytes, for which there is no room", seed, len(rec))
				case a.tail.Load() != published:
					t.Fatalf("seed %d: a record is there before it is published", seed)
				case !took && room:
					run.publish()
					if !a.append(rec) {
						t.Fatalf("seed %d: no room for %d bytes, where the other ring has it", seed, len(rec))
					}
					run, published = a.begin(), a.tail.Load()
				}
			}
			if some := run.publish(); some != (a.tail.Load() != published) {
				t.Fatalf("seed %d: published: %v", seed, some)
			}
			if !bytes.Equal(a.mem, b.mem) || a.tail.Load() != b.tail.Load() {
				t.Fatalf("seed %d: the rings differ", seed)
			}
			for range rng.IntN(6) {
				_, end, ok := a.oldest()
				if !ok {
					break
				}
				a.head.Store(end)
				b.head.Store(end)
			}
		}
	}
}
