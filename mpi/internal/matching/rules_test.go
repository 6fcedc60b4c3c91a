package matching

import (
	"errors"
	"slices"
	"testing"
)

// engine is one with round limits, of rank 0 of 3.
func engine() *Engine {
	return New(Config{Size: 3, EagerLimit: 100, EagerBytes: 400, Headers: 8, OfferFrom: 50})
}

// kinds is what outputs push, and to whom.
func kinds(out []Output) (kinds []Kind) {
	for _, o := range out {
		if o.Do == Push {
			kinds = append(kinds, o.Record.Kind)
		}
	}
	return kinds
}

func handle(t *testing.T, e *Engine, from Rank, r Record) []Output {
	t.Helper()
	out, err := e.Handle(from, &r, make([]byte, r.Size), nil)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return out
}

func eager(tag int32, size int) Record { return Record{Kind: Eager, Envelope: Envelope{0, tag, size}} }

// A receive is offered as soon as the one before it is gone that hindered it, and not before: a
// short one, or one from any source; but what does not overlap does not hinder. The shortest that is
// offered is of Config.OfferFrom.
func TestOffers_Wait(t *testing.T) {
	for _, first := range []Receive{
		{Pattern: Pattern{1, 0, 5}, Capacity: 10},
		{Pattern: Pattern{AnySource, 0, 5}, Capacity: 50},
		{Pattern: Pattern{AnySource, 0, AnyTag}, Capacity: 50},
	} {
		e := engine()
		if out := e.Post(&first, nil); len(out) > 0 {
			t.Errorf("%+v: %v", first.Pattern, kinds(out))
		}
		if out := e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 50}, nil); len(out) > 0 {
			t.Errorf("behind %+v: %v", first.Pattern, kinds(out))
		}
		want := []Kind{Offer}
		if first.Tag == AnyTag {
			want = nil
		}
		if out := e.Post(&Receive{Pattern: Pattern{1, 0, 6}, Capacity: 50}, nil); !slices.Equal(kinds(out), want) {
			t.Errorf("another tag behind %+v: %v", first.Pattern, kinds(out))
		}
		if out := e.Post(&Receive{Pattern: Pattern{1, 1, 5}, Capacity: 50}, nil); !slices.Equal(kinds(out), []Kind{Offer}) {
			t.Errorf("another communicator behind %+v: %v", first.Pattern, kinds(out))
		}
		n := 1
		if first.Tag == AnyTag {
			n = 2
		}
		out := handle(t, e, 1, eager(5, 7))
		if out[0].Do != Deliver || out[0].Receive != &first || !slices.Equal(kinds(out), slices.Repeat([]Kind{Offer}, n)) {
			t.Errorf("once %+v is gone: %v", first.Pattern, out)
		}
		if seen := out[1].Record.Seen; seen != 1 {
			t.Errorf("the offer has seen %d messages, want 1", seen)
		}
		if len(e.blocked) > 0 {
			t.Errorf("once all are offered, %v still have receives that are to be", e.blocked)
		}
	}
}

// At most MaxOffers receives are offered to one source, and the others as these are used.
func TestOffers_Bounded(t *testing.T) {
	e := engine()
	var offers []Record
	for range MaxOffers + 1 {
		for _, o := range e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 60}, nil) {
			offers = append(offers, o.Record)
		}
	}
	if len(offers) != MaxOffers {
		t.Fatalf("%d offers, want %d", len(offers), MaxOffers)
	}
	out := handle(t, e, 1, Record{Kind: Done, Envelope: Envelope{0, 5, 55}, ID: offers[0].ID})
	if out[0].Do != CompleteReceive || out[0].Message.Size != 55 || !slices.Equal(kinds(out), []Kind{Offer}) {
		t.Errorf("%+v", out)
	}
	sender := New(Config{Rank: 1, Size: 3, Headers: 8})
	for k, o := range offers {
		if _, err := sender.Handle(0, &o, nil, nil); err != nil {
			t.Fatalf("offer %d: %v", k, err)
		}
	}
	if _, err := sender.Handle(0, &offers[0], nil, nil); !errors.Is(err, ErrProtocol) {
		t.Errorf("one offer too many: %v", err)
	}
}

// Credit comes back by halves, headers and bytes, and what was granted beyond it does not.
func TestCredit(t *testing.T) {
	e := engine()
	for k := range 4 {
		out := e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 40}, nil)
		out = append(out, handle(t, e, 1, eager(5, 10))...)
		if k == 3 != slices.Equal(kinds(out), []Kind{Credit}) {
			t.Errorf("message %d of 10 bytes: %v", k, kinds(out))
		}
		if k == 3 {
			if r := out[len(out)-1].Record; r.Headers != 4 || r.Bytes != 40 || r.Seen != 4 {
				t.Errorf("%+v", r)
			}
		}
	}
	for k, size := range []int{100, 50, 50} {
		e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 40}, nil)
		out := handle(t, e, 1, eager(5, size))
		if k == 2 != slices.Equal(kinds(out), []Kind{Credit}) {
			t.Errorf("message %d, of %d bytes: %v", k, size, kinds(out))
		}
	}
	for range 7 {
		handle(t, e, 1, eager(6, 1))
	}
	last := eager(6, 1)
	last.More = true
	if out := handle(t, e, 1, last); len(kinds(out)) > 0 {
		t.Errorf("nobody wants more, and yet: %v", kinds(out))
	}
	more := e.Post(&Receive{Pattern: Pattern{AnySource, 0, 7}}, nil)
	if !slices.Equal(kinds(more), []Kind{Credit}) || more[0].Record.Headers != 2 || more[0].Record.Bytes != 0 {
		t.Fatalf("%+v, want two headers more", more)
	}
	for k := range 3 { // the first two are beyond the sender's due
		out := e.Post(&Receive{Pattern: Pattern{1, 0, 6}, Capacity: 40}, nil)
		if out[0].Do != Deliver {
			t.Fatalf("%+v", out)
		}
		headers := 0
		if k == 2 {
			headers = 1
		}
		if r := out[len(out)-1].Record; r.Kind != Credit || r.Headers != headers || r.Bytes != 1 {
			t.Errorf("message %d that was kept: %+v, want %d headers", k, r, headers)
		}
	}
}

// A sender whose messages hinder what is wanted gets a quarter of its headers more, and one at least.
func TestCredit_Beyond(t *testing.T) {
	for headers, want := range map[int]int{1: 1, 4: 1, 7: 1, 8: 2, 40: 10} {
		e := New(Config{Size: 3, EagerLimit: 100, EagerBytes: 400, Headers: headers, OfferFrom: 50})
		for range headers {
			r := eager(6, 1)
			r.More = true
			handle(t, e, 1, r)
		}
		out := e.Post(&Receive{Pattern: Pattern{1, 0, 7}}, nil)
		if len(out) != 1 || out[0].Record.Kind != Credit || out[0].Record.Headers != want {
			t.Errorf("of %d headers: %+v, want %d more", headers, out, want)
		}
	}
}

// What makes no sense changes nothing.
func TestHandle_Malformed(t *testing.T) {
	for name, r := range map[string]Record{
		"no kind":                  {},
		"a size below 0":           {Kind: Request, ID: 1, Envelope: Envelope{Size: -1}},
		"too many bytes":           eager(0, 101),
		"a request without number": {Kind: Request},
		"Matched of no send":       {Kind: Matched, ID: 1},
		"Done of no offer":         {Kind: Done, ID: 1},
		"Withdrawn of no offer":    {Kind: Withdrawn, ID: 1},
		"an offer from the future": {Kind: Offer, Seen: 1, ID: 1},
		"credit from the future":   {Kind: Credit, Seen: 1},
		"headers below 0":          {Kind: Credit, Headers: -1},
		"bytes below 0":            {Kind: Credit, Bytes: -1},
		"too much credit":          {Kind: Credit, Bytes: 1},
	} {
		e := engine()
		if out, err := e.Handle(1, &r, make([]byte, max(0, r.Size)), nil); !errors.Is(err, ErrProtocol) || len(out) > 0 {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
	e := engine()
	for _, from := range []Rank{-1, 3} {
		if _, err := e.Handle(from, &Record{Kind: Waiting}, nil, nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("of rank %d: %v", from, err)
		}
	}
	if r := eager(0, 10); true {
		if _, err := e.Handle(1, &r, make([]byte, 9), nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("bytes that are missing: %v", err)
		}
	}
	for range 8 {
		handle(t, e, 1, eager(6, 1))
	}
	if r := eager(6, 1); true {
		if _, err := e.Handle(1, &r, make([]byte, 1), nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("a message without credit: %v", err)
		}
	}
	e = engine()
	for range 4 {
		handle(t, e, 1, eager(6, 100))
	}
	if r := eager(6, 1); true {
		if _, err := e.Handle(1, &r, make([]byte, 1), nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("bytes without credit: %v", err)
		}
	}
}

// What is under way with a process that is down fails, and the rest goes on; what it has sent whole
// is received.
func TestDown(t *testing.T) {
	e := engine()
	handle(t, e, 1, eager(5, 7))
	var sends []*Send
	for k := range 10 {
		s := &Send{To: 1, Envelope: Envelope{0, 0, 10 + 100*(k%2)}}
		sends = append(sends, s)
		e.Send(s, nil)
	}
	long := &Receive{Pattern: Pattern{1, 0, 8}, Capacity: 60}
	any := &Receive{Pattern: Pattern{AnySource, 0, 9}, Capacity: 60}
	behind := &Receive{Pattern: Pattern{2, 0, 9}, Capacity: 60}
	for _, r := range []*Receive{long, any, behind} {
		e.Post(r, nil)
	}
	var failed []*Send
	received := 0
	for _, o := range e.Down(1, nil) {
		switch o.Do {
		case FailSend:
			failed = append(failed, o.Send)
		case FailReceive:
			if received++; o.Receive != long {
				t.Errorf("%+v fails", o.Receive.Pattern)
			}
		default:
			t.Errorf("%+v", o)
		}
	}
	// Of ten sends the four short ones went; four were requests, and two had no credit.
	if len(failed) != 6 || received != 1 || slices.Contains(failed, sends[0]) {
		t.Errorf("%d sends and %d receives fail, want 6 and 1", len(failed), received)
	}
	if out := e.Down(1, nil); len(out) > 0 {
		t.Errorf("a second time: %+v", out)
	}
	if out := e.Send(&Send{To: 1}, nil); len(out) != 1 || out[0].Do != FailSend {
		t.Errorf("%+v", out)
	}
	if out := e.Post(&Receive{Pattern: Pattern{1, 0, 1}}, nil); len(out) != 1 || out[0].Do != FailReceive {
		t.Errorf("%+v", out)
	}
	if out := e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 60}, nil); len(out) != 1 || out[0].Do != Deliver {
		t.Errorf("%+v", out)
	}
}
