package matching

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
)

// cluster is engines that run a random program, and a network that delays records: those of a pair
// keep their order.
type cluster struct {
	random  prng.Source
	cfg     Config
	ranks   []*rank
	wires   [][][]parcel // from, to: what is under way
	fetches []fetch
	wrong   string
	counts  map[string]int
}

// parcel is a record with its bytes, or bytes that are written into a receive.
type parcel struct {
	record Record
	data   []byte
	send   *send  // of a message, and of Done
	write  uint64 // the offer's number, if the data goes there
}

type fetch struct {
	to, from Rank
	record   Record
	receive  *receive
}

type rank struct {
	*Engine
	me       Rank
	sends    []*send
	receives []*receive
	probes   []*Pattern
	asked    map[uint64]*send // that wait for Matched, by receiver and number
	keeps    map[*Message]*send
}

var kindNames = [...]string{
	Eager: "eager messages", Request: "requests", Matched: "answers", Offer: "offers", Done: "written messages",
	Withdraw: "offers withdrawn", Withdrawn: "confirmed so", Credit: "credits", Waiting: "waits for credit",
}

// collectives is the context of direct sends, in which no receive takes any tag.
const collectives = 2

// request is the key of a send in asked.
func request(to Rank, id uint64) uint64 { return uint64(to)<<56 ^ id }

// send and receive are operations with what became of them. Data of a send is its own number.
type send struct {
	Send
	from     Rank
	got      *receive
	complete int
}

type receive struct {
	Receive
	posted   int // when, among those of its rank
	got      *send
	fetching bool
	cancel   bool
	canceled bool
}

func newCluster(seed uint64) *cluster {
	c := &cluster{random: prng.Source(seed), counts: map[string]int{}}
	n := 2 + c.random.Below(3)
	c.cfg = Config{
		Size: n, EagerLimit: c.random.Below(100), EagerBytes: 10 + c.random.Below(300),
		Headers: 1 + c.random.Below(12), OfferFrom: c.random.Below(120),
	}
	for k := range n {
		cfg := c.cfg
		cfg.Rank = Rank(k)
		c.ranks = append(c.ranks, &rank{Engine: New(cfg), me: cfg.Rank, asked: map[uint64]*send{}, keeps: map[*Message]*send{}})
		c.wires = append(c.wires, make([][]parcel, n))
	}
	return c
}

func (c *cluster) failf(format string, args ...any) {
	if c.wrong == "" {
		c.wrong = fmt.Sprintf(format, args...)
	}
}

// run has each rank do some operations while records are under way, and then lets all come.
func (c *cluster) run(operations int) {
	tags := 1 + c.random.Below(3)
	for operations > 0 && c.wrong == "" {
		if c.random.Hits(.5) {
			c.operate(tags)
			operations--
		} else {
			c.deliver()
		}
	}
	for c.wrong == "" && (c.deliver() || c.age()) {
	}
	c.check()
}

func (c *cluster) operate(tags int) {
	r := c.ranks[c.random.Below(len(c.ranks))]
	pattern := Pattern{Rank(c.random.Below(c.cfg.Size)), uint32(c.random.Below(3)), int32(c.random.Below(tags))}
	if c.random.Hits(.3) {
		pattern.Source = AnySource
	}
	if c.random.Hits(.3) {
		pattern.Tag = AnyTag
	}
	if pattern.Context == collectives && pattern.Tag == AnyTag {
		pattern.Tag = 0
	}
	switch c.random.Below(13) {
	case 0, 1, 2, 3, 4:
		s := &send{Send: Send{To: Rank(c.random.Below(c.cfg.Size)), Synchronous: c.random.Hits(.2)}}
		s.Envelope = Envelope{uint32(c.random.Below(3)), int32(c.random.Below(tags)), c.random.Below(150)}
		s.Direct = s.Context == collectives && c.random.Hits(.7)
		s.Owner, s.from = s, r.me
		r.sends = append(r.sends, s)
		c.carryOut(r, nil, r.Send(&s.Send, nil))
	case 5, 6, 7, 8, 9:
		c.carryOut(r, nil, r.Post(&c.newReceive(r, pattern).Receive, nil))
	case 10:
		if len(r.receives) > 0 {
			to := r.receives[c.random.Below(len(r.receives))]
			if to.got == nil && !to.fetching && !to.canceled && !to.cancel {
				to.cancel = true
				c.carryOut(r, nil, r.Cancel(&to.Receive, nil))
			}
		}
	case 11:
		c.probe(r, pattern)
	case 12:
		c.age()
	}
}

// age has sends go without an offer that have waited for one. It reports whether any still wait, or
// have gone.
func (c *cluster) age() (some bool) {
	for _, r := range c.ranks {
		out, left := r.Age(nil)
		c.counts["aged"] += len(out)
		some = some || left || len(out) > 0
		c.carryOut(r, nil, out)
	}
	return some
}

func (c *cluster) newReceive(r *rank, p Pattern) *receive {
	to := &receive{Receive: Receive{Pattern: p, Capacity: c.random.Below(150)}, posted: len(r.receives)}
	to.Owner = to
	r.receives = append(r.receives, to)
	return to
}

// probe takes a message, or waits for one.
func (c *cluster) probe(r *rank, p Pattern) {
	if m := r.Take(&p); m != nil {
		to := c.newReceive(r, p)
		c.counts["taken"]++
		c.carryOut(r, nil, r.Receive(m, &to.Receive, nil))
		return
	}
	r.probes = append(r.probes, &p)
	c.carryOut(r, nil, r.Await(&p, nil))
}

// deliver has a record come, or a fetch end. It reports whether anything was under way.
func (c *cluster) deliver() bool {
	var pairs [][2]int
	for from := range c.wires {
		for to := range c.wires[from] {
			if len(c.wires[from][to]) > 0 {
				pairs = append(pairs, [2]int{from, to})
			}
		}
	}
	if len(pairs)+len(c.fetches) == 0 {
		return false
	}
	k := c.random.Below(len(pairs) + len(c.fetches))
	if k >= len(pairs) {
		k -= len(pairs)
		f := c.fetches[k]
		c.fetches = slices.Delete(c.fetches, k, k+1)
		r := c.ranks[f.to]
		c.finish(r, f.receive, c.ranks[f.from].asked[request(f.to, f.record.ID)])
		c.carryOut(r, nil, r.Fetched(f.from, f.record.ID, nil))
		return true
	}
	from, to := pairs[k][0], pairs[k][1]
	p := c.wires[from][to][0]
	c.wires[from][to] = c.wires[from][to][1:]
	r := c.ranks[to]
	if p.write != 0 {
		if v := r.Engine.receives.get(p.write); v == nil || v.Source != Rank(from) {
			c.failf("rank %d writes into a receive of rank %d that is not offered to it", from, to)
		}
		return true
	}
	out, err := r.Handle(Rank(from), &p.record, p.data, nil)
	if err != nil {
		c.failf("rank %d refuses %+v of %d: %v", to, p.record, from, err)
	}
	c.carryOut(r, p.send, out)
	return true
}

// carryOut does what an engine wants; s is the send of the record that it was told.
func (c *cluster) carryOut(r *rank, s *send, out []Output) {
	for _, o := range out {
		switch o.Do {
		case Push:
			c.push(r, &o)
		case Write:
			s := o.Send.Owner.(*send)
			s.complete++
			c.counts["write"]++
			c.send(r, o.To, parcel{write: o.Record.ID, send: s})
			c.send(r, o.To, parcel{record: o.Record, send: s})
		case Deliver:
			if kept := r.keeps[o.Message]; kept != nil {
				c.finish(r, o.Receive.Owner.(*receive), kept)
				delete(r.keeps, o.Message)
			} else {
				c.finish(r, o.Receive.Owner.(*receive), s)
			}
			r.Release(o.Message)
		case CompleteReceive:
			c.finish(r, o.Receive.Owner.(*receive), s)
		case Fetch:
			to := o.Receive.Owner.(*receive)
			to.fetching = true
			c.fetches = append(c.fetches, fetch{r.me, o.To, o.Record, to})
		case Keep:
			r.keeps[o.Message] = s
			c.checkMemory(r, o.Message.Source)
		case CompleteSend:
			o.Send.Owner.(*send).complete++
		case CancelReceive:
			to := o.Receive.Owner.(*receive)
			if !to.cancel || to.canceled || to.got != nil {
				c.failf("a receive is cancelled that was not to be")
			}
			to.canceled = true
			c.counts["cancelled"]++
		default:
			c.failf("action %d", o.Do)
		}
	}
}

func (c *cluster) send(r *rank, to Rank, p parcel) { c.wires[r.me][to] = append(c.wires[r.me][to], p) }

// push sends a record, and what goes with it.
func (c *cluster) push(r *rank, o *Output) {
	p := parcel{record: o.Record}
	c.counts[kindNames[o.Record.Kind]]++
	if o.Record.Kind == Eager || o.Record.Kind == Request {
		p.send = o.Send.Owner.(*send)
		if o.Record.Kind == Eager {
			p.data = make([]byte, p.send.Size)
			if !p.send.Synchronous {
				p.send.complete++
			}
		}
		if o.Record.ID != 0 {
			r.asked[request(o.To, o.Record.ID)] = p.send
		}
	}
	c.send(r, o.To, p)
}

// finish notes which message has gone into a receive.
func (c *cluster) finish(r *rank, to *receive, s *send) {
	switch {
	case s == nil:
		c.failf("rank %d: a receive is complete by a message that nobody sent", r.me)
	case to.got != nil || s.got != nil || to.canceled:
		c.failf("rank %d: a message goes into two receives, or a receive takes two", r.me)
	case !to.takes(s.from, &s.Envelope) || s.To != r.me:
		c.failf("rank %d: a receive of %+v takes message %+v of %d", r.me, to.Pattern, s.Envelope, s.from)
	default:
		to.got, s.got = s, to
	}
}

// checkMemory checks that what is kept of one process has its bounds.
func (c *cluster) checkMemory(r *rank, source Rank) {
	p := &r.peers[source]
	size := 0
	for _, m := range p.kept {
		if !m.fetch {
			size += m.Size
		}
	}
	if size > c.cfg.EagerBytes {
		c.failf("rank %d keeps %d bytes of %d, want %d at most", r.me, size, source, c.cfg.EagerBytes)
	}
	if len(p.kept) > c.cfg.Headers && p.extra == 0 {
		c.failf("rank %d keeps %d messages of %d", r.me, len(p.kept), source)
	}
}

// check checks the outcome by MPI's rules: all that can be matched is, and nothing overtakes.
func (c *cluster) check() {
	for _, r := range c.ranks {
		for k, s := range r.sends {
			c.checkSend(s)
			for _, later := range r.sends[k+1:] {
				if later.To == s.To {
					c.checkOrder(s, later)
				}
			}
		}
		for _, to := range r.receives {
			c.checkReceive(to)
		}
	}
	for _, r := range c.ranks {
		for _, s := range r.sends {
			for _, to := range c.ranks[s.To].receives {
				if s.got == nil && to.got == nil && !to.canceled && to.takes(r.me, &s.Envelope) {
					c.failf("rank %d: message %+v and a receive of %+v of rank %d do not meet", r.me, s.Envelope, to.Pattern, s.To)
				}
			}
		}
	}
}

// checkOrder: of two messages, the first goes into the first receive that takes both.
func (c *cluster) checkOrder(s, later *send) {
	if r := later.got; r != nil && r.takes(s.from, &s.Envelope) && (s.got == nil || s.got.posted > r.posted) {
		c.failf("rank %d: message %+v overtakes %+v to %d", s.from, later.Envelope, s.Envelope, s.To)
	}
}

// checkReceive: of two receives that take the message of the second, the first has one, too. One that was
// to be cancelled was, or has one.
func (c *cluster) checkReceive(to *receive) {
	if to.cancel && !to.canceled && to.got == nil {
		c.failf("a receive of %+v is not cancelled", to.Pattern)
	}
	if to.got == nil {
		return
	}
	for _, earlier := range c.ranks[to.got.To].receives[:to.posted] {
		if earlier.got == nil && !earlier.cancel && earlier.takes(to.got.from, &to.got.Envelope) {
			c.failf("rank %d: a receive of %+v is passed over", to.got.To, earlier.Pattern)
		}
	}
}

// checkSend: a send is complete once, at the latest when its message was received.
func (c *cluster) checkSend(s *send) {
	if s.complete > 1 || s.got != nil && s.complete == 0 || s.got == nil && s.Synchronous && s.complete > 0 {
		c.failf("rank %d: send %+v to %d, received: %v, is complete %d times", s.from, s.Envelope, s.To, s.got != nil, s.complete)
	}
}
