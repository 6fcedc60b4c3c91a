package matching

import (
	"slices"
	"testing"
)

// A receive that is not offered is cancelled at once, and what waited for it is offered. It is cancelled
// once, and not if a message has gone into it.
func TestCancel(t *testing.T) {
	for _, p := range []Pattern{{1, 0, 5}, {AnySource, 0, 5}} {
		e := engine()
		r, behind := &Receive{Pattern: p, Capacity: 10}, &Receive{Pattern: Pattern{1, 0, 5}, Capacity: 60}
		e.Post(r, nil)
		e.Post(behind, nil)
		out := e.Cancel(r, nil)
		if len(out) != 2 || out[0].Do != CancelReceive || out[0].Receive != r || out[1].Record.Kind != Offer || out[1].Receive != behind {
			t.Errorf("%+v: %+v", p, out)
		}
		if out = e.Cancel(r, nil); len(out) > 0 {
			t.Errorf("%+v, a second time: %+v", p, out)
		}
		e.Post(r, nil)
		if out = handle(t, e, 1, eager(5, 10)); out[0].Receive != behind {
			t.Errorf("%+v: %+v", p, out)
		}
		if out = handle(t, e, 1, eager(5, 10)); out[0].Receive != r {
			t.Errorf("%+v: %+v", p, out)
		}
		if out = e.Cancel(r, nil); len(out) > 0 {
			t.Errorf("%+v, which has a message: %+v", p, out)
		}
	}
}

// A receive that is offered is cancelled once the sender says that it has not used the offer; then what
// waited for it is offered.
func TestCancel_OfAnOffer(t *testing.T) {
	e := engine()
	r := &Receive{Pattern: Pattern{1, 0, 5}, Capacity: 60}
	offer := e.Post(r, nil)[0].Record
	for range MaxOffers {
		e.Post(&Receive{Pattern: Pattern{1, 0, 6}, Capacity: 60}, nil)
	}
	out := e.Cancel(r, nil)
	if len(out) != 1 || out[0].To != 1 || out[0].Record != (Record{Kind: Withdraw, ID: offer.ID}) {
		t.Fatalf("%+v", out)
	}
	if again := e.Cancel(r, nil); len(again) > 0 {
		t.Errorf("a second time: %+v", again)
	}
	sender := New(Config{Rank: 1, Size: 3, Headers: 8})
	for _, r := range []Record{offer, {Kind: Offer, ID: offer.ID + 1, Envelope: offer.Envelope}} {
		if _, err := sender.Handle(0, &r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := sender.Handle(0, &out[0].Record, nil, nil)
	if err != nil || len(answer) != 1 || answer[0].To != 0 || answer[0].Record != (Record{Kind: Withdrawn, ID: offer.ID}) {
		t.Fatalf("%+v, %v", answer, err)
	}
	out = handle(t, e, 1, answer[0].Record)
	if len(out) != 2 || out[0].Do != CancelReceive || out[0].Receive != r || out[1].Record.Kind != Offer {
		t.Errorf("%+v", out)
	}
	write := sender.Send(&Send{Envelope: Envelope{0, 5, 50}}, nil)
	if len(write) != 1 || write[0].Do != Write || write[0].Record.ID != offer.ID+1 {
		t.Errorf("%+v, want a write by the other offer", write)
	}
	if answer, err := sender.Handle(0, &Record{Kind: Withdraw, ID: offer.ID + 1}, nil, nil); err != nil || len(answer) > 0 {
		t.Errorf("of an offer that was used: %+v, %v", answer, err)
	}
}

// A send is taken back that waits for credit, and no other one.
func TestCancelSend(t *testing.T) {
	e := New(Config{Size: 3, EagerLimit: 100, EagerBytes: 400, Headers: 1})
	sends := make([]Send, 5)
	for k := range sends {
		sends[k] = Send{To: 1, Envelope: Envelope{0, int32(k), 10}}
		e.Send(&sends[k], nil)
	}
	if e.CancelSend(&sends[0]) {
		t.Error("one that is on its way is taken back")
	}
	for _, k := range []int{2, 1} { // in the middle, and the next one
		if !e.CancelSend(&sends[k]) || e.CancelSend(&sends[k]) {
			t.Error("one that waits is not taken back, or twice")
		}
	}
	var tags []int32
	for _, o := range handle(t, e, 1, Record{Kind: Credit, Headers: 3, Seen: 1}) {
		if tags = append(tags, o.Record.Tag); o.Record.More != (len(tags) == 1) {
			t.Errorf("the send of tag %d says that more wait: %v", o.Record.Tag, o.Record.More)
		}
	}
	if !slices.Equal(tags, []int32{3, 4}) {
		t.Errorf("the tags of those that are sent are %v, want 3 and 4", tags)
	}
}

// Messages say whether they were kept, the first one as well.
func TestKept(t *testing.T) {
	e := engine()
	for range 2 {
		if out := handle(t, e, 1, eager(5, 10)); out[0].Do != Keep || !out[0].Message.Kept() {
			t.Errorf("%+v", out)
		}
	}
	e.Post(&Receive{Pattern: Pattern{1, 0, 6}, Capacity: 10}, nil)
	if out := handle(t, e, 1, eager(6, 10)); out[0].Do != Deliver || out[0].Message.Kept() {
		t.Errorf("%+v", out)
	}
}
