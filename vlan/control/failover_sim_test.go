package control_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/internal/vlantest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A small fat tree in virtual time: two leaves with two stations each, and three tops, one per VID.
// Frames of VID v go from leaf to leaf by top v alone; stations of one leaf reach each other by
// every VID.
//
//	top 1     top 2     top 3       VID = top
//	 |  \    /  |  \   /  |
//	leaf 0 (0, 1)   leaf 1 (2, 3)
const (
	simTops  = 3
	simNodes = 4
)

var simConfig = control.FailoverConfig{
	VIDs:  []transport.VID{1, 2, 3},
	Probe: 100 * time.Millisecond, StandbyInterval: 2 * time.Second,
	Timeout: 50 * time.Millisecond, Misses: 3, WaitToRestore: 2 * time.Second,
}

const (
	// simDelay is the longest journey of a frame.
	simDelay = time.Millisecond
	// simBound is by when after the last change the ends of each pair agree on a VID that works,
	// where there is one: the time to miss a probe and take the path for dead, twice, since the
	// next one may be dead, too; to let one that comes back settle; and to tell.
	simBound = 600 * time.Millisecond
)

// fatTree is the network and its stations.
type fatTree struct {
	t      *testing.T
	now    monotime.Time
	rng    *rand.Rand
	events simEvents
	cut    int // cable of leaf l and top v is bit l*simTops+v-1
	loss   float64
	nodes  [simNodes]*control.Failover
	prefer func(a, b int) transport.VID
	moves  map[plan.Pair]int
	bad    map[plan.Pair]monotime.Time // since when a pair could use a VID and does not
	worst  time.Duration
	watch  monotime.Time           // from when on it counts
	still  [simNodes]monotime.Time // until when a station stands still
	queue  [simNodes][]func()      // what has come meanwhile
}

type simEvent struct {
	at     monotime.Time
	number int
	do     func()
}

type simEvents []simEvent

func (e simEvents) Len() int { return len(e) }
func (e simEvents) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e simEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *simEvents) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func simMAC(k int) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, byte(k + 1)} }

func newFatTree(t *testing.T, seed uint64) *fatTree {
	w := &fatTree{t: t, now: monotime.At(time.Hour), rng: rand.New(rand.NewPCG(seed, 1)), moves: map[plan.Pair]int{}, bad: map[plan.Pair]monotime.Time{}}
	w.prefer = func(a, b int) transport.VID { return transport.VID(1 + min(a, b)%simTops) }
	for k := range w.nodes {
		w.begin(k)
	}
	return w
}

// begin has a station begin, or begin anew.
func (w *fatTree) begin(k int) {
	f, err := control.NewFailover(simMAC(k), simConfig)
	if err != nil {
		w.t.Fatal(err)
	}
	w.nodes[k] = f
	for j := range w.nodes {
		if j == k {
			continue
		}
		if _, err := f.SetPeer(w.now, simMAC(j), w.prefer(k, j), nil); err != nil {
			w.t.Fatal(err)
		}
	}
}

// alive reports whether frames of a VID go from a station to another one.
func (w *fatTree) alive(a, b int, vid transport.VID) bool {
	if a/2 == b/2 {
		return true
	}
	both := 1<<(vid-1) | 1<<(simTops+vid-1)
	return w.cut&both == 0
}

func (w *fatTree) after(d time.Duration, do func()) {
	heap.Push(&w.events, simEvent{w.now.Add(d), len(w.events), do})
}

// carry has a frame arrive, if it does.
func (w *fatTree) carry(from, to int, vid transport.VID, arrive func()) {
	if w.alive(from, to, vid) && w.rng.Float64() >= w.loss {
		w.after(10*time.Microsecond+time.Duration(w.rng.Int64N(int64(simDelay))), func() {
			if w.now.Before(w.still[to]) {
				w.queue[to] = append(w.queue[to], arrive)
				return
			}
			arrive()
		})
	}
}

// pause has a station stand still for a while. When it goes on it looks at what has come first, or
// at the time.
func (w *fatTree) pause(k int, d time.Duration) {
	end := w.now.Add(d)
	w.still[k] = end
	w.after(d, func() {
		if w.still[k] != end {
			return // it was made to stand still for longer
		}
		w.still[k] = monotime.Time{}
		if w.rng.IntN(2) == 0 {
			w.do(k, w.nodes[k].Advance(w.now, nil))
		}
		queue := w.queue[k]
		w.queue[k] = nil
		for _, arrive := range queue {
			arrive()
		}
	})
}

// do carries out what a station says.
func (w *fatTree) do(k int, steps []control.FailoverStep) {
	for _, s := range steps {
		to := int(s.Peer[5]) - 1
		if s.Body == nil {
			w.moves[plan.PairOf(k, to)]++
			continue
		}
		body := append([]byte(nil), s.Body...)
		sender := w.nodes[k]
		w.carry(k, to, s.VID, func() {
			w.do(to, w.nodes[to].Heard(w.now, simMAC(k), 1, body, nil))
			w.carry(to, k, s.VID, func() {
				if w.nodes[k] == sender {
					w.do(k, w.nodes[k].Answered(w.now, simMAC(to), s.VID, body, nil))
				}
			})
		})
	}
}

// run lets time pass.
func (w *fatTree) run(d time.Duration) {
	for end := w.now.Add(d); ; {
		at, who := end, -1
		if len(w.events) > 0 && !w.events[0].at.After(at) {
			at, who = w.events[0].at, simNodes
		}
		for k, f := range w.nodes {
			if due, ok := f.Deadline(); ok && due.Before(at) && !w.now.Before(w.still[k]) {
				at, who = due, k
			}
		}
		if at.After(w.now) {
			w.now = at
		}
		switch who {
		case -1:
			w.look()
			return
		case simNodes:
			heap.Pop(&w.events).(simEvent).do()
		default:
			w.do(who, w.nodes[who].Advance(w.now, nil))
		}
		w.look()
	}
}

// look notes for how long pairs that could use a VID do not.
func (w *fatTree) look() {
	for a := range simNodes {
		for b := a + 1; b < simNodes; b++ {
			pair := plan.PairOf(a, b)
			va, _ := w.nodes[a].VID(simMAC(b))
			vb, _ := w.nodes[b].VID(simMAC(a))
			could := w.alive(a, b, 1) || w.alive(a, b, 2) || w.alive(a, b, 3)
			if !could || va == vb && w.alive(a, b, va) {
				delete(w.bad, pair)
				continue
			}
			since, known := w.bad[pair]
			if !known {
				since = w.now
				w.bad[pair] = since
			}
			if since.Before(w.watch) {
				since = w.watch
			}
			w.worst = max(w.worst, w.now.Sub(since))
		}
	}
}

// settled lets the time pass in which the ends may disagree, and then some in which they may not:
// longer than the news of a decision takes.
func (w *fatTree) settled(d time.Duration, what string) {
	w.t.Helper()
	w.run(simBound)
	w.worst, w.watch = 0, w.now
	w.run(d)
	if w.worst > 2*simDelay {
		w.t.Errorf("%s: a pair that could use a VID did not for %v, long after the last change", what, w.worst)
	}
}

// All patterns of cut cables, in random order, some of them for a moment only: after the last
// change the two ends of each pair agree, within a bounded time, on a VID that works.
func TestFailoverEndsAgreeUnderAllCuts(t *testing.T) {
	for _, seed := range vlantest.Seeds(4 * *scale) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newFatTree(t, seed)
			for _, cut := range w.rng.Perm(1 << (2 * simTops)) {
				for range w.rng.IntN(3) {
					w.cut = w.rng.IntN(1 << (2 * simTops))
					w.run(time.Duration(w.rng.Int64N(int64(400 * time.Millisecond))))
				}
				w.cut = cut
				w.settled(time.Duration(w.rng.Int64N(int64(3*time.Second))), fmt.Sprintf("seed %d, cut %06b", seed, cut))
				if t.Failed() {
					return
				}
			}
			w.cut = 0
			w.settled((control.MaxHold+1)*simConfig.WaitToRestore, "healed") // all have flapped
			for a := range simNodes {
				for b := range simNodes {
					if vid, _ := w.nodes[a].VID(simMAC(b)); a != b && vid != w.prefer(a, b) {
						t.Errorf("all healed for long: %d uses VID %d to %d, want the preferred %d", a, vid, b, w.prefer(a, b))
					}
				}
			}
		})
	}
}

// Frames are lost by chance, as well as by cuts. The ends may move to and fro then; but they do it
// together, and when the losses end, they agree.
func TestFailoverEndsAgreeAfterLosses(t *testing.T) {
	for _, seed := range vlantest.Seeds(10) {
		w := newFatTree(t, seed)
		for range 20 {
			w.cut, w.loss = w.rng.IntN(1<<(2*simTops)), 0.5*w.rng.Float64()
			w.run(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
			w.loss = 0
			w.settled(time.Second, fmt.Sprintf("seed %d, cut %06b", seed, w.cut))
		}
	}
}

// A cable that comes and goes more quickly than the hold time moves each pair away once, and none
// back before it has held.
func TestFailoverDoesNotFlap(t *testing.T) {
	for _, seed := range vlantest.Seeds(10) {
		w := newFatTree(t, seed)
		w.settled(time.Second, "at first")
		if len(w.moves) != 0 {
			t.Fatalf("seed %d: moved without cause: %v", seed, w.moves)
		}
		for range 30 {
			w.cut = 1 // leaf 0 - top 1
			w.run(150*time.Millisecond + time.Duration(w.rng.Int64N(int64(time.Second))))
			w.cut = 0
			w.run(time.Duration(w.rng.Int64N(int64(simConfig.WaitToRestore - 200*time.Millisecond))))
		}
		w.cut = 1
		w.settled(time.Second, "still cut")
		for pair, n := range w.moves {
			if crossing := pair.A/2 != pair.B/2; n > 2 || !crossing || w.prefer(pair.A, pair.B) != 1 {
				t.Errorf("seed %d: pair %v was moved %d times by its two ends, want once by each if it was on the VID that flapped", seed, pair, n)
			}
		}
		if w.moves[plan.PairOf(0, 2)] != 2 || w.moves[plan.PairOf(0, 3)] != 2 {
			t.Errorf("seed %d: moves %v, want each end of 0-2 and 0-3 to have moved", seed, w.moves)
		}
		w.cut = 0
		w.settled(2*simConfig.WaitToRestore, "healed")
		if vid, _ := w.nodes[0].VID(simMAC(2)); vid != 1 || w.moves[plan.PairOf(0, 2)] != 4 {
			t.Errorf("seed %d: after the cable held, 0-2 uses VID %d and has moved %d times, want VID 1 and 4", seed, vid, w.moves[plan.PairOf(0, 2)])
		}
	}
}

// A station that begins anew, in the middle of a failover, is taken along by the others.
func TestFailoverTakesRestartedStationsAlong(t *testing.T) {
	for k := range simNodes {
		w := newFatTree(t, uint64(k))
		w.cut = 1
		w.settled(time.Second, "cut")
		w.begin(k)
		w.cut = 1 | 2 // another top's cable, too: a new decision is needed
		w.settled(time.Second, fmt.Sprintf("station %d began anew", k))
	}
}

// Where nothing came through for a while, all VIDs come back at about the same time: pairs stay on
// theirs.
func TestFailoverStaysAfterABlackout(t *testing.T) {
	for _, seed := range vlantest.Seeds(10) {
		w := newFatTree(t, seed)
		w.settled(time.Second, "at first")
		for range 10 {
			w.cut = 1<<(2*simTops) - 1
			w.run(time.Second + time.Duration(w.rng.Int64N(int64(time.Second))))
			clear(w.moves)
			w.cut = 0
			w.settled(2*simConfig.WaitToRestore, "healed")
			if len(w.moves) != 0 {
				t.Fatalf("seed %d: moved %v, though the VID in use came back, too", seed, w.moves)
			}
		}
	}
}

// Stations that were given different preferences agree all the same.
func TestFailoverAgreesOnDifferentPreferences(t *testing.T) {
	w := newFatTree(t, 3)
	for k, f := range w.nodes {
		for j := range w.nodes {
			if j != k {
				steps, err := f.SetPeer(w.now, simMAC(j), transport.VID(1+k%simTops), nil)
				if err != nil {
					t.Fatal(err)
				}
				w.do(k, steps)
			}
		}
	}
	w.run(simConfig.WaitToRestore) // in which an end that was told may wait for the other one to be told, too
	w.settled(3*simConfig.WaitToRestore, "preferences differ")
}

// worstFind is how long a dead VID stays in use at most: until it is probed, and as many probes are
// missed as are too many. Then the other end is told.
var worstFind = simConfig.Probe + time.Duration(simConfig.Misses)*simConfig.Timeout + 2*simDelay

// Stations stand still at random moments, for 300 ms or any other time, one or several at once.
// That moves no pair: neither do they blame their paths, nor the others theirs.
func TestFailoverOfStationsThatStandStillMovesNothing(t *testing.T) {
	seeds := []uint64{30, 37, 71, 222} // in these, a station stands still again when it has just begun to answer
	for _, seed := range append(seeds, vlantest.Seeds(30)...) {
		w := newFatTree(t, seed)
		w.run(time.Second)
		for i := range 100 {
			for range 1 + w.rng.IntN(2) {
				length := 300 * time.Millisecond
				if i%2 == 1 {
					length = time.Duration(w.rng.Int64N(int64(600 * time.Millisecond)))
				}
				w.pause(w.rng.IntN(simNodes), length)
				w.run(time.Duration(w.rng.Int64N(int64(100 * time.Millisecond))))
			}
			w.run(time.Duration(w.rng.Int64N(int64(time.Second))))
			if len(w.moves) != 0 {
				t.Fatalf("seed %d, pause %d: moved %v, though all paths are alive", seed, i, w.moves)
			}
		}
	}
}

// A real cut is found as soon as ever where nobody stands still; and where stations did, or do so
// just then, it is found as long after they have gone on, or three Timeouts later.
func TestFailoverFindsACutBesideStationsThatStandStill(t *testing.T) {
	for _, seed := range vlantest.Seeds(60) {
		w := newFatTree(t, seed)
		w.run(time.Second)
		found := worstFind
		for range w.rng.IntN(4) {
			w.pause(w.rng.IntN(simNodes), 300*time.Millisecond)
			w.run(time.Duration(w.rng.Int64N(int64(500 * time.Millisecond))))
		}
		for _, end := range w.still {
			found = max(found, end.Sub(w.now)+worstFind)
		}
		w.cut = 1 // leaf 0 - top 1
		w.worst, w.watch = 0, w.now
		if seed%2 == 1 {
			w.run(time.Duration(w.rng.Int64N(int64(worstFind))))
			w.pause(w.rng.IntN(simNodes), 300*time.Millisecond)
			found += 300*time.Millisecond + 3*simConfig.Timeout
		}
		w.run(2 * time.Second)
		if w.worst == 0 || w.worst > found {
			t.Errorf("seed %d: the pairs that VID 1 carried were without for %v, want at most %v", seed, w.worst, found)
		}
	}
}
