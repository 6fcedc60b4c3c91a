package sim

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

const us = time.Microsecond

// paper is a network with the costs of MCD §5.1.1.
func paper(nodes int) Config {
	return Config{Nodes: nodes, Os: 3 * us, L: 17500, Or: 9500}
}

// arrival is a call of deliver.
type arrival struct {
	at            time.Duration
	to, from, nic int
	m             string
}

// recorded is a network whose deliver writes down its arguments, then calls on, if set.
type recorded struct {
	Queue
	*Network[string]
	trace []arrival
	on    func(a arrival)
}

func record(c Config) *recorded {
	r := new(recorded)
	r.Network = NewNetwork(&r.Queue, c, func(to, from, nic int, m string) {
		a := arrival{r.Now().Since(), to, from, nic, m}
		r.trace = append(r.trace, a)
		if r.on != nil {
			r.on(a)
		}
	})
	return r
}

// at has f run at an instant of the script.
func (r *recorded) at(d time.Duration, f func()) { r.At(monotime.At(d), f) }

func (r *recorded) run() []arrival {
	for r.Step() {
	}
	return r.trace
}

func (r *recorded) want(t *testing.T, want ...arrival) {
	t.Helper()
	got := r.run()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %+v", want[i])
		case i >= len(want):
			t.Errorf("too much: %+v", got[i])
		case got[i] != want[i]:
			t.Errorf("arrival %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
