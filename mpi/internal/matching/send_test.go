package matching

import (
	"errors"
	"testing"
)

// sent returns the one record that a send pushes.
func sent(t *testing.T, e *Engine, size int) Record {
	t.Helper()
	out := e.Send(&Send{To: 1, Envelope: Envelope{0, 5, size}}, nil)
	if len(out) != 1 || out[0].Do != Push || out[0].To != 1 {
		t.Fatalf("%d bytes: %+v", size, out)
	}
	return out[0].Record
}

// A message goes with its bytes up to the limit, and as long as there is credit for them; else its
// bytes are read at the sender. What is given back is credit again, and no more than there was.
func TestSend_WithItsBytes(t *testing.T) {
	e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 250, Headers: 20})
	for k, c := range []struct {
		size int
		kind Kind
		back int // bytes of credit that come before
	}{
		{101, Request, 0}, {100, Eager, 0}, {100, Eager, 0}, {51, Request, 0}, {50, Eager, 0}, {1, Request, 0}, {0, Eager, 0},
		{60, Eager, 60}, {1, Request, 0}, {100, Eager, 250}, {100, Eager, 0}, {50, Eager, 0}, {1, Request, 0},
	} {
		if c.back > 0 {
			handle(t, e, 1, Record{Kind: Credit, Bytes: c.back, Envelope: Envelope{}})
		}
		r := sent(t, e, c.size)
		if r.Kind != c.kind || r.Size != c.size || (r.ID != 0) != (c.kind == Request) || r.More {
			t.Errorf("send %d, of %d bytes: %+v, want kind %d", k, c.size, r, c.kind)
		}
	}
	if _, err := e.Handle(1, &Record{Kind: Credit, Bytes: 251}, nil, nil); !errors.Is(err, ErrProtocol) {
		t.Errorf("more credit than there was: %v", err)
	}
	handle(t, e, 1, Record{Kind: Credit, Bytes: 250})
}

// A send says whether it would be written into a receive of its receiver.
func TestHasOffer(t *testing.T) {
	e := engine()
	handle(t, e, 1, Record{Kind: Offer, ID: 3, Envelope: Envelope{2, 7, 60}})
	handle(t, e, 1, Record{Kind: Offer, ID: 4, Envelope: Envelope{3, AnyTag, 60}})
	for _, c := range []struct {
		to   Rank
		e    Envelope
		want bool
	}{
		{1, Envelope{2, 7, 10}, true}, {1, Envelope{2, 7, 1000}, true}, {1, Envelope{2, 8, 10}, false}, {1, Envelope{1, 7, 10}, false},
		{1, Envelope{3, 8, 10}, true}, {2, Envelope{2, 7, 10}, false},
	} {
		if e.HasOffer(c.to, &c.e) != c.want {
			t.Errorf("%+v to %d: %t", c.e, c.to, !c.want)
		}
	}
}

// A request to this process itself names its send, until that is complete.
func TestRequested(t *testing.T) {
	e := engine()
	s := &Send{To: 0, Envelope: Envelope{0, 5, 1000}}
	id := e.Send(s, nil)[0].Record.ID
	if e.Requested(id) != s || e.Requested(id+1) != nil || e.Requested(id+1<<32) != nil {
		t.Error("the number does not name the send alone")
	}
	if out := handle(t, e, 0, Record{Kind: Matched, ID: id}); len(out) != 1 || out[0].Do != CompleteSend || out[0].Send != s {
		t.Errorf("%+v", out)
	}
	if e.Requested(id) != nil {
		t.Error("it is complete, and has its number")
	}
}

// A number names one thing, also when its place is used again; places are.
func TestTable(t *testing.T) {
	var tab table[int]
	v := []int{0, 1, 2, 3}
	ids := map[uint64]*int{}
	for round := range 5 {
		var now []uint64
		for k := range v {
			id := tab.add(&v[k])
			if id == 0 || ids[id] != nil {
				t.Fatalf("round %d: the number %x is used again", round, id)
			}
			ids[id] = &v[k]
			now = append(now, id)
		}
		for k, id := range now {
			if tab.get(id) != &v[k] || tab.get(id+1<<32) != nil {
				t.Errorf("round %d: %x is not the number of %d alone", round, id, k)
			}
		}
		if tab.get(uint64(len(v))|1<<32) != nil || tab.get(0) != nil {
			t.Error("a number of nothing names something")
		}
		tab.remove(now[1])
		tab.removeWhere(func(x *int) bool { return *x > 1 })
		for k, id := range now {
			if (tab.get(id) != nil) != (k == 0) {
				t.Errorf("round %d: %d is there: %t", round, k, k != 0)
			}
		}
		tab.remove(now[0])
		for id := range ids {
			if tab.get(id) != nil {
				t.Errorf("round %d: %x names what is gone", round, id)
			}
		}
	}
	if len(tab.entries) != len(v) {
		t.Errorf("%d places for %d", len(tab.entries), len(v))
	}
}

// Two patterns overlap if there is a message that both take.
func TestPattern_Overlaps(t *testing.T) {
	var all []Pattern
	for _, source := range []Rank{AnySource, 0, 1} {
		for _, tag := range []int32{AnyTag, 0, 1} {
			for context := range uint32(2) {
				all = append(all, Pattern{source, context, tag})
			}
		}
	}
	for _, p := range all {
		for _, q := range all {
			both := false
			for k := range 8 {
				e := Envelope{uint32(k & 1), int32(k >> 1 & 1), 0}
				source := Rank(k >> 2)
				both = both || p.takes(source, &e) && q.takes(source, &e)
			}
			if p.overlaps(&q) != both {
				t.Errorf("%+v and %+v overlap: %t", p, q, !both)
			}
		}
	}
}
