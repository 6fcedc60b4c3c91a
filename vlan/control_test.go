package vlan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/vlan"
)

// someTraffic is a few flows of each node, of all sizes up to what a cable carries.
func someTraffic(r *rand.Rand, nodes int) (t vlan.Traffic) {
	for from := range nodes {
		for range 1 + r.IntN(2) {
			if to := r.IntN(nodes); to != from {
				t = append(t, vlan.Flow{From: from, To: to, Rate: vlan.Rate(1+r.IntN(10)) * 100 * vlan.Mbps})
			}
		}
	}
	return t.Normalise()
}

// light is a fifth of some traffic: no link is full.
func light(t vlan.Traffic) vlan.Traffic {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate /= 5
	}
	return t
}

// watch runs a model, and checks after each period what must hold whatever the traffic.
type watch struct {
	*model
	t       *testing.T
	name    string
	old     *vlan.Plan // before the latest changes, or nil
	moved   map[vlan.Pair]mono.Time
	changes int
	last    int // period with a change
	periods int
	slack   float64 // from which factor on a worst link is worse
}

const (
	mostChanges = 4
	rest        = 5 * period
)

// newWatch watches a controller that begins with any plan. Where links are full it cannot know what is wanted, and may be wrong by
// some of it; where they are not, it sees all.
func newWatch(t *testing.T, name string, top *vlan.Topology, seed uint64) *watch {
	m := newModel(top, start(top, seed), vlan.ControlConfig{MaxChanges: mostChanges, Rest: rest})
	return &watch{model: m, t: t, name: name, moved: make(map[vlan.Pair]mono.Time), slack: 1.15}
}

// step lets a period pass in which one traffic after the other is wanted, for as long each.
func (w *watch) step(wanted ...vlan.Traffic) []vlan.Decision {
	w.t.Helper()
	for _, t := range wanted {
		w.wants(t)
		w.run(period / time.Duration(len(wanted)))
	}
	before := w.plan
	decisions := w.decide()
	w.periods++
	w.checkLimits(decisions)
	if len(wanted) == 1 {
		w.checkNotWorse()
	}
	w.old = nil
	if len(decisions) > 0 {
		w.changes += len(decisions)
		w.last = w.periods
		if decisions[0].Reason == vlan.Relieve {
			w.old = before
		}
	}
	if got, want := fmt.Sprint(w.control.Plan().Pairs), fmt.Sprint(w.plan.Pairs); got != want {
		w.t.Errorf("%s, period %d: the controller takes %s to be in force, and %s is", w.name, w.periods, got, want)
	}
	return decisions
}

// checkLimits makes sure that few pairs change at once, and none too often.
func (w *watch) checkLimits(decisions []vlan.Decision) {
	w.t.Helper()
	if len(decisions) > mostChanges {
		w.t.Errorf("%s, period %d: %d changes, want %d at most", w.name, w.periods, len(decisions), mostChanges)
	}
	for _, d := range decisions {
		at, moved := w.moved[d.Change.Pair]
		if d.Reason == vlan.Relieve && moved && w.now.Sub(at) < rest {
			w.t.Errorf("%s, period %d: %v: it changed %v before, want %v", w.name, w.periods, d, w.now.Sub(at), rest)
		}
		w.moved[d.Change.Pair] = w.now
	}
}

// checkNotWorse makes sure that changes of the period before have been taken back if with what was wanted since they have made the
// worst link worse.
func (w *watch) checkNotWorse() {
	w.t.Helper()
	if w.old == nil {
		return
	}
	if is, would := w.worst(w.plan), w.worst(w.old); is > would*w.slack {
		w.t.Errorf("%s, period %d: the worst link is at %.2f for longer than a period, and was at %.2f before the changes", w.name, w.periods, is, would)
	}
}

// Constant traffic, of which the counters show only what links let pass: in the end nothing changes, and the worst link is nearly
// as good as if everything were known.
func TestControlConverges(t *testing.T) {
	const periods = 80
	sum, best := 0.0, 0.0
	for seed := range uint64(90) {
		top := network(t, []string{"vbft:4x4x4", "vbft:4x2x3", "vbft3:2x2x2x2x2"}[seed%3])
		w := newWatch(t, fmt.Sprint("seed ", seed), top, seed)
		want := someTraffic(rand.New(rand.NewPCG(seed, 5)), len(top.Hosts))
		if seed%2 == 1 {
			want, w.slack = light(want), 1.03
		}
		w.wants(want)
		first, natural := w.worst(w.plan), w.natural()
		for range periods {
			w.step(want)
		}
		_, ideal, err := vlan.Optimize(top, natural, w.plan, vlan.OptimizeOptions{Effort: 50_000})
		if err != nil {
			t.Fatal(err)
		}
		final := w.worst(w.plan)
		sum, best = sum+final, best+ideal.After.Worst
		if final > first*1.001 || final > ideal.After.Worst*1.4 {
			t.Errorf("seed %d: the worst link went from %.2f to %.2f, and could be at %.2f", seed, first, final, ideal.After.Worst)
		}
		if pairs := len(want.Pairs()); w.changes > 2*pairs || w.last > periods/2 {
			t.Errorf("seed %d: %d changes among %d pairs, the last in period %d", seed, w.changes, pairs, w.last)
		}
	}
	t.Logf("worst links are %.3f of the best on average", sum/best)
	if sum > 1.1*best {
		t.Errorf("worst links are %.3f of the best on average, want 1.1", sum/best)
	}
}

// Traffic that changes every 25 periods, and swings a little all the time.
func TestControlFollowsTraffic(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 6))
		top := network(t, "vbft:4x4x4")
		w := newWatch(t, fmt.Sprint("seed ", seed), top, seed)
		for range 6 {
			want := someTraffic(r, len(top.Hosts))
			for range 25 {
				w.step(swing(r, want, 0.05))
			}
			w.wants(want)
			_, ideal, err := vlan.Optimize(top, w.natural(), w.plan, vlan.OptimizeOptions{Effort: 50_000})
			if err != nil {
				t.Fatal(err)
			}
			if final := w.worst(w.plan); final > ideal.After.Worst*1.6 && final > 1.2 {
				t.Errorf("seed %d, period %d: the worst link is at %.2f, and could be at %.2f", seed, w.periods, final, ideal.After.Worst)
			}
		}
		if w.changes > 6*32 {
			t.Errorf("seed %d: %d changes for 6 traffics of some 24 pairs", seed, w.changes)
		}
	}
}

// swing changes each rate by chance, by up to that part.
func swing(r *rand.Rand, t vlan.Traffic, part float64) vlan.Traffic {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate *= vlan.Rate(1 + part*(2*r.Float64()-1))
	}
	return t
}

// Two traffics that alternate, faster than the controller looks, as fast, or a little slower: it finds what is good for both, or leaves
// things as they are. It does not run after them.
func TestControlDoesNotFlap(t *testing.T) {
	const periods = 100
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		top := network(t, "vbft:4x4x4")
		a, b := someTraffic(r, len(top.Hosts)), someTraffic(r, len(top.Hosts))
		pairs := len(a.Pairs()) + len(b.Pairs())
		for name, wanted := range map[string]func(k int) []vlan.Traffic{
			"ten times a period": func(int) []vlan.Traffic { return []vlan.Traffic{a, b, a, b, a, b, a, b, a, b} },
			"three in two periods": func(k int) []vlan.Traffic {
				return [][]vlan.Traffic{{a, b, b}, {a, a, b}}[k%2]
			},
			"each period":  func(k int) []vlan.Traffic { return []vlan.Traffic{[]vlan.Traffic{a, b}[k%2]} },
			"every second": func(k int) []vlan.Traffic { return []vlan.Traffic{[]vlan.Traffic{a, b}[k/2%2]} },
		} {
			w := newWatch(t, fmt.Sprintf("seed %d, %s", seed, name), top, seed)
			for k := range periods {
				w.step(wanted(k)...)
			}
			t.Logf("seed %d, %s: %d changes, last %d pairs %d", seed, name, w.changes, w.last, pairs)
		}
	}
}
