package engine

import (
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// State of a member in one barrier.
type State uint8

// The states.
const (
	Idle    State = iota // not in a barrier: none was entered, or the last one was completed
	Waiting              // entered
	Failed               // for good
)

// machine is one barrier number's state.
type machine struct {
	number         uint8
	state          State
	generation     uint32 // the last that was entered; 0 before the first
	step           int    // the step of the schedule that is waited in
	parities       [2]parity
	failure        *Failure
	pendingFailure *Failure // of the next generation, which other members have entered

	begun    monotime.Time  // the instant that this step began
	nacked   bool           // a nack was sent in this generation: its times mean nothing
	nacks    int            // rounds of them in this step: each goes by another network
	interval time.Duration  // until the next nack
	next     monotime.Time  // the instant of the next nack
	stepTime congestion.RTT // how long steps usually take

	entered, left monotime.Time
	done          []monotime.Time // by step

	queries []*Query // that were not ended
}

// parity holds the messages of the generations that have one lowest bit. Two are needed: while some
// members are in a generation, others may be in the next one, and none further.
//
// The engine compares all 32 bits of the generation before it looks here: a duplicate that is two
// barriers late has the same bit. (MCD §2.3 has a colouring under study, by which messages do not
// overtake a barrier, and does not say of how many colours.)
type parity struct {
	here []bool          // by index in plan.awaits
	at   []monotime.Time // the instant that it came
	left []int           // by step: how many have not come
}

func newMachine(number uint8, p *plan) *machine {
	m := &machine{number: number, done: make([]monotime.Time, len(p.steps))}
	for i := range m.parities {
		m.parities[i] = parity{
			make([]bool, len(p.awaits)), make([]monotime.Time, len(p.awaits)), make([]int, len(p.steps)),
		}
		m.parities[i].clear(p)
	}
	return m
}

func (c *parity) clear(p *plan) {
	clear(c.here)
	for i := range c.left {
		c.left[i] = p.steps[i].awaitEnd - p.steps[i].await
	}
}

// current returns the messages of the generation that was entered last.
func (m *machine) current() *parity { return &m.parities[m.generation&1] }

// awaits reports whether a message of a member is still to come.
func (m *machine) awaits(rank int, p *plan) bool {
	for i, a := range p.awaits {
		if a.From == rank && !m.current().here[i] {
			return true
		}
	}
	return false
}

// completed returns the last generation that was completed.
func (m *machine) completed() uint32 {
	if m.state == Idle {
		return m.generation
	}
	return m.generation - 1
}

// hasEntered reports whether this member has entered a generation.
func (m *machine) hasEntered(generation uint32) bool { return int32(generation-m.generation) <= 0 }
