package engine

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim/explore"
)

var (
	searchNodes  = flag.Int("search.nodes", 2, "TestSearch: the largest group")
	searchStates = flag.Int("search.states", 1_000_000, "TestSearch: of one algorithm and group, at most")
)

// scope bounds a search: how often each thing may happen in one history.
type scope struct {
	barriers                          uint32
	losses, duplicates, swaps, deaths int
}

// TestSearch visits every state that small groups can reach in any order of events, with one loss,
// one duplicate, one reordered frame and one death. Three barriers in a row use each colour twice.
func TestSearch(t *testing.T) {
	sum := figures{}
	for n := 2; n <= *searchNodes; n++ {
		for _, name := range []string{"shuffle", "concurrent", "tree:2", "star"} {
			for _, sc := range []scope{
				{barriers: 3, losses: 1, duplicates: 1, swaps: 1},
				{barriers: 1, losses: 1, deaths: 1},
			} {
				r := explore.All(func() explore.World { return newWorld(algorithm(name), n, sc) }, runs(*searchStates))
				t.Logf("%d nodes, %s, %+v: %d states, %d ends, cut short: %t", n, name, sc, r.States, r.Ends, r.Cut)
				if r.Wrong != "" {
					t.Errorf("%d nodes, %s, %+v: %s\nhistory %v", n, name, sc, r.Wrong, r.History)
				}
				sum["states"] += uint64(r.States)
				sum["ends"] += uint64(r.Ends)
				sum["searches"]++
				if r.Cut {
					sum["searches cut short"]++
				}
			}
		}
	}
	t.Logf("figures %v", sum)
}

// world is one state: the members, and the frames between each two of them.
type world struct {
	scope
	now     monotime.Time `explore:"-"`
	engines []*Engine
	dead    []bool
	in      []uint32
	flights [][][]byte // by sender and receiver, in order
	ticks   int        `explore:"-"`
	wrong   string     `explore:"-"`
}

const (
	arriving   = "arrive"
	delivering = "deliver"
	losing     = "lose"
	doubling   = "double"
	swapping   = "swap"
	killing    = "kill"
	ticking    = "tick"
)

const searchTicks = 200 // far more than a silent member is given

// newWorld is where a search begins.
func newWorld(algo schedule.Algorithm, n int, sc scope) *world {
	w := &world{scope: sc, now: monotime.At(time.Second), dead: make([]bool, n), in: make([]uint32, n)}
	w.flights = make([][][]byte, n*n)
	for rank := range n {
		w.engines = append(w.engines, New(Config{
			Rank: rank, Size: n, NICs: 1, Algorithm: algo, Identity: identity, Incarnation: uint32(rank) + 1,
			PeerTimeout: DefaultPeerTimeout,
		}))
	}
	return w
}

func (w *world) Wrong() string { return w.wrong }

func (w *world) State() (any, monotime.Time) { return w, w.now }

// End looks at a world in which nothing is left to happen: all live members have left all barriers, or
// know why not.
func (w *world) End() string {
	var deaths []int
	for rank, is := range w.dead {
		if is {
			deaths = append(deaths, rank)
		}
	}
	for rank, e := range w.engines {
		if w.dead[rank] {
			continue
		}
		state, generation := e.State(0)
		switch f := e.Failure(0); {
		case state == Waiting:
			return fmt.Sprintf("rank %d waits for ever for %v", rank, e.Missing(0, nil))
		case f != nil && !slices.Equal(f.Ranks, deaths):
			return fmt.Sprintf("rank %d has failed: %v, dead are %v", rank, f, deaths)
		case f == nil && generation != w.barriers:
			return fmt.Sprintf("rank %d ends in generation %d", rank, generation)
		}
	}
	return ""
}

func event(kind string, from, to int) explore.Move {
	return explore.Move{Kind: kind, From: from, To: to}
}

// Moves are the events that may come next. Time passes only when nothing else can happen.
func (w *world) Moves() (all []explore.Move) {
	n := len(w.engines)
	for rank, e := range w.engines {
		if state, generation := e.State(0); !w.dead[rank] && state == Idle && e.Failure(0) == nil && generation < w.barriers {
			all = append(all, event(arriving, rank, 0))
		}
	}
	for i, frames := range w.flights {
		if len(frames) == 0 {
			continue
		}
		from, to := i/n, i%n
		all = append(all, event(delivering, from, to))
		if w.losses > 0 {
			all = append(all, event(losing, from, to))
		}
		if w.duplicates > 0 {
			all = append(all, event(doubling, from, to))
		}
		if w.swaps > 0 && len(frames) > 1 {
			all = append(all, event(swapping, from, to))
		}
	}
	for rank := range w.engines {
		if w.deaths > 0 && !w.dead[rank] {
			all = append(all, event(killing, rank, 0))
		}
	}
	if _, ok := w.deadline(); ok && w.ticks < searchTicks && !slices.ContainsFunc(all, func(m explore.Move) bool { return m.Kind != killing }) {
		all = append(all, event(ticking, 0, 0))
	}
	if len(all) > 0 && all[0].Kind == killing && len(all) == w.alive() { // a death may be the last that happens, or never
		all = nil
	}
	return all
}

func (w *world) alive() (count int) {
	for _, is := range w.dead {
		if !is {
			count++
		}
	}
	return count
}

func (w *world) deadline() (at monotime.Time, ok bool) {
	for rank, e := range w.engines {
		if t, waits := e.Deadline(); waits && !w.dead[rank] && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

func (w *world) Do(m explore.Move) {
	i := m.From*len(w.engines) + m.To
	switch m.Kind {
	case arriving:
		w.in[m.From]++
		out, err := w.engines[m.From].Arrive(w.now, 0, nil)
		if err != nil && w.engines[m.From].Failure(0) == nil {
			w.wrong = fmt.Sprintf("rank %d cannot arrive: %v", m.From, err)
		}
		w.after(m.From, out)
	case delivering, doubling:
		b := w.flights[i][0]
		if m.Kind == doubling {
			w.duplicates--
		} else {
			w.flights[i] = w.flights[i][1:]
		}
		w.receive(m.From, m.To, b)
	case losing:
		w.losses--
		w.flights[i] = w.flights[i][1:]
	case swapping:
		w.swaps--
		b := w.flights[i][1]
		w.flights[i] = slices.Delete(slices.Clone(w.flights[i]), 1, 2)
		w.receive(m.From, m.To, b)
	case killing:
		w.deaths--
		w.dead[m.From] = true
		for from := range w.engines {
			w.flights[from*len(w.engines)+m.From] = nil
		}
	case ticking:
		w.ticks++
		at, _ := w.deadline()
		if at.After(w.now) {
			w.now = at
		}
		for rank, e := range w.engines {
			if !w.dead[rank] {
				w.after(rank, e.Advance(w.now, nil))
			}
		}
	}
}

func (w *world) receive(from, to int, b []byte) {
	var m Message
	if err := Parse(b, &m); err != nil {
		w.wrong = err.Error()
		return
	}
	w.after(to, w.engines[to].Handle(w.now, from, &m, nil))
}

// after checks the exits of an event, and takes its frames.
func (w *world) after(rank int, out []Send) {
	for range w.engines[rank].Ended() {
		state, generation := w.engines[rank].State(0)
		for other, entered := range w.in {
			if state == Idle && entered < generation {
				w.wrong = fmt.Sprintf("rank %d has left generation %d, rank %d is in %d", rank, generation, other, entered)
			}
		}
	}
	for i := range out {
		for to := range w.engines {
			if to != rank && !w.dead[to] && (out[i].To == to || out[i].To == schedule.All) {
				k := rank*len(w.engines) + to
				w.flights[k] = append(slices.Clip(w.flights[k]), out[i].Message.Append(nil))
			}
		}
	}
}
