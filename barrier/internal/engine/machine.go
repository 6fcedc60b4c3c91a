package engine

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// State of a member in one barrier.
type State uint8

// The states.
const (
	Idle    State = iota // not in a barrier; the last one was left as it should
	Waiting              // entered
	Failed               // for good
)

// String names s.
func (s State) String() string { return [...]string{"idle", "waiting", "failed"}[s%3] }

// machine is one barrier number's state.
type machine struct {
	number     uint8
	state      State
	generation uint32 // the last that was entered; 0 before the first
	step       int    // the one that is waited in
	colours    [2]colour
	failure    *Failure
	doom       *Failure // of the next generation, which others have entered and seen fail

	begun    monotime.Time // when this step was
	asked    bool          // something was asked for in this generation: its times mean nothing
	interval time.Duration // until the next ask
	next     monotime.Time // when to ask
	pace     pace
	mutual   monotime.Time // since when a member has been waiting for us elsewhere; zero: nobody does
	with     int           // that member
	where    Elsewhere     // where it waits

	entered, left monotime.Time
	done          []monotime.Time // by step

	stats Stats
	last  []uint64 // by await: how often it was the one that a step had waited for
}

// Stats of one number, since the engine was made.
type Stats struct {
	Barriers uint64        // that were left as they should
	Wait     time.Duration // in all of them, from Arrive until it was left
	MaxWait  time.Duration // in one of them
}

// colour is what has come of the messages of one generation. Two are needed: while some are still in a
// generation, others may be in the next one, and nobody further. (The colour is the generation's lowest bit, as in
// MCD §2.3. The engine compares all 32 bits before it looks here: a duplicate that is two barriers late has the same
// colour.)
type colour struct {
	here []bool          // by index in plan.awaits
	at   []monotime.Time // when it came
	left []int           // by step: how many have not come
}

func newMachine(number uint8, p *plan) *machine {
	m := &machine{number: number, done: make([]monotime.Time, len(p.steps)), last: make([]uint64, len(p.awaits))}
	for i := range m.colours {
		m.colours[i] = colour{make([]bool, len(p.awaits)), make([]monotime.Time, len(p.awaits)), make([]int, len(p.steps))}
		m.colours[i].clear(p)
	}
	return m
}

func (c *colour) clear(p *plan) {
	clear(c.here)
	for i := range c.left {
		c.left[i] = p.steps[i].awaitEnd - p.steps[i].await
	}
}

// now is the colour of the generation that was entered last.
func (m *machine) now() *colour { return &m.colours[m.generation&1] }

func (s *Stats) note(wait time.Duration) {
	s.Barriers++
	s.Wait += wait
	s.MaxWait = max(s.MaxWait, wait)
}

// pace is how long steps usually take: a moving mean and deviation, as TCP's of round trips.
type pace struct{ mean, deviation time.Duration }

func (p *pace) note(took time.Duration) {
	if p.mean == 0 {
		p.mean, p.deviation = took, took/2
		return
	}
	off := took - p.mean
	p.mean += off / 8
	if off < 0 {
		off = -off
	}
	p.deviation += (off - p.deviation) / 4
}

// patience is how long to wait before it is worth to ask.
func (p *pace) patience(limit time.Duration) time.Duration {
	return min(max(firstAsk, p.mean+4*p.deviation), limit/asksPerLimit)
}

// Times are those of the last generation that was entered, by the clock of this node.
type Times struct {
	Generation uint32
	Entered    monotime.Time
	Left       monotime.Time // zero: still in it
	Steps      []StepTime
}

// StepTime is one step of a barrier.
type StepTime struct {
	Done     monotime.Time // zero: not yet
	Arrivals []Arrival     // in the schedule's order
}

// Arrival is a message that was awaited.
type Arrival struct {
	From int
	At   monotime.Time // before Times.Entered if its sender was early; zero: not here
}

// times copies those of the last generation.
func (m *machine) times(p *plan) *Times {
	t := &Times{Generation: m.generation, Entered: m.entered, Left: m.left}
	c := m.now()
	for i, s := range p.steps {
		st := StepTime{}
		if i < m.step {
			st.Done = m.done[i]
		}
		for a := s.await; a < s.awaitEnd; a++ {
			at := Arrival{From: p.awaits[a].From}
			if c.here[a] || m.state == Idle {
				at.At = c.at[a]
			}
			st.Arrivals = append(st.Arrivals, at)
		}
		t.Steps = append(t.Steps, st)
	}
	return t
}
