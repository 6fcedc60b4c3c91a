package discovery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// tick is the step of time on the air.
const tick = 50 * time.Microsecond

// seeds is n, or a fifth of it with -short, with which the tests run under the race detector: it is
// ten times slower, and has nothing more to find in code without goroutines.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}

// air is a segment: what is said reaches each of the others 1 to 4 ticks later, in any order, or is lost.
type air struct {
	rng      *rand.Rand
	now      monotime.Time
	loss     float64
	size     int // that the nodes expect
	nodes    []*onAir
	arriving map[monotime.Time][]arrival
	said     int // announcements to all
	answers  int // to one node
}

// onAir is a node. It hears nothing before it begins.
type onAir struct {
	s     Station
	begin monotime.Time
	shy   bool // it hears for a tick before it says anything
	m     *Discovery
}

type arrival struct {
	from, to *onAir
	a        Announcement
}

func newAir(seed uint64, size int, loss float64) *air {
	return &air{
		rng: rand.New(rand.NewPCG(seed, 0)), now: monotime.At(time.Second), loss: loss, size: size,
		arriving: make(map[monotime.Time][]arrival),
	}
}

// add has a node begin at any time within spread.
func (w *air) add(s Station, spread time.Duration) *onAir {
	n := &onAir{s: s, begin: w.now.Add(time.Duration(w.rng.Int64N(int64(spread) + 1)))}
	w.nodes = append(w.nodes, n)
	return n
}

// run has the nodes meet until each has met or failed, or the limit is over, and returns how long that took.
func (w *air) run(limit time.Duration) (took time.Duration, decided bool) {
	start := w.now
	for ; w.now.Sub(start) < limit; w.now = w.now.Add(tick) {
		w.rng.Shuffle(len(w.nodes), func(i, j int) { w.nodes[i], w.nodes[j] = w.nodes[j], w.nodes[i] })
		decided = true
		for _, n := range w.nodes {
			if w.now.Before(n.begin) {
				decided = false
				continue
			}
			if n.m == nil {
				n.m = New(w.now, n.s, w.size, w.rng.Uint64())
				n.shy = w.rng.IntN(2) == 0
			}
			if n.shy {
				n.shy, decided = false, false
				continue
			}
			w.say(n, n.m.Advance(w.now, nil))
			decided = decided && (n.m.State() == Complete || n.m.State() == Failed)
		}
		if decided {
			break
		}
		w.deliver()
	}
	return w.now.Sub(start), decided
}

func (w *air) say(n *onAir, out []Send) {
	for _, s := range out {
		if s.One {
			w.answers++
		} else {
			w.said++
		}
		for _, to := range w.nodes {
			if to == n || s.One && !slices.Equal(to.s.MACs, s.To.MACs) || w.rng.Float64() < w.loss {
				continue
			}
			at := w.now.Add(time.Duration(1+w.rng.IntN(4)) * tick)
			w.arriving[at] = append(w.arriving[at], arrival{n, to, s.Announcement})
		}
	}
}

func (w *air) deliver() {
	for _, r := range w.arriving[w.now] {
		if r.to.m != nil {
			w.say(r.to, r.to.m.Handle(w.now, r.from.s.Node, r.from.s.MACs[0], 0, &r.a, nil))
		}
	}
	delete(w.arriving, w.now)
}

// count returns how many nodes are in a state.
func (w *air) count(s State) (n int) {
	for _, k := range w.nodes {
		if k.m != nil && k.m.State() == s {
			n++
		}
	}
	return n
}

// Nodes that start at any time within a second and lose a third of all announcements meet, and soon.
func TestMeetsInSpiteOfLoss(t *testing.T) {
	for seed := range seeds(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newAir(seed, 2+rng.IntN(8), 1./3)
		for k := range w.size {
			w.add(station(k, 1), time.Second)
		}
		if took, decided := w.run(20 * time.Second); !decided || w.count(Complete) != w.size {
			t.Errorf("seed %d: %d of %d met after %v", seed, w.count(Complete), w.size, took)
		}
	}
}

// doubles runs a whole cluster and one more node, of the last one's number, at another address or, as a clone of its
// machine, at the same one. It returns how many of these two have met.
func (w *air) doubles(spread time.Duration, clone bool) (met int) {
	for k := range w.size {
		s := station(k, 1)
		s.Place.Host = 1
		w.add(s, spread)
	}
	double := station(w.size-1, 1)
	double.Place.Host = 2
	if !clone {
		double.MACs = []transport.MAC{mac(w.size, 0)}
	}
	w.add(double, spread)
	w.run(spread + 10*SettleInterval) // a node that starts after another has failed goes on seeking
	for _, n := range w.nodes {
		if n.s.Node == double.Node && n.m.State() == Complete {
			met++
		}
	}
	return met
}

// Two nodes of one number, started with the others, never both meet where nothing is lost: whatever the order in which
// they begin and are heard. The cluster needs one of them, so that nobody is missing.
func TestDoubles(t *testing.T) {
	for _, size := range []int{2, 3, 8} {
		for _, spread := range []time.Duration{0, AnswerInterval / 2, 2 * AnswerInterval, SettleInterval, 4 * SettleInterval} {
			t.Run(fmt.Sprintf("nodes 0 to %d and another %d within %v", size-1, size-1, spread), func(t *testing.T) {
				for seed := range seeds(200) {
					w, clone := newAir(seed, size, 0), seed%2 == 1
					if met := w.doubles(spread, clone); met > 1 || w.count(Failed) == 0 {
						t.Fatalf("seed %d: %d nodes %d have met, %d nodes have failed", seed, met, size-1, w.count(Failed))
					}
				}
			})
		}
	}
}

// Where 30 % of all announcements are lost, few doubles both meet. More cannot be promised.
func TestDoublesInSpiteOfLoss(t *testing.T) {
	runs := seeds(1000)
	for _, size := range []int{2, 3, 8} {
		both := 0
		for seed := range runs {
			w := newAir(seed, size, 0.3)
			if w.doubles(SettleInterval, false) > 1 {
				both++
			}
		}
		t.Logf("%d nodes: in %d of %d runs, both have met", size, both, runs)
		if uint64(both) > runs/20 {
			t.Errorf("%d nodes: in %d of %d runs, both have met", size, both, runs)
		}
	}
}

// Nodes that are started together do not answer each of the others: started within a millisecond, n nodes are 2n to 4n
// announcements, not n*n.
func TestAnnouncementsOfACluster(t *testing.T) {
	for _, c := range []struct {
		spread time.Duration
		loss   float64
		most   float64 // per node
	}{
		{0, 0, 2},
		{time.Millisecond, 0, 4},
		{10 * time.Millisecond, 0, 10},
		{50 * time.Millisecond, 0, 35},
		{time.Millisecond, 0.3, 16},
	} {
		for _, size := range []int{2, 16, 100, 300} {
			if testing.Short() && size > 100 {
				continue
			}
			t.Run(fmt.Sprintf("%d nodes within %v, %.0f %% lost", size, c.spread, 100*c.loss), func(t *testing.T) {
				for seed := range uint64(max(1, min(30, 200/size))) {
					w := newAir(seed, size, c.loss)
					for k := range size {
						w.add(station(k, 1), c.spread)
					}
					took, _ := w.run(20 * time.Second)
					if w.count(Complete) != size {
						t.Fatalf("seed %d: %d met after %v", seed, w.count(Complete), took)
					}
					perNode := float64(w.said) / float64(size)
					if answers := float64(w.answers) / float64(size); answers > c.most {
						t.Errorf("seed %d: %.2f answers to one node a node, want %v at most", seed, answers, c.most)
					}
					if perNode > c.most {
						t.Errorf("seed %d: %.2f announcements a node, want %v at most", seed, perNode, c.most)
					}
					if seed == 0 {
						t.Logf("%.2f announcements a node in %v", perNode, took)
					}
				}
			})
		}
	}
}
