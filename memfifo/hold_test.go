package memfifo

import (
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// heldFIFO is a FIFO for four records, which are there, and three senders; a record of up to 11
// bytes takes a quarter. The domain's lock is held until the test ends.
func heldFIFO(t *testing.T) (d *Domain, f *FIFO, a, b *peer) {
	t.Helper()
	d, _ = openRaw(t)
	f, err := d.NewFIFO(1, make([]byte, MinFIFO))
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	t.Cleanup(d.mu.Unlock)
	for range 4 {
		if !f.append(nil, make([]byte, 11)) {
			t.Fatal("no room for four records")
		}
	}
	d.peers = []*peer{nil, newPeer(d, 1), newPeer(d, 2)}
	return d, f, d.peers[1], d.peers[2]
}

// pop takes a record out, as a program does that does not know of senders yet.
func (f *FIFO) pop(t *testing.T) {
	t.Helper()
	if f.senders.count.Load() > 0 {
		t.Fatal("a sender is held: pop would resume it")
	}
	if _, ok, err := f.TryPop(make([]byte, 11)); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// queue is the nodes that are held, in order.
func (f *FIFO) queue() (nodes []mcd.NodeID) {
	for _, p := range f.senders.peers {
		nodes = append(nodes, p.node)
	}
	return nodes
}

// Room that a pop has made between the look at it and the hold is found: the sender is not held, and
// the next one has its room.
func TestHold_RoomThatWasMadeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, a, b := heldFIFO(t)
		rec := make([]byte, 11)
		if f.append(a, rec) {
			t.Fatal("room for five records")
		}
		f.pop(t)
		if f.hold(a) || a.heldBy != nil || len(f.queue()) > 0 || f.senders.count.Load() > 0 {
			t.Fatalf("held by %v, %v wait", a.heldBy, f.queue())
		}
		if !f.append(a, rec) {
			t.Error("no room for the record that was tried again")
		}
		f.pop(t)
		if !f.append(b, rec) {
			t.Error("no room for another sender's, behind a pop")
		}
	})
}

// Without room a sender is held, and listed once; another one behind it, whatever room is made.
func TestHold_WithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, a, b := heldFIFO(t)
		rec := make([]byte, 11)
		for range 2 {
			if f.append(a, rec) || !f.hold(a) || a.heldBy != f || len(f.queue()) != 1 {
				t.Fatalf("held by %v, %v wait", a.heldBy, f.queue())
			}
		}
		f.ring.head.Add(space(len(rec))) // a pop that has not seen a
		if f.append(b, rec) || !f.hold(b) || b.heldBy != f {
			t.Fatalf("b is held by %v: the room is a's", b.heldBy)
		}
		if q := f.queue(); len(q) != 2 || q[0] != 1 || q[1] != 2 || f.senders.count.Load() != 2 {
			t.Errorf("%v wait", q)
		}
		if f.append(nil, rec) {
			t.Error("a record of the node itself takes the room that others wait for")
		}
		f.senders.served = false // the next turn begins
		if f.hold(a) {
			t.Error("room was made for a, and a is held")
		}
	})
}

// A turn is one record: the first of several may have one, and a sender that is alone as many as
// there is room for.
func TestHold_ATurnIsOneRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, a, b := heldFIFO(t)
		rec := make([]byte, 11)
		if f.append(a, rec) || !f.hold(a) {
			t.Fatal("a is not held")
		}
		f.senders.served = false
		f.ring.head.Store(f.ring.tail.Load())
		for i := range 2 {
			if !f.append(a, rec) {
				t.Errorf("record %d of the one sender that waits finds no room", i)
			}
		}
		f.senders.push(b)
		if f.append(a, rec) {
			t.Error("a sender that had its turn has another one, and one waits")
		}
		if f.append(b, rec) {
			t.Error("a sender has its turn before the first one")
		}
		f.unhold(a)
		if q := f.queue(); len(q) != 0 || f.senders.count.Load() != 0 || b.heldBy != nil {
			t.Errorf("%v wait, with room", q)
		}
	})
}

// What a pop lets go on behind a push that waited is answered at once, also while other replies are
// not acknowledged.
func TestHold_RepliesBehindItGoAtOnce(t *testing.T) {
	for name, request := range map[string][]byte{
		"fetch and add": rec(opFetchAdd, 0, uint16(1), uint64(fuzzKey), uint64(0), uint32(1), uint64(1)),
		"get":           rec(opGet, 0, uint16(1), uint64(fuzzKey), uint64(0), uint32(1), uint32(8)),
		"fence":         rec(opFence, 0, uint32(1)),
	} {
		synctest.Test(t, func(t *testing.T) {
			d, r := openRaw(t)
			w, err := d.Register(1, make([]byte, 8), All)
			if err != nil {
				t.Fatal(err)
			}
			q, err := d.NewFIFO(1, make([]byte, MinFIFO))
			if err != nil {
				t.Fatal(err)
			}
			w.key.Secret, q.key.Secret = fuzzKey, fuzzKey
			r.mute = true
			for range 4 { // replies that stay in flight
				r.say(reliable.Requests, rec(opFence, 0, uint32(1)))
				synctest.Wait()
			}
			for range 3 { // the third finds no room
				r.say(reliable.Requests, rec(opPush, flagFirst|flagLast, uint16(1), uint64(fuzzKey), uint32(20), make([]byte, 20)))
			}
			r.say(reliable.Requests, request)
			synctest.Wait()
			before := d.Counters().Sent
			if _, ok, err := q.TryPop(make([]byte, 20)); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if n := d.Counters().Sent - before; n != 1 {
				t.Errorf("%s: %d frames were sent by the pop, want the reply's", name, n)
			}
		})
	}
}
