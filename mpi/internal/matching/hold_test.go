package matching

import (
	"slices"
	"testing"
)

// direct is a send of a collective operation.
func direct(tag int32, size int) *Send {
	return &Send{To: 1, Envelope: Envelope{0, tag, size}, Direct: true}
}

func offered(tag int32, id uint64, seen uint32) Record {
	return Record{Kind: Offer, ID: id, Envelope: Envelope{0, tag, 60}, Seen: seen}
}

// writes are the sends that outputs write, in their order.
func writes(out []Output) (sends []*Send) {
	for _, o := range out {
		if o.Do == Write {
			sends = append(sends, o.Send)
		}
	}
	return sends
}

// A send whose receiver is about to post a receive waits for the offer, and says nothing; another
// one of the same envelope does not overtake it, and one of another envelope is not kept waiting.
// With the offers they are written in their order.
func TestDirect_WaitsForItsOffer(t *testing.T) {
	e := engine()
	first, second := direct(5, 60), &Send{To: 1, Envelope: Envelope{0, 5, 60}}
	for k, s := range []*Send{first, second} {
		if out := e.Send(s, nil); len(out) > 0 || !e.Held(s) {
			t.Errorf("send %d: %+v", k, out)
		}
	}
	if got := kinds(e.Send(&Send{To: 1, Envelope: Envelope{0, 6, 60}}, nil)); !slices.Equal(got, []Kind{Eager}) {
		t.Errorf("one of another tag: %v", got)
	}
	for k, s := range []*Send{first, second} {
		out := handle(t, e, 1, offered(5, uint64(k+1), 0))
		if !slices.Equal(writes(out), []*Send{s}) || len(out) != 1 || out[0].Record.ID != uint64(k+1) {
			t.Errorf("offer %d: %+v", k, out)
		}
	}
	if e.HasOffer(1, &first.Envelope) || e.Held(first) || e.Held(second) {
		t.Error("an offer, or a send, is left")
	}
	if out := e.Send(direct(6, 60), nil); len(out) > 0 {
		t.Errorf("behind one of the same tag that was sent: %v", kinds(out))
	}
	if out := handle(t, e, 1, offered(6, 3, 0)); len(out) > 0 {
		t.Errorf("an offer that one of the same tag has crossed: %+v", out)
	}
	if out := handle(t, e, 1, offered(6, 4, 1)); len(writes(out)) != 1 {
		t.Errorf("the next offer: %+v", out)
	}
}

// A send to a process itself waits for nothing: nothing is offered there. Nor is it waited for where
// an earlier send of the same envelope waits for credit, which an offer is for.
func TestDirect_WaitsNot(t *testing.T) {
	e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 400, Headers: 1, OfferFrom: 50})
	here := direct(5, 60)
	here.To = 0
	if got := kinds(e.Send(here, nil)); !slices.Equal(got, []Kind{Eager}) {
		t.Errorf("to itself: %v", got)
	}
	e.Send(&Send{To: 1, Envelope: Envelope{0, 4, 60}}, nil) // takes the credit
	waits, behind := &Send{To: 1, Envelope: Envelope{0, 5, 60}}, direct(5, 60)
	if got := kinds(e.Send(waits, nil)); !slices.Equal(got, []Kind{Waiting}) {
		t.Errorf("without credit: %v", got)
	}
	if out := e.Send(behind, nil); len(out) > 0 || e.Held(behind) {
		t.Errorf("behind it: %v", kinds(out))
	}
	if got := writes(handle(t, e, 1, offered(5, 1, 0))); !slices.Equal(got, []*Send{waits}) {
		t.Errorf("the offer: %v", got)
	}
}

// What no offer comes for goes as others do at the second Age, in its order; and so do those behind
// it at once, until one finds an offer there.
func TestAge(t *testing.T) {
	e := engine()
	e.Send(direct(5, 60), nil)
	e.Send(&Send{To: 1, Envelope: Envelope{0, 5, 101}}, nil)
	if out, left := e.Age(nil); len(out) > 0 || !left {
		t.Errorf("the first time: %v, %t", kinds(out), left)
	}
	e.Send(direct(6, 60), nil)
	if out, left := e.Age(nil); !slices.Equal(kinds(out), []Kind{Eager, Request}) || !left {
		t.Errorf("the second time: %v, %t", kinds(out), left)
	}
	if out, left := e.Age(nil); !slices.Equal(kinds(out), []Kind{Eager}) || left {
		t.Errorf("the third time: %v, %t", kinds(out), left)
	}
	if got := kinds(e.Send(direct(7, 60), nil)); !slices.Equal(got, []Kind{Eager}) {
		t.Errorf("behind those: %v", got)
	}
	handle(t, e, 1, offered(8, 1, 4))
	if got := e.Send(direct(8, 60), nil); len(writes(got)) != 1 {
		t.Errorf("with an offer: %v", got)
	}
	if out := e.Send(direct(9, 60), nil); len(out) > 0 {
		t.Errorf("behind one with an offer: %v", kinds(out))
	}
}

// A send that waits for an offer can be taken back, and fails with its receiver.
func TestDirect_Ends(t *testing.T) {
	e := engine()
	back, down := direct(5, 60), direct(6, 60)
	e.Send(back, nil)
	e.Send(down, nil)
	if !e.CancelSend(back) || e.CancelSend(back) || e.Held(back) {
		t.Error("it is not taken back, or twice")
	}
	out := e.Down(1, nil)
	if len(out) != 1 || out[0].Do != FailSend || out[0].Send != down {
		t.Errorf("%+v", out)
	}
	if out, left := e.Age(nil); len(out) > 0 || left {
		t.Errorf("%+v, %t", out, left)
	}
}
