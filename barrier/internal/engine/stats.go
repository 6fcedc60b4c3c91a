package engine

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Stats of all numbers together, since the engine was made. barrier.Stats says what each is.
type Stats struct {
	Barriers        uint64
	Wait, MaxWait   time.Duration
	Notifies, Nacks uint64
	Resent, Late    uint64
	Duplicates      uint64
	Unexpected      uint64
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
