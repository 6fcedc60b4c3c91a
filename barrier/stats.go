package barrier

import (
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// Stats of a group's barriers at this node, since it was made.
type Stats struct {
	Barriers   uint64        `json:"barriers"`    // completed: all members entered
	Wait       time.Duration `json:"wait_ns"`     // in all of them, from Arrive until completion
	MaxWait    time.Duration `json:"max_wait_ns"` // in one of them
	Notifies   uint64        `json:"notifies"`    // messages of schedules sent; a multicast is one
	Nacks      uint64        `json:"nacks"`       // sent for messages that were missing
	Resent     uint64        `json:"resent"`      // messages of schedules sent again, for a nack
	Late       uint64        `json:"late"`        // messages received of past generations
	Duplicates uint64        `json:"duplicates"`  // messages received twice
	Unexpected uint64        `json:"unexpected"`  // messages received that the schedule does not have
	Last       []LastCount   `json:"last"`        // which members held this node up
}

// LastCount is how often a step of this node waited for a member's message last of all.
type LastCount struct {
	Node  mcd.NodeID `json:"node"`
	Count uint64     `json:"count"`
}

// Stats returns the group's statistics, those of all numbers and masks together.
func (g *Group) Stats() Stats {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	var all engine.Stats
	last := map[mcd.NodeID]uint64{}
	for _, c := range g.sets {
		c.engine.AddStats(&all)
		for rank, count := range c.engine.Last() {
			last[c.nodes[rank]] += count
		}
	}
	s := Stats{
		Barriers: all.Barriers, Wait: all.Wait, MaxWait: all.MaxWait, Notifies: all.Notifies, Nacks: all.Nacks,
		Resent: all.Resent, Late: all.Late, Duplicates: all.Duplicates, Unexpected: all.Unexpected,
		Last: []LastCount{}, // empty, and not null, as JSON
	}
	for _, n := range g.all.nodes {
		if last[n] > 0 {
			s.Last = append(s.Last, LastCount{n, last[n]})
		}
	}
	return s
}

// Trace is what this node saw of one barrier. Times are relative to its entry.
type Trace struct {
	Generation uint32        `json:"generation"`
	Left       time.Duration `json:"left_ns"` // when all had entered; negative: not yet
	Steps      []TraceStep   `json:"steps"`
}

// TraceStep is one step of the schedule: messages that were awaited before others were sent.
type TraceStep struct {
	Done     time.Duration  `json:"done_ns"` // negative: not yet
	Arrivals []TraceArrival `json:"arrivals"`
}

// TraceArrival is when a node's message came: negative times are before this node's entry.
type TraceArrival struct {
	Node mcd.NodeID    `json:"node"`
	At   time.Duration `json:"at_ns"`
	Here bool          `json:"here"`
}

const notYet = -1

// Trace returns what this node saw of the last barrier of that number, among all members. ok is
// false if it has entered none.
func (g *Group) Trace(number uint8) (trace Trace, ok bool) {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	t := g.all.engine.Times(number)
	if t == nil {
		return Trace{}, false
	}
	since := func(at monotime.Time) time.Duration {
		if at.IsZero() {
			return notYet
		}
		return at.Sub(t.Entered)
	}
	trace = Trace{Generation: t.Generation, Left: since(t.Left), Steps: []TraceStep{}}
	for _, s := range t.Steps {
		step := TraceStep{Done: since(s.Done), Arrivals: []TraceArrival{}}
		for _, a := range s.Arrivals {
			step.Arrivals = append(step.Arrivals, TraceArrival{g.all.nodes[a.From], since(a.At), !a.At.IsZero()})
		}
		trace.Steps = append(trace.Steps, step)
	}
	return trace, true
}
