package reliable

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// describe returns the frames in transit to an end, one word each: ! requests an acknowledgement at
// once.
func (p *pair) describe(to int) string {
	var words []string
	for _, b := range p.inTransit[to] {
		var h Header
		if err := Parse(b, &h); err != nil {
			p.t.Fatal(err)
		}
		word := h.Kind.String()
		if h.Kind == Data {
			word = fmt.Sprintf("%d:%d", h.Sequence, len(b)-HeaderLen)
		}
		if h.AckNow {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (p *pair) want(to int, frames string) {
	p.t.Helper()
	if on := p.describe(to); on != frames {
		p.t.Errorf("on the way to %d: %q, want %q", to, on, frames)
	}
}

// The first two records go at once; those behind share a frame, until the first is acknowledged.
func TestCork_QueuedRecordsShareFrames(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	for range 7 {
		a.write(p.now, Requests, 20)
		p.send(0)
	}
	p.want(1, "2:20! 3:20!")
	p.deliver(1)
	p.send(1)
	p.deliver(0)
	p.send(0)
	p.want(1, "4:100!")
	p.settle()
	if !a.done() {
		t.Error("not done")
	}
}

// The end of a burst, some frames and a part of one, does not wait for a delayed acknowledgement.
func TestCork_TheEndOfABurstIsNotDelayed(t *testing.T) {
	for frames := 1; frames < 2*ackEvery; frames++ {
		p := newPair(t, 120).open()
		a := p.ends[0]
		for range frames*5 + 2 {
			a.write(p.now, Requests, 20)
		}
		p.settle() // no time passes
		if s := p.streams[a.out[Requests]]; s.got != s.sent || !a.done() {
			t.Errorf("%d frames and a part: %d records of %d have come, done %t", frames, s.got, s.sent, a.done())
		}
	}
}

// A stream of full frames has few acknowledgements, and no retransmission.
func TestStream_FewAcknowledgements(t *testing.T) {
	for _, records := range []int{1, 5, 20, 100} { // written at a time
		p := newPair(t, 120).open()
		a, b := p.ends[0], p.ends[1]
		passed := p.now
		sent, acks := a.c.cfg.Counters.Sent, b.c.cfg.Counters.Acks
		for range 20_000 / records {
			for range records {
				if !a.write(p.now, Requests, 20) {
					t.Fatal("no room")
				}
			}
			p.send(0)
			p.now = p.now.Add(time.Duration(records) * 200 * time.Nanosecond)
			if p.now.Sub(passed) >= 20*time.Microsecond { // a round trip
				passed = p.now
				p.deliver(1)
				p.send(1)
				p.deliver(0)
			}
		}
		p.pass(time.Second)
		sent, acks = a.c.cfg.Counters.Sent-sent, b.c.cfg.Counters.Acks-acks
		t.Logf("%d records at a time: %d frames, %d acknowledgements", records, sent, acks)
		if sent > 20_000/5*5/4 || acks > sent/8 || a.c.cfg.Counters.Retransmitted > 0 || a.c.cfg.Counters.Acks > 5 || !a.done() {
			t.Errorf("%d records at a time: %d frames, %d acknowledgements, again %d, questions %d",
				records, sent, acks, a.c.cfg.Counters.Retransmitted, a.c.cfg.Counters.Acks)
		}
	}
}

// Idle ends send nothing, and have no deadline.
func TestIdle_IsSilent(t *testing.T) {
	p := newPair(t, 120).open()
	p.pass(time.Hour)
	for _, e := range p.ends {
		was := *e.c.cfg.Counters
		if at, ok := e.c.Deadline(); ok {
			t.Errorf("a deadline in %v", at.Sub(p.now))
		}
		p.now = p.now.Add(time.Hour)
		if e.advance(p.now); len(e.next(p.now)) > 0 || *e.c.cfg.Counters != was {
			t.Error("an idle end sends")
		}
	}
}

// A frame that requests no acknowledgement is acknowledged after ackDelay, or with data before
// that. In a stream the sender requests some in each congestion window.
func TestAcknowledgements(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	stream := func(frames, queued int) {
		for range queued {
			a.write(p.now, Requests, 100)
		}
		p.send(0)
		p.inTransit[1] = p.inTransit[1][:frames] // the last one requests an acknowledgement
		p.deliver(1)
	}
	stream(initialWindow/acksPerWindow-1, initialWindow/acksPerWindow)
	if n := p.send(1); n > 0 {
		t.Errorf("%d frames before ackDelay", n)
	}
	if at, ok := b.c.Deadline(); !ok || at.Sub(p.now) != 500*time.Microsecond {
		t.Errorf("a deadline in %v, %t, want half a millisecond", at.Sub(p.now), ok)
	}
	b.write(p.now, Requests, 20)
	p.send(1)
	p.want(0, "1:20!")
	p.pass(time.Second)

	a.c.lanes[0].window(initialWindow, Window)
	stream(initialWindow/acksPerWindow, initialWindow/acksPerWindow+1)
	p.send(1)
	p.want(0, "ack")
	p.pass(time.Second)

	for _, c := range []struct {
		window, frames, queued int
		want                   string
	}{
		{Window, 31, 33, ""}, {Window, 32, 33, "ack"}, {Window, 31, 64, ""}, {Window, 32, 64, "ack"},
		{Window, 49, 101, ""}, {Window, 50, 101, "ack"}, {Window, 63, Window, ""}, {Window, 64, Window, "ack"},
		{128, 32, 33, "ack"}, {127, 31, 33, "ack"}, {127, 30, 33, ""}, {64, 15, 33, ""}, {64, 16, 33, "ack"},
		{64, 16, Window, "ack"},
	} {
		a.c.lanes[0].window(c.window, Window)
		stream(c.frames, c.queued)
		p.send(1)
		p.want(0, c.want)
		p.pass(time.Second)
	}
}

// The receiver acknowledges a stream without requests, too.
func TestAcknowledgements_Unasked(t *testing.T) {
	p := newPair(t, 120).open()
	h := p.between(1)
	h.Sequence = p.ends[1].c.lanes[0].receiver.nxt
	for i := range 64 { // ackEvery
		if n := p.send(1); n > 0 {
			t.Fatalf("%d frames after %d", n, i)
		}
		p.handle(1, h, nil)
		h.Sequence++
	}
	p.send(1)
	p.want(0, "ack")
}

// A stream that its congestion window limits has few acknowledgements, also behind a recovery.
func TestStream_FewAcknowledgementsWithLittleCongestion(t *testing.T) {
	for _, congestion := range []int{2 * ackEvery, 100} {
		p := newPair(t, 120).open()
		a, b := p.ends[0], p.ends[1]
		s := &a.c.lanes[0].sender
		sent, acks := a.c.cfg.Counters.Sent, b.c.cfg.Counters.Acks
		for i := range 20_000 { // one frame arrives at a time
			s.window(congestion, congestion)
			for a.c.Available(Requests, 100) == 100 {
				a.write(p.now, Requests, 100)
			}
			p.send(0)
			first, rest := p.inTransit[1][0], p.inTransit[1][1:]
			p.inTransit[1] = [][]byte{first}
			p.deliver(1)
			p.inTransit[1] = rest
			if i < congestion { // recovery
				b.c.lanes[0].ackNow = true
			}
			p.send(1)
			p.deliver(0)
			p.now = p.now.Add(time.Microsecond)
		}
		if sent, acks = a.c.cfg.Counters.Sent-sent, b.c.cfg.Counters.Acks-acks; sent < 20_000 || acks > sent/8 {
			t.Errorf("congestion %d: %d frames, %d acknowledgements", congestion, sent, acks)
		}
	}
}

// Uncork releases the frame being filled, and not later ones.
func TestCork_Uncork(t *testing.T) {
	p := newPair(t, 120).open()
	a := p.ends[0]
	for range 4 {
		a.write(p.now, Requests, 20)
		p.send(0)
	}
	if !a.c.Corked(Requests) || a.c.Corked(Replies) {
		t.Error("not corked, or the wrong one")
	}
	a.c.Uncork(Requests)
	a.c.Uncork(Replies)
	if a.c.Corked(Requests) {
		t.Error("still corked")
	}
	p.send(0)
	p.want(1, "2:20! 3:20! 4:40!")
	if a.write(p.now, Requests, 20); !a.c.Corked(Requests) || p.send(0) > 0 {
		t.Error("uncorked for good")
	}
	if a.write(p.now, Requests, 20); a.c.NeedsPump() || p.send(0) > 0 {
		t.Error("a record that joins a corked frame changes what may be sent")
	}
	if a.write(p.now, Requests, 80); !a.c.NeedsPump() || p.send(0) != 1 {
		t.Error("a record that ends a corked frame does not let it go")
	}
	if a.c.Uncork(Requests); !a.c.NeedsPump() || p.send(0) != 1 {
		t.Error("Uncork does not let the frame go")
	}
	p.settle()
}

// Where the link has trains, full frames wait until some go together; but not the first ones, nor
// what Uncork or Close lets go, nor any once an acknowledgement has come.
func TestTrains_FullFramesGoTogether(t *testing.T) {
	p := newPair(t, 120).open()
	p.sendTrains(MaxBatch)
	a := p.ends[0]
	full := func(n int) (sent int) {
		for range n {
			a.write(p.now, Requests, 100)
			sent += p.send(0)
		}
		return sent
	}
	const together = initialWindow / acksPerWindow // trainFrames, if the window is no smaller
	if n := full(corkFrames); n != corkFrames {
		t.Errorf("%d of the first %d frames go at once", n, corkFrames)
	}
	if n := full(together); n != 0 || !a.c.Corked(Requests) { // the last one may be filled further
		t.Errorf("%d frames of less than %d go, with others in flight", n, together)
	}
	if n := full(1); n != together {
		t.Errorf("%d frames go together, want %d", n, together)
	}
	if full(3); !a.c.Corked(Requests) {
		t.Error("three frames are not held")
	}
	if a.c.Uncork(Requests); a.c.Corked(Requests) || !a.c.NeedsPump() {
		t.Error("Uncork does not let them go")
	}
	if n := p.send(0); n != 1+3 {
		t.Errorf("Uncork lets %d frames go, want 4", n)
	}
	if n := full(2); n != 0 {
		t.Errorf("Uncork is for good: %d frames", n)
	}
	for range 8 { // acknowledged to the end: nothing is in flight
		p.deliver(1)
		p.send(1)
		p.deliver(0)
		p.send(0)
	}
	if n := a.c.Unsent(Requests); n != 0 {
		t.Errorf("%d frames wait for nothing", n)
	}
	p.settle()
	full(corkFrames + 2)
	a.c.Close()
	if p.send(0); a.c.Unsent(Requests) != 0 {
		t.Errorf("%d frames are left at the end", a.c.Unsent(Requests))
	}
}

// A batch is one train at most; what is left over waits for more, unless it is a train by itself.
func TestTrains_ABatchIsOne(t *testing.T) {
	for _, x := range []struct {
		train, written, released int
		want                     []int // frames of each batch
		left                     int
	}{
		{0, 30, 0, []int{30}, 0}, // without trains
		{9, 8, 0, nil, 8},        // 9 and not 16 wait for no more
		{9, 9, 0, []int{9}, 0},
		{9, 20, 0, []int{9, 9}, 2},
		{9, 20, 18, []int{9, 9}, 2},
		{24, 45, 0, []int{24, 21}, 0},
		{24, 40, 0, []int{24, 16}, 0}, // 16 are a train, and 15 are none
		{24, 39, 0, []int{24}, 15},
		{24, 30, 0, []int{24}, 6},
		{24, 30, 30, []int{24, 6}, 0},
		{100, 80, 0, []int{MaxBatch, 16}, 0},
	} {
		p := newPair(t, 120).open()
		p.sendTrains(x.train)
		a := p.ends[0]
		s := &a.c.lanes[Requests].sender
		for range corkFrames { // in flight
			a.write(p.now, Requests, 100)
		}
		a.c.Uncork(Requests)
		p.send(0)
		s.window(Window, Window)
		for range x.written {
			copy(a.c.Reserve(Requests, 100), "x")
		}
		s.queue()
		s.released = s.nxt + uint32(x.released)
		if ready := a.c.BatchReady(Requests); ready != (x.written >= a.c.maxBatch()) {
			t.Errorf("%+v: ready: %v", x, ready)
		}
		var got []int
		var frames [MaxBatch][]byte
		for n := a.c.NextBatch(p.now, &frames); n > 0; n = a.c.NextBatch(p.now, &frames) {
			got = append(got, n)
		}
		if !slices.Equal(got, x.want) || a.c.Unsent(Requests) != x.left {
			t.Errorf("%+v: batches of %v, %d left", x, got, a.c.Unsent(Requests))
		}
	}
}

// With MayPiggyback an acknowledgement waits for data up to ackDelay.
func TestAckPolicy(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	b.c.SetAckPolicy(MayPiggyback)
	a.write(p.now, Requests, 20)
	p.send(0)
	p.deliver(1)
	if p.send(1) > 0 {
		t.Error("it did not wait")
	}
	if b.c.SetAckPolicy(NoPiggyback); !b.c.NeedsPump() {
		t.Error("it waits for data, and none is to come")
	}
	b.c.SetAckPolicy(MayPiggyback)
	b.write(p.now, Replies, 20)
	p.send(1)
	p.want(0, "1:20!")
	p.deliver(0)
	if !a.done() {
		t.Error("the data did not acknowledge")
	}
	p.settle()
	a.write(p.now, Requests, 20)
	p.send(0)
	p.deliver(1)
	p.after(1, ackDelay)
	p.want(0, "ack")
	p.deliver(0)
	if !a.done() || a.c.cfg.Counters.Retransmitted > 0 {
		t.Error("not done")
	}
}

// With WillPiggyback an acknowledgement of a long stream waits for data, but not at a gap.
func TestAckPolicy_InAStream(t *testing.T) {
	for _, x := range []struct {
		data AckPolicy
		lost int // the first frames of the stream
		want int // acks without data
	}{{NoPiggyback, 0, 1}, {MayPiggyback, 0, 1}, {WillPiggyback, 0, 0}, {WillPiggyback, 1, 1}} {
		p := newPair(t, 120).open()
		a, b := p.ends[0], p.ends[1]
		for range ackEvery + 1 {
			a.write(p.now, Requests, 100)
		}
		for p.send(0) > 0 {
		}
		p.inTransit[1] = p.inTransit[1][x.lost:min(len(p.inTransit[1]), ackEvery)]
		b.c.SetAckPolicy(x.data)
		p.deliver(1)
		if n := p.send(1); n != x.want {
			t.Errorf("policy %d, %d lost: %d frames", x.data, x.lost, n)
		}
		b.c.SetAckPolicy(NoPiggyback)
		p.pass(time.Second)
		if !a.done() {
			t.Errorf("policy %d, %d lost: not done", x.data, x.lost)
		}
	}
}

// An ack with a SACK goes before data, which cannot carry one.
func TestGap_AckBeforeData(t *testing.T) {
	p := newPair(t, 120).open()
	a, b := p.ends[0], p.ends[1]
	for range 3 {
		a.write(p.now, Requests, 100)
	}
	p.send(0)
	p.inTransit[1] = p.inTransit[1][1:] // the first one is lost
	p.deliver(1)
	b.write(p.now, Requests, 20)
	p.send(1)
	p.want(0, "ack 1:20!")
	p.deliver(0)
	if s := &a.c.lanes[0].sender; s.packet(s.una).state != packetInFlight || s.packet(s.una+1).state != packetSACKed {
		t.Errorf("the first frame is %d, the second %d", s.packet(s.una).state, s.packet(s.una+1).state)
	}
	p.pass(time.Second)
	if !a.c.AllAcked(Requests) || !b.c.AllAcked(Requests) {
		t.Error("not all arrived")
	}
}
