package engine

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/simfault"
	"github.com/rawlane/rawlane/sim/explore"
)

var (
	searchNodes  = flag.Int("search.nodes", 2, "TestSearch: the largest group")
	searchStates = flag.Int("search.states", 1_000_000, "TestSearch: of one algorithm and group, at most")
)

// scope bounds a search: how often each thing may happen in one history.
type scope struct {
	barriers                                    uint32
	losses, duplicates, swaps, deaths, restarts int
	leave                                       bool // members that are through
}

// TestSearch visits every state that small groups can reach in any order of events, with one loss,
// one duplicate, one reordered frame and one death, or with one member that begins anew while others
// leave. Three barriers in a row use each colour twice.
func TestSearch(t *testing.T) {
	sum := simfault.Figures{}
	for n := 2; n <= *searchNodes; n++ {
		for _, name := range []string{"shuffle", "concurrent", "tree:2", "star"} {
			for _, sc := range []scope{
				{barriers: 3, losses: 1, duplicates: 1, swaps: 1},
				{barriers: 1, losses: 1, deaths: 1},
				{barriers: 1, losses: 1, restarts: 1, leave: true},
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
	left    []bool     // it has left the group when it was through
	anew    []bool     // it has begun anew
	in      []uint32   // entered last, in any life
	out     []uint32   // left last, in this life
	before  [][]uint32 // by rank and other: what the other had left when this one entered
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
	restarting = "restart"
	leaving    = "leave"
	ticking    = "tick"
)

const (
	searchTicks  = 200 // far more than a silent member is given
	restartTicks = 30  // a member that has begun anew may wait for ever: a few more than a silent member is given
)

// newWorld is where a search begins.
func newWorld(algo schedule.Algorithm, n int, sc scope) *world {
	w := &world{scope: sc, now: monotime.At(time.Second), dead: make([]bool, n), in: make([]uint32, n)}
	w.left, w.anew, w.out, w.before = make([]bool, n), make([]bool, n), make([]uint32, n), make([][]uint32, n)
	w.flights = make([][][]byte, n*n)
	for rank := range n {
		w.engines = append(w.engines, New(Config{
			Rank: rank, Size: n, NICs: 1, Algorithm: algo, Identity: identity, Incarnation: uint32(rank) + 1,
			PeerTimeout: DefaultPeerTimeout,
		}))
	}
	return w
}

// restart begins a member anew. Frames to and from its former self are lost.
func (w *world) restart(rank int) {
	cfg := w.engines[rank].cfg
	cfg.Incarnation += 100
	w.engines[rank] = New(cfg)
	w.anew[rank], w.left[rank], w.out[rank] = true, false, 0
	for other := range w.engines {
		w.flights[rank*len(w.engines)+other], w.flights[other*len(w.engines)+rank] = nil, nil
	}
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
		if state, _ := e.State(0); w.anew[rank] && state == Waiting {
			return "" // for members that could make the group anew; others wait for this one
		}
	}
	for rank, e := range w.engines {
		if w.dead[rank] || w.left[rank] {
			continue
		}
		state, generation := e.State(0)
		switch f := e.Failure(0); {
		case state == Waiting:
			return fmt.Sprintf("rank %d waits for ever for %v", rank, e.Missing(0, nil))
		case f != nil && !slices.Equal(f.Ranks, deaths) && !slices.Contains(w.anew, true):
			return fmt.Sprintf("rank %d has failed: %v, dead are %v", rank, f, deaths)
		case f == nil && generation != w.barriers && !slices.Contains(w.anew, true):
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
		if state, generation := e.State(0); !w.dead[rank] && !w.left[rank] && state == Idle && e.Failure(0) == nil && generation < w.barriers {
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
	for rank, e := range w.engines {
		if w.deaths > 0 && !w.dead[rank] {
			all = append(all, event(killing, rank, 0))
		}
		state, entered := e.State(0)
		if w.leave && !w.left[rank] && state == Idle && entered == w.barriers {
			all = append(all, event(leaving, rank, 0))
		}
		if w.restarts > 0 && entered > 0 {
			all = append(all, event(restarting, rank, 0))
		}
	}
	if _, ok := w.deadline(); ok && w.ticks < w.most() && !slices.ContainsFunc(all, func(m explore.Move) bool { return m.Kind != killing && m.Kind != restarting }) {
		all = append(all, event(ticking, 0, 0))
	}
	if len(all) > 0 && all[0].Kind == killing && len(all) == w.alive() { // a death may be the last that happens, or never
		all = nil
	}
	return all
}

// most is how often time passes.
func (w *world) most() int {
	if slices.Contains(w.anew, true) {
		return restartTicks
	}
	return searchTicks
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
		if t, waits := e.Deadline(); waits && !w.dead[rank] && !w.left[rank] && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

func (w *world) Do(m explore.Move) {
	i := m.From*len(w.engines) + m.To
	switch m.Kind {
	case arriving:
		_, generation := w.engines[m.From].State(0)
		w.in[m.From] = max(w.in[m.From], generation+1)
		w.before[m.From] = slices.Clone(w.out)
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
	case leaving:
		w.after(m.From, w.engines[m.From].Leave(nil))
		w.left[m.From] = true
	case restarting:
		w.restarts--
		w.restart(m.From)
	case ticking:
		w.ticks++
		at, _ := w.deadline()
		if at.After(w.now) {
			w.now = at
		}
		for rank, e := range w.engines {
			if !w.dead[rank] && !w.left[rank] {
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
	if !w.left[to] {
		w.after(to, w.engines[to].Handle(w.now, from, &m, nil))
		return
	}
	if m.Kind != Nack && m.Kind != Report && m.Kind != Bye {
		return
	}
	answer := Message{Kind: NoSuchGroup, Identity: identity, Number: m.Number, Generation: m.Generation, Answers: m.Kind, Heard: m.Heard}
	if m.Kind == Bye {
		answer = Message{Kind: ByeAck, Identity: identity}
	} else if answers, ok := w.engines[to].Farewell(w.now, from, &m, nil); ok {
		w.after(to, answers)
		return
	}
	w.after(to, []Send{{from, 0, answer}})
}

// after checks the exits of an event, and takes its frames.
func (w *world) after(rank int, out []Send) {
	for range w.engines[rank].Ended() {
		state, generation := w.engines[rank].State(0)
		if state != Idle {
			continue
		}
		for other, entered := range w.in {
			if entered < generation {
				w.wrong = fmt.Sprintf("rank %d has left generation %d, rank %d is in %d", rank, generation, other, entered)
			}
		}
		for _, a := range w.engines[rank].plan.awaits {
			if w.before[rank][a.From] >= generation {
				w.wrong = fmt.Sprintf("rank %d has left generation %d, which rank %d had left before it entered", rank, generation, a.From)
			}
		}
		w.out[rank] = generation
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
