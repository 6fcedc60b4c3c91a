package consensus

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
)

func (v *Value) equal(u *Value) bool {
	return v.Flags == u.Flags && v.Context == u.Context && v.Failed.equal(u.Failed) &&
		v.Unacknowledged.equal(u.Unacknowledged)
}

// cluster is members that agree some times, on a network that delays messages: those of a pair keep
// their order.
type cluster struct {
	random  prng.Source
	members []*member
	wires   [][][]Message // from, to: what is under way
	wrong   string
	counts  map[string]int
	errs    bool // processes that live may be taken for down
	deaths  int  // that are left
	calls   int  // of each member
}

type member struct {
	*Member
	rank     int
	dead     bool
	begun    []Contribution
	results  []Value
	apart    []Set // of each result that this member has decided on itself: who was down or out; else nil
	excluded int   // Begins without a value
}

func newCluster(seed uint64) *cluster {
	c := &cluster{random: prng.Source(seed), counts: map[string]int{}}
	n := 1 + c.random.Below(6)
	c.calls, c.deaths, c.errs = 1+c.random.Below(4), c.random.Below(n+1), c.random.Hits(.3)
	for k := range n {
		c.members = append(c.members, &member{Member: New(k, n), rank: k})
		c.wires = append(c.wires, make([][]Message, n))
	}
	return c
}

func (c *cluster) failf(format string, args ...any) {
	if c.wrong == "" {
		c.wrong = fmt.Sprintf(format, args...)
	}
}

// run has anything happen that can, in any order, until nothing can.
func (c *cluster) run() {
	for step := 0; c.wrong == ""; step++ {
		if step > 100_000 {
			c.failf("it does not end")
			return
		}
		events := c.events()
		if len(events) == 0 {
			break
		}
		events[c.random.Below(len(events))]()
	}
	c.check()
}

// events are what can happen now.
func (c *cluster) events() (all []func()) {
	for _, m := range c.members {
		if m.dead {
			continue
		}
		if len(m.begun) < c.calls {
			all = append(all, func() { c.begin(m) })
		}
		for _, other := range c.members {
			if m == other || m.down.Has(other.rank) {
				continue
			}
			if len(c.wires[other.rank][m.rank]) > 0 {
				all = append(all, func() { c.deliver(other, m) })
			}
			switch {
			case other.dead:
				all = append(all, func() { c.carryOut(m, m.Down(other.rank, nil)) })
			case other.down.Has(m.rank):
				all = append(all, func() { c.carryOut(m, m.GivenUpBy(other.rank, nil)) })
			}
		}
	}
	if c.deaths > 0 && c.random.Hits(.05) {
		all = append(all, func() { c.kill(c.members[c.random.Below(len(c.members))]) })
	}
	if c.errs && c.random.Hits(.1) {
		m, other := c.members[c.random.Below(len(c.members))], c.random.Below(len(c.members))
		if !m.dead && other != m.rank {
			all = append(all, func() {
				c.counts["suspicions"]++
				c.carryOut(m, m.Down(other, nil))
			})
		}
	}
	return all
}

func (c *cluster) kill(m *member) {
	if !m.dead {
		c.counts["deaths"]++
	}
	m.dead = true
	c.deaths--
}

func (c *cluster) begin(m *member) {
	contribution := Contribution{Flags: c.random.Next(), Context: uint32(c.random.Below(3))}
	contribution.Flags |= c.random.Next()
	for k := range c.members {
		if m.Failed().Has(k) && c.random.Hits(.7) {
			contribution.Acknowledged = contribution.Acknowledged.With(k)
		}
	}
	m.begun = append(m.begun, contribution)
	c.carryOut(m, m.Begin(contribution, nil))
}

func (c *cluster) deliver(from, to *member) {
	wire := &c.wires[from.rank][to.rank]
	msg := (*wire)[0]
	*wire = (*wire)[1:]
	c.counts["messages"]++
	out, err := to.Handle(from.rank, &msg, nil)
	if err != nil && !c.errs {
		c.failf("rank %d refuses %+v of %d", to.rank, msg, from.rank)
	}
	c.carryOut(to, out)
}

// carryOut does what a core wants. The process may die in the middle.
func (c *cluster) carryOut(m *member, out []Output) {
	for _, o := range out {
		if c.deaths > 0 && c.random.Hits(.02) {
			c.counts["deaths in the middle"]++
			c.kill(m)
		}
		if m.dead {
			return
		}
		switch o.Do {
		case Send:
			c.wires[m.rank][o.To] = append(c.wires[m.rank][o.To], o.Message)
		case Decided:
			m.results, m.apart = append(m.results, o.Value), append(m.apart, nil)
			if m.mine.Number == uint32(len(m.results)) && m.mine.Round == uint32(m.rank)+1 {
				m.apart[len(m.results)-1] = append(Set{}, m.Failed()...)
			}
			c.counts["decided"]++
		case Excluded:
			m.excluded++
			c.counts["excluded"]++
		default:
			c.failf("action %d", o.Do)
		}
	}
}

// check checks the outcome. Members that died in the middle may have decided, and not returned.
func (c *cluster) check() {
	for _, m := range c.members {
		if got := len(m.results) + m.excluded; got > len(m.begun) || !m.dead && got < c.calls {
			c.failf("rank %d has %d outcomes of %d", m.rank, got, len(m.begun))
		}
		if m.excluded > 0 && !c.errs {
			c.failf("rank %d is excluded", m.rank)
		}
		for k := range m.results {
			c.checkValue(m, k)
			for _, other := range c.members[:m.rank] {
				if len(other.results) > k && !other.results[k].equal(&m.results[k]) && !c.areApart(m, other, k) {
					c.failf("agreement %d: rank %d has %+v, rank %d %+v", k, other.rank, other.results[k], m.rank, m.results[k])
				}
			}
		}
	}
}

// areApart reports whether two members may have different results: where processes that live are
// taken for down, and if each of the two was down or out to who has decided on the other one's result.
func (c *cluster) areApart(a, b *member, k int) bool {
	c.counts["apart"]++
	for _, pair := range [][2]*member{{a, b}, {b, a}} {
		for _, m := range c.members {
			decider := len(m.results) > k && m.apart[k] != nil && m.results[k].equal(&pair[0].results[k])
			if decider && !m.apart[k].Has(pair[1].rank) {
				return false
			}
		}
	}
	return c.errs
}

// checkValue: a value is what those have given that are not out, and only the dead are.
func (c *cluster) checkValue(m *member, k int) {
	v, want := &m.results[k], Value{Flags: ^uint64(0), Failed: m.results[k].Failed}
	for _, other := range c.members {
		if v.Failed.Has(other.rank) {
			if !other.dead && !c.errs {
				c.failf("agreement %d: rank %d lives, and is out", k, other.rank)
			}
			continue
		}
		if len(other.begun) <= k {
			c.failf("agreement %d: rank %d is not out, and has given nothing", k, other.rank)
			return
		}
		given := &other.begun[k]
		want.Flags &= given.Flags
		if want.Context == 0 {
			want.Context = given.Context
		}
		want.Unacknowledged = want.Unacknowledged.Union(v.Failed.Minus(given.Acknowledged))
	}
	if !want.equal(v) {
		c.failf("agreement %d: rank %d has %+v, want %+v", k, m.rank, v, want)
	}
	if k > 0 && len(m.results[k-1].Failed.Minus(v.Failed)) > 0 || v.Failed.Has(m.rank) {
		c.failf("agreement %d: rank %d has %v out, before %v", k, m.rank, v.Failed, slices.Clone(m.results[:k]))
	}
}
