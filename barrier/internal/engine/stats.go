package engine

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Stats of all numbers together, since the engine was made.
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
}

// AddStats adds the engine's statistics to s.
func (e *Engine) AddStats(s *Stats) {
	s.Barriers += e.stats.Barriers
	s.Wait += e.stats.Wait
	s.MaxWait = max(s.MaxWait, e.stats.MaxWait)
	s.Notifies += e.stats.Notifies
	s.Nacks += e.stats.Nacks
	s.Resent += e.stats.Resent
	s.Late += e.stats.Late
	s.Duplicates += e.stats.Duplicates
	s.Unexpected += e.stats.Unexpected
}

func (s *Stats) sample(wait time.Duration) {
	s.Barriers++
	s.Wait += wait
	s.MaxWait = max(s.MaxWait, wait)
}

// Last returns by rank how often its message was the last that a step here waited for. The slice
// is the engine's.
func (e *Engine) Last() []uint64 { return e.last }

// Times are those of the last generation that was entered, by the clock of this node.
type Times struct {
	Generation uint32
	Entered    monotime.Time
	Left       monotime.Time // zero: not completed yet
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

// Times returns a copy of those of a number's last generation; nil if there was none.
func (e *Engine) Times(number uint8) *Times {
	m := e.machines[number]
	if m == nil || m.generation == 0 {
		return nil
	}
	t := &Times{Generation: m.generation, Entered: m.entered, Left: m.left}
	c := m.current()
	for i, s := range e.plan.steps {
		var st StepTime
		if i < m.step {
			st.Done = m.done[i]
		}
		for a := s.await; a < s.awaitEnd; a++ {
			at := Arrival{From: e.plan.awaits[a].From}
			if c.here[a] || m.state == Idle {
				at.At = c.at[a]
			}
			st.Arrivals = append(st.Arrivals, at)
		}
		t.Steps = append(t.Steps, st)
	}
	return t
}
