package barrier

import (
	"context"
	"errors"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// Stats of a group's barriers at this node, since it was made.
type Stats struct {
	Barriers uint64        `json:"barriers"`    // that all members entered
	Wait     time.Duration `json:"wait_ns"`     // in all of them, from Arrive until all had entered
	MaxWait  time.Duration `json:"max_wait_ns"` // in one of them
	engine.Counters
	Last []LastCount `json:"last"` // who held this node up
}

// LastCount is how often a step of this node had waited for a node's message last of all.
type LastCount struct {
	Node  mcd.NodeID `json:"node"`
	Count uint64     `json:"count"`
}

// Stats returns the group's statistics, those of all numbers and masks together.
func (g *Group) Stats() Stats {
	circles := g.circles()
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	var s Stats
	last := map[mcd.NodeID]uint64{}
	for _, c := range circles {
		t := c.engine.Stats()
		s.Barriers += t.Barriers
		s.Wait += t.Wait
		s.MaxWait = max(s.MaxWait, t.MaxWait)
		n := c.engine.Counters()
		s.Told += n.Told
		s.Asked += n.Asked
		s.ToldAgain += n.ToldAgain
		s.Late += n.Late
		s.Double += n.Double
		s.Unawaited += n.Unawaited
		for rank, count := range c.engine.Last() {
			last[c.nodes[rank]] += count
		}
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

// TraceStep is one step of the schedule: messages that were awaited before others were told.
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

// Trace returns what this node saw of the last barrier of that number. ok is false if it has entered none.
func (g *Group) Trace(number uint8) (trace Trace, ok bool) {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	t := g.all.engine.Times(number)
	if t == nil {
		return Trace{}, false
	}
	since := func(at monotime.Time) time.Duration {
		if at == (monotime.Time{}) {
			return notYet
		}
		return at.Sub(t.Entered)
	}
	trace = Trace{Generation: t.Generation, Left: since(t.Left)}
	for _, s := range t.Steps {
		step := TraceStep{Done: since(s.Done)}
		for _, a := range s.Arrivals {
			step.Arrivals = append(step.Arrivals, TraceArrival{g.all.nodes[a.From], since(a.At), a.At != monotime.Time{}})
		}
		trace.Steps = append(trace.Steps, step)
	}
	return trace, true
}

// Presence is what a roll call finds of a member.
type Presence struct {
	Node   mcd.NodeID
	Status Status
}

// Status of a member in a barrier.
type Status = engine.Presence

// What a member may have answered.
const (
	NoAnswer   = engine.NoAnswer   // nothing yet
	Entered    = engine.Entered    // it has entered the barrier
	NotEntered = engine.NotEntered // it is there, and has not entered
	NoGroup    = engine.NoGroup    // it is there, and has not made the group, or has closed it
)

// rollAgain is how long answers to a roll call are awaited before it is repeated.
const rollAgain = 5 * time.Millisecond

// RollCall asks all members whether they have entered the barrier of that number that this node entered last, and
// returns their answers by rank: when all have answered, or when ctx ends, or the endpoint is closed.
func (g *Group) RollCall(ctx context.Context, number uint8) []Presence {
	for repeat := false; ; repeat = true {
		g.callRoll(number, repeat)
		again, cancel := context.WithTimeout(ctx, rollAgain)
		all, over := g.awaitRoll(again)
		cancel()
		if over || ctx.Err() != nil {
			return all
		}
	}
}

func (g *Group) callRoll(number uint8, again bool) {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	g.hub.out = g.all.engine.CallRoll(number, again, g.hub.out[:0])
	g.all.flush()
}

// awaitRoll makes progress until all have answered, or nobody can any more: then it is over.
func (g *Group) awaitRoll(ctx context.Context) (all []Presence, over bool) {
	var never mcd.Completion
	for {
		slice, cancel := context.WithTimeout(ctx, 100*time.Microsecond)
		err := g.hub.ep.Await(slice, &never) // it ends by its context, or with the endpoint
		cancel()
		closed := errors.Is(err, mcd.ErrClosed)
		if all, over = g.roll(); over || closed || ctx.Err() != nil {
			return all, over || closed
		}
	}
}

func (g *Group) roll() (all []Presence, complete bool) {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	complete = true
	for rank, p := range g.all.engine.Roll() {
		all = append(all, Presence{g.all.nodes[rank], p})
		complete = complete && p != NoAnswer
	}
	return all, complete
}

// lateness is what was done about a barrier that takes long.
type lateness uint8

const (
	inTime     lateness = iota
	rollCalled          // the answers are looked at when the timer ticks next
	logged
)

// checkLate logs who is missing in barriers that take longer than usual. The caller holds hub.mu.
func (c *circle) checkLate(now monotime.Time) {
	if c.cfg.Late == 0 {
		return
	}
	for i := range c.slots {
		s, number := c.slots[i].Load(), uint8(i)
		if s == nil || s.late == logged {
			continue
		}
		if state, _ := c.engine.State(number); state != engine.Waiting {
			continue
		}
		t := c.engine.Times(number)
		waited := now.Sub(t.Entered)
		switch {
		case s.late == rollCalled:
			s.late = logged
			c.logLate(number, t.Generation, waited)
		case waited >= c.cfg.Late:
			s.late = rollCalled
			c.hub.out = c.engine.CallRoll(number, false, c.hub.out[:0])
			c.flush()
		}
	}
}

func (c *circle) logLate(number uint8, generation uint32, waited time.Duration) {
	var missing, silent []mcd.NodeID
	for rank, p := range c.engine.Roll() {
		switch p {
		case NotEntered, NoGroup:
			missing = append(missing, c.nodes[rank])
		case NoAnswer:
			silent = append(silent, c.nodes[rank])
		}
	}
	c.cfg.Logger.Warn("barrier is late", "number", number, "generation", generation, "waited", waited,
		"not_entered", missing, "no_answer", silent)
}
