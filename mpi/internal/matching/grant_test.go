package matching

import (
	"errors"
	"slices"
	"testing"
)

// starved has process 1 use all of its headers, for messages that nobody has asked for.
func starved(more bool) *Engine {
	e := New(Config{Size: 3, EagerLimit: 100, EagerBytes: 400, Headers: 4, OfferFrom: 50})
	for range 4 {
		r := eager(6, 1)
		r.More = more
		if _, err := e.Handle(1, &r, make([]byte, 1), nil); err != nil {
			panic(err)
		}
	}
	return e
}

// A process whose sends wait has headers beyond its due where one of them may be wanted: by a
// receive that it cannot write into, or by a probe.
func TestGrant_WhereItIsWanted(t *testing.T) {
	short := func(source Rank) *Receive { return &Receive{Pattern: Pattern{source, 0, 7}, Capacity: 10} }
	for name, c := range map[string]struct {
		ask  func(e *Engine, out []Output) []Output
		want bool
	}{
		"a short receive":           {func(e *Engine, out []Output) []Output { return e.Post(short(1), out) }, true},
		"one from any source":       {func(e *Engine, out []Output) []Output { return e.Post(short(AnySource), out) }, true},
		"one from another source":   {func(e *Engine, out []Output) []Output { return e.Post(short(2), out) }, false},
		"a probe":                   {func(e *Engine, out []Output) []Output { return e.Await(&Pattern{1, 0, 7}, out) }, true},
		"a probe of any source":     {func(e *Engine, out []Output) []Output { return e.Await(&Pattern{AnySource, 0, 7}, out) }, true},
		"a probe of another source": {func(e *Engine, out []Output) []Output { return e.Await(&Pattern{2, 0, 7}, out) }, false},
		"a receive that is offered": {func(e *Engine, out []Output) []Output {
			return e.Post(&Receive{Pattern: Pattern{1, 0, 7}, Capacity: 50}, out)
		}, false},
		"two, of which one is": {func(e *Engine, out []Output) []Output {
			return e.Post(short(1), e.Post(&Receive{Pattern: Pattern{1, 0, 7}, Capacity: 50}, out))
		}, true},
		"a probe that has ended": {func(e *Engine, out []Output) []Output {
			q := &Pattern{1, 0, 7}
			e.probes = append(e.probes, &Pattern{2, 0, 7}, q)
			e.Unawait(q)
			return e.Await(&Pattern{2, 0, 8}, out)
		}, false},
		"nothing": {func(e *Engine, out []Output) []Output { return out }, false},
	} {
		for _, before := range []bool{true, false} { // before the process says that its sends wait
			e := starved(!before)
			out := c.ask(e, nil)
			if before {
				if h, b := credited(out); h+b > 0 {
					t.Errorf("%s: %d headers and %d bytes, and no send waits", name, h, b)
				}
				out = handle(t, e, 1, Record{Kind: Waiting})
			}
			if headers, bytes := credited(out); headers != map[bool]int{true: 1}[c.want] || bytes != 0 {
				t.Errorf("%s, before it is asked for: %t: %d headers and %d bytes, wanted %t", name, before, headers, bytes, c.want)
			}
			for _, o := range out {
				if o.To != 1 && o.Record.Kind == Credit {
					t.Errorf("%s: credit for %d", name, o.To)
				}
			}
		}
	}
}

// Each look for a message grants headers to a process that has used up its own, if its sends wait and
// may be that message; what comes between two looks grants none.
func TestAsk_GrantsEachTime(t *testing.T) {
	e := starved(true)
	for k, c := range []struct {
		q    Pattern
		want int
	}{{Pattern{2, 0, 7}, 0}, {Pattern{1, 0, 7}, 1}, {Pattern{1, 0, 7}, 0}} {
		if headers, _ := credited(e.Ask(c.q, nil)); headers != c.want {
			t.Errorf("look %d: %d headers, want %d", k, headers, c.want)
		}
	}
	r := eager(6, 1)
	r.More = true
	if headers, _ := credited(handle(t, e, 1, r)); headers != 0 {
		t.Errorf("%d headers, and nobody looks", headers)
	}
	if headers, _ := credited(e.Ask(Pattern{AnySource, 0, 7}, nil)); headers != 1 {
		t.Errorf("a look at any source: %d headers", headers)
	}
	r.More = false // none waits behind
	handle(t, e, 1, r)
	if headers, _ := credited(e.Ask(Pattern{1, 0, 7}, nil)); headers != 0 {
		t.Errorf("%d headers, and no send waits", headers)
	}
}

// Where no message goes with its bytes, headers come back by halves as well.
func TestCredit_OfHeadersAlone(t *testing.T) {
	e := New(Config{Size: 2, Headers: 8})
	for k := range 8 {
		e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 10}, nil)
		out := handle(t, e, 1, eager(5, 0))
		want := 0
		if k%4 == 3 {
			want = 4
		}
		if headers, _ := credited(out); headers != want {
			t.Errorf("message %d: %d headers, want %d", k, headers, want)
		}
	}
}

// The first send that waits says so, and no other one.
func TestSend_WaitsAndSaysSo(t *testing.T) {
	e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 400, Headers: 1})
	for k, want := range [][]Kind{{Eager}, {Waiting}, nil, nil} {
		if got := kinds(e.Send(&Send{To: 1, Envelope: Envelope{0, 5, 10}}, nil)); !slices.Equal(got, want) {
			t.Errorf("send %d: %v, want %v", k, got, want)
		}
	}
	if got := kinds(handle(t, e, 1, Record{Kind: Credit, Headers: 2, Seen: 1})); !slices.Equal(got, []Kind{Eager, Eager}) {
		t.Errorf("%v", got)
	}
	if got := kinds(e.Send(&Send{To: 1, Envelope: Envelope{0, 5, 10}}, nil)); got != nil {
		t.Errorf("%v, and one waits before it", got)
	}
	if got := kinds(handle(t, e, 1, Record{Kind: Credit, Headers: 5, Seen: 3})); !slices.Equal(got, []Kind{Eager, Eager}) {
		t.Errorf("%v", got)
	}
	if got := kinds(e.Send(&Send{To: 1, Envelope: Envelope{0, 5, 10}}, nil)); !slices.Equal(got, []Kind{Eager}) {
		t.Errorf("%v, and none waits", got)
	}
}

// What one process is told by number, no other one can say, nor of another message.
func TestHandle_NumbersOfOthers(t *testing.T) {
	e := engine()
	r := &Receive{Pattern: Pattern{1, 0, 5}, Capacity: 60}
	offer := e.Post(r, nil)[0].Record.ID
	request := e.Send(&Send{To: 1, Envelope: Envelope{0, 5, 1000}}, nil)[0].Record.ID
	refused := func(from Rank, r Record) {
		t.Helper()
		if out, err := e.Handle(from, &r, nil, nil); !errors.Is(err, ErrProtocol) || len(out) > 0 {
			t.Errorf("%+v of %d: %+v, %v", r, from, out, err)
		}
	}
	done := Record{Kind: Done, ID: offer, Envelope: Envelope{0, 5, 55}}
	withdrawn := Record{Kind: Withdrawn, ID: offer}
	refused(2, done)
	refused(1, Record{Kind: Done, ID: offer, Envelope: Envelope{0, 6, 55}})
	refused(1, Record{Kind: Done, ID: offer, Envelope: Envelope{1, 5, 55}})
	refused(2, Record{Kind: Matched, ID: request})
	refused(1, withdrawn) // it was not withdrawn
	e.Cancel(r, nil)
	refused(2, withdrawn)
	if e.Offered(offer) != r {
		t.Error("it is not offered any more")
	}
	if out := handle(t, e, 1, done); out[0].Do != CompleteReceive || out[0].Receive != r || e.Offered(offer) != nil {
		t.Errorf("%+v", out)
	}
	refused(1, done)
	refused(1, withdrawn)
	// The receive is posted again, as if it was new.
	out := e.Post(r, nil)
	if len(out) != 1 || out[0].Record.Kind != Offer || out[0].Record.ID == offer {
		t.Fatalf("%+v", out)
	}
	if out := e.Cancel(r, nil); !slices.Equal(kinds(out), []Kind{Withdraw}) {
		t.Errorf("%+v", out)
	}
}

// What this process sends to itself is offered nothing.
func TestOffers_NoneToOneself(t *testing.T) {
	e := engine()
	r := &Receive{Pattern: Pattern{0, 0, 5}, Capacity: 60}
	if out := e.Post(r, nil); len(out) > 0 {
		t.Errorf("%+v", out)
	}
	if out := handle(t, e, 0, eager(5, 10)); out[0].Do != Deliver || out[0].Receive != r {
		t.Errorf("%+v", out)
	}
}

// Of what one has sent that is down, what is here is received, and its sender is told nothing; what
// would have to be read there is gone, and so are the receives that were offered to it.
func TestDown_WhatIsLeft(t *testing.T) {
	e := engine()
	long := &Receive{Pattern: Pattern{1, 0, 9}, Capacity: 60}
	offer := e.Post(long, nil)[0].Record.ID
	for _, r := range []Record{toRead(1, 1000), wants(2, eager(5, 10)), toRead(3, 1000)} {
		handle(t, e, 1, r)
	}
	handle(t, e, 2, toRead(1, 1000))
	if out := e.Down(1, nil); len(out) != 1 || out[0].Do != FailReceive || out[0].Receive != long || e.Offered(offer) != nil {
		t.Errorf("%+v", out)
	}
	if out := e.Post(&Receive{Pattern: Pattern{1, 0, 5}, Capacity: 1000}, nil); len(out) != 1 || out[0].Do != Deliver || out[0].Message.Size != 10 {
		t.Errorf("%+v", out)
	}
	if m := e.Probe(&Pattern{1, 0, AnyTag}); m != nil {
		t.Errorf("%+v is left", m)
	}
	if m := e.Probe(&Pattern{AnySource, 0, AnyTag}); m == nil || m.Source != 2 {
		t.Errorf("%+v is left, want that of another one", m)
	}
}

// No more receives are offered than the driver can lend memory to; those beyond are, once it has taken some back.
func TestOffer_AsFarAsMemoryIsLent(t *testing.T) {
	e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 400, Headers: 4, OfferFrom: 50, MaxLent: 3})
	post := func() (out []Output) {
		return e.Post(&Receive{Pattern: Pattern{1, 0, 7}, Capacity: 50}, nil)
	}
	e.SetLent(1) // by a window
	for k, want := range []int{1, 1, 0} {
		if out := post(); len(out) != want {
			t.Errorf("receive %d: %+v, want %d offers", k, out, want)
		}
	}
	done := Record{Kind: Done, ID: e.peers[1].posted[0].offer, Envelope: Envelope{0, 7, 50}}
	e.SetLent(3) // both, too
	if out, err := e.Handle(1, &done, nil, nil); err != nil || len(out) != 1 || out[0].Do != CompleteReceive {
		t.Errorf("one is complete, and not waited for: %+v, %v", out, err)
	}
	done.ID = e.peers[1].posted[0].offer
	e.SetLent(2)
	if out, err := e.Handle(1, &done, nil, nil); err != nil || len(out) != 2 || out[1].Record.Kind != Offer {
		t.Errorf("one is complete, and the other was waited for: %+v, %v", out, err)
	}
}
