package matching

import (
	"slices"
	"testing"
)

// in makes a record one of a context.
func in(context uint32, r Record) Record {
	r.Context = context
	return r
}

// wants makes an eager record one whose sender wants Matched.
func wants(id uint64, r Record) Record {
	r.ID = id
	return r
}

func toRead(id uint64, size int) Record {
	return Record{Kind: Request, ID: id, Envelope: Envelope{0, 5, size}}
}

// matched returns the numbers of the sends that are told that they are matched.
func matched(out []Output) (ids []uint64) {
	for _, o := range out {
		if o.Do == Push && o.Record.Kind == Matched {
			ids = append(ids, o.Record.ID)
		}
	}
	return ids
}

// credited returns the headers and bytes that are given back, all in all.
func credited(out []Output) (headers, bytes int) {
	for _, o := range out {
		if o.Do == Push && o.Record.Kind == Credit {
			headers, bytes = headers+o.Record.Headers, bytes+o.Record.Bytes
		}
	}
	return headers, bytes
}

// What is kept in a context that ends is dropped, and nothing else: its senders are told, if they
// want to be, and have their credit back, without the bytes of what was never read.
func TestRevoke_DropsWhatIsKept(t *testing.T) {
	for _, context := range []uint32{0, 1, 2, 63, 64, 65, 1000} {
		e := engine()
		for _, r := range []Record{eager(5, 10), wants(21, eager(5, 20)), toRead(22, 1000), wants(23, eager(5, 30))} {
			handle(t, e, 1, in(context, r))
		}
		others := []uint32{context + 1, context + 64, context ^ 3}
		for _, other := range others {
			handle(t, e, 2, in(other, eager(5, 1)))
		}
		out := e.Revoke(context, nil)
		if ids := matched(out); !slices.Equal(ids, []uint64{21, 22, 23}) {
			t.Errorf("context %d: %v are told", context, ids)
		}
		if headers, bytes := credited(out); headers != 4 || bytes != 60 {
			t.Errorf("context %d: %d headers and %d bytes are given back, want 4 and 60", context, headers, bytes)
		}
		if m := e.Probe(&Pattern{AnySource, context, AnyTag}); m != nil || !e.Revoked(context) {
			t.Errorf("context %d: %+v is left", context, m)
		}
		for _, other := range others {
			if m := e.Probe(&Pattern{2, other, 5}); m == nil || e.Revoked(other) {
				t.Errorf("context %d ends, and that of %d is gone", context, other)
			}
		}
	}
}

// What comes in a context that has ended goes into a receive that was posted before, and is dropped
// otherwise: it is not kept, and takes no credit for good.
func TestRevoke_DropsWhatComes(t *testing.T) {
	e := engine()
	r := &Receive{Pattern: Pattern{1, 7, 5}, Capacity: 10}
	e.Post(r, nil)
	e.Revoke(7, nil)
	if out := handle(t, e, 1, in(7, eager(5, 3))); len(out) != 1 || out[0].Do != Deliver || out[0].Receive != r {
		t.Errorf("%+v", out)
	}
	headers, bytes := 0, 0
	for k := range 40 {
		out := handle(t, e, 1, in(7, wants(uint64(k+1), eager(5, 10))))
		if ids := matched(out); !slices.Equal(ids, []uint64{uint64(k + 1)}) || out[0].Do != Push {
			t.Fatalf("message %d: %+v", k, out)
		}
		h, b := credited(out)
		headers, bytes = headers+h, bytes+b
	}
	if headers < 41-4 || bytes < 403-200 || e.Probe(&Pattern{AnySource, 7, AnyTag}) != nil {
		t.Errorf("%d headers of 41, and %d bytes of 403 are given back", headers, bytes)
	}
	if out := handle(t, e, 1, in(8, eager(5, 3))); len(out) == 0 || out[0].Do != Keep {
		t.Errorf("another context: %+v", out)
	}
}

// A message that was taken is dropped as if it was received.
func TestDrop(t *testing.T) {
	for _, r := range []Record{wants(9, eager(5, 40)), toRead(9, 40)} {
		e := New(Config{Size: 3, EagerLimit: 100, EagerBytes: 80, Headers: 2})
		handle(t, e, 1, r)
		m := e.Take(&Pattern{1, 0, 5})
		if m == nil || e.Take(&Pattern{1, 0, 5}) != nil {
			t.Fatal("it is not taken once")
		}
		out := e.Drop(m, nil)
		want := 40
		if r.Kind == Request {
			want = 0
		}
		if headers, bytes := credited(out); headers != 1 || bytes != want || !slices.Equal(matched(out), []uint64{9}) {
			t.Errorf("%+v", out)
		}
		again := handle(t, e, 1, wants(0, eager(6, 1)))
		if len(again) != 1 || again[0].Do != Keep || again[0].Message != m {
			t.Errorf("its memory is not used for the next one: %+v", again)
		}
	}
}

// Who is down is told nothing any more, and what it has sent whole can be dropped.
func TestDrop_OfOneWhoIsDown(t *testing.T) {
	e := engine()
	for range 2 {
		handle(t, e, 1, wants(9, eager(5, 40)))
	}
	m := e.Take(&Pattern{1, 0, 5})
	e.Down(1, nil)
	if out := e.Drop(m, nil); len(out) > 0 {
		t.Errorf("%+v", out)
	}
	if out := e.Revoke(0, nil); len(out) > 0 || e.Probe(&Pattern{1, 0, 5}) != nil {
		t.Errorf("%+v", out)
	}
}

// The sender of a request is told once its bytes were read, unless it is down.
func TestFetched(t *testing.T) {
	e := engine()
	handle(t, e, 1, toRead(9, 1000))
	r := &Receive{Pattern: Pattern{1, 0, 5}, Capacity: 1000}
	out := e.Post(r, nil)
	if len(out) != 1 || out[0].Do != Fetch || out[0].To != 1 || out[0].Receive != r || out[0].Record.ID != 9 || out[0].Record.Size != 1000 {
		t.Fatalf("%+v", out)
	}
	if out := e.Fetched(1, 9, nil); len(out) != 1 || out[0].To != 1 || !slices.Equal(matched(out), []uint64{9}) {
		t.Errorf("%+v", out)
	}
	e.Down(1, nil)
	if out := e.Fetched(1, 9, nil); len(out) > 0 {
		t.Errorf("%+v, to one that is down", out)
	}
}

// A send that waits for Matched is the driver's again once it is disowned: what completes or fails
// is a copy, with the new owner. No other send changes.
func TestDisown(t *testing.T) {
	for _, down := range []bool{false, true} {
		e := engine()
		sends := make([]*Send, 3)
		var ids []uint64
		for k := range sends {
			sends[k] = &Send{To: 1, Envelope: Envelope{0, int32(k), 10}, Synchronous: true, Owner: k}
			ids = append(ids, e.Send(sends[k], nil)[0].Record.ID)
		}
		e.Disown(sends[1], "nobody")
		*sends[1] = Send{} // it is used for something else
		var out []Output
		if down {
			out = e.Down(1, nil)
		} else {
			for _, id := range ids {
				out = append(out, handle(t, e, 1, Record{Kind: Matched, ID: id})...)
			}
		}
		do := map[bool]Action{false: CompleteSend, true: FailSend}[down]
		if len(out) != 3 {
			t.Fatalf("%+v", out)
		}
		for k, o := range out {
			want := any(k)
			if k == 1 {
				want = "nobody"
			}
			if o.Do != do || o.Send.Owner != want || (o.Send == sends[k]) != (k != 1) || int(o.Send.Tag) != k {
				t.Errorf("down %t: send %d: %+v of %v", down, k, o.Do, o.Send)
			}
		}
	}
}
