package vbft

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func paperCases(t *testing.T) []Case {
	t.Helper()
	topology, err := topology.FatTree(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Cases(topology)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func paperCG(c Case, iterations int) *CG {
	return &CG{
		Network: ether.Config{Topology: c.Topology, Seed: 1}, Plan: c.Plan, Reroute: c.Reroute,
		Order: ClassBOrder, Iterations: iterations, Compute: DefaultCompute,
	}
}

func run(t *testing.T, c *CG) *CGResult {
	t.Helper()
	r, err := c.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Network; n.Sent+n.Copies != n.Delivered+n.NotAddressed+n.Filtered+n.Dropped+n.InFlight {
		t.Errorf("frames are missing, or too many: %+v", n)
	}
	return r
}

var simIterations = flag.Int("sim.iterations", 4, "iterations of CG that are timed")

// Figure 11, as docs/simulation.md has it: with all queues the optimised plan, set before or while
// the program runs, is as good as a flat network, and no frame is lost. The order of the others is
// the paper's from 96 KiB on; there alone the optimised plan is about twice as fast as the plan to
// begin with.
func TestVFREC_5_3_ByQueue(t *testing.T) {
	iterations := *simIterations
	if testing.Short() {
		iterations = 1
	}
	type bounds [2]float64
	for _, c := range []struct {
		queue         int // KiB
		control       ether.Congestion
		tree, initial bounds // relative to flat
	}{
		{64, ether.NewReno, bounds{.2, .33}, bounds{.15, .29}},
		{96, ether.NewReno, bounds{.35, .6}, bounds{.45, .65}},
		{96, ether.Cubic, bounds{.5, .8}, bounds{.6, .85}},
		{128, ether.NewReno, bounds{.2, .4}, bounds{.77, .87}},
		{192, ether.NewReno, bounds{.8, .84}, bounds{.83, .87}},
	} {
		if testing.Short() && c.queue != 192 {
			continue
		}
		relative := map[string]float64{}
		var flat time.Duration
		for _, network := range paperCases(t) {
			cg := paperCG(network, iterations)
			cg.Network.Queue, cg.Network.Congestion = c.queue<<10, c.control
			r := run(t, cg)
			if network.Name == "flat" {
				flat = r.Elapsed
			}
			relative[network.Name] = flat.Seconds() / r.Elapsed.Seconds()
			t.Logf("%3d KiB, %v: %-10s %8v %.3f  %d timeouts, %d frames dropped", c.queue, c.control, network.Name,
				r.Elapsed, relative[network.Name], r.Flows.Timeouts, r.Network.Dropped)
			if lossless := network.Name != "tree" && network.Name != "default"; lossless && r.Network.Dropped > 0 {
				t.Errorf("%d KiB, %v, %s: %d frames are dropped", c.queue, c.control, network.Name, r.Network.Dropped)
			}
		}
		for name, b := range map[string]bounds{
			"tree": c.tree, "default": c.initial, "optimised": {.99, 1.005}, "rerouted": {.99, 1.005},
		} {
			if got := relative[name]; got < b[0] || got > b[1] {
				t.Errorf("%d KiB, %v, %s: %.3f of flat, want %v to %v", c.queue, c.control, name, got, b[0], b[1])
			}
		}
		if asPaper := relative["default"] > relative["tree"]; asPaper != (c.queue >= 96) {
			t.Errorf("%d KiB, %v: default %.3f, tree %.3f", c.queue, c.control, relative["default"], relative["tree"])
		}
	}
}

// Where no queue is ever full, time is what the cables' rates say: three pairs share a cable in
// the tree and in the default plan, and two exchanges' time more passes for each multiplication.
func TestCG_WithoutLossTakesTheTimeOfItsFullestCable(t *testing.T) {
	const iterations = 1
	seconds := ClassBOrder / 4 * 8 / (gigabit * 1e6)
	exchange := time.Duration(seconds * float64(time.Second))
	var flat time.Duration
	for _, c := range paperCases(t) {
		if testing.Short() && c.Name != "flat" && c.Name != "default" {
			continue
		}
		cg := paperCG(c, iterations)
		cg.Network.Queue = ether.MaxQueue
		r := run(t, cg)
		if r.Network.Dropped > 0 || r.Flows.Timeouts > 0 {
			t.Errorf("%s: %+v, %+v", c.Name, r.Network, r.Flows)
		}
		perMultiplication := r.Elapsed / (iterations * multiplications)
		switch c.Name {
		case "flat": // 3 long exchanges, and acks between their frames; 4 short ones of 30 us
			flat = perMultiplication
			least := DefaultCompute + 3*exchange + 4*30*time.Microsecond
			if flat < least || flat > least+least/20 {
				t.Errorf("flat: %v for a multiplication, want %v or hardly more", flat, least)
			}
		case "tree", "default":
			if more := float64(perMultiplication-flat) / float64(exchange); more < 1.8 || more > 2.4 {
				t.Errorf("%s: %.2f exchanges' time more than flat, want two", c.Name, more)
			}
		default:
			if more := float64(perMultiplication-flat) / float64(exchange); math.Abs(more) > .1 {
				t.Errorf("%s: %.2f exchanges' time more than flat, want none", c.Name, more)
			}
		}
	}
}

// What CG's processes send: figure 4's pairs, as long as a quarter of the vector, and as often as
// NPB says.
func TestConjGrad_IsNPBs(t *testing.T) {
	sent, pairs := map[int64]int{}, map[plan.Pair]bool{}
	for rank := range 16 {
		for _, s := range conjGrad(rank, 16, ClassBOrder) {
			if s.kind != exchanges {
				continue
			}
			sent[s.bytes]++
			if s.bytes == 150_000 && rank/4 != s.partner/4 {
				pairs[plan.PairOf(rank, s.partner)] = true
			}
		}
	}
	// 26 multiplications: two exchanges of all in a row, one of those off the diagonal
	if want := map[int64]int{150_000: 26 * (2*16 + 12), 8: (1 + 2*25 + 1) * 2 * 16, 16: 2 * 16}; !reflect.DeepEqual(sent, want) {
		t.Errorf("messages by bytes: %v, want %v", sent, want)
	}
	demand, err := traffic.Pattern("cg16", 16)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range demand.Pairs() {
		if !pairs[p] {
			t.Errorf("%v does not exchange", p)
		}
		delete(pairs, p)
	}
	if len(pairs) > 0 {
		t.Errorf("%v exchange between leaves, too", pairs)
	}
}

// The first multiplication of the process in row 1 and column 2, and the sums around it.
func TestConjGrad_Process6(t *testing.T) {
	const vector, number = 150_000, 8
	want := []step{
		{exchanges, 4, number}, {exchanges, 7, number},
		{kind: computes},
		{exchanges, 7, vector}, {exchanges, 4, vector}, // 1 away, 2 away
		{exchanges, 9, vector}, // row 2, column 1
		{exchanges, 4, number}, {exchanges, 7, number},
		{exchanges, 4, number}, {exchanges, 7, number},
		{kind: computes},
	}
	if got := conjGrad(6, 16, ClassBOrder)[:len(want)]; !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Each exchange that one process makes its partner makes, too, in the same order: nobody waits
// for ever.
func TestConjGrad_ExchangesMatch(t *testing.T) {
	for _, nodes := range []int{4, 16, 64, 256} {
		between := map[[2]int]string{}
		for rank := range nodes {
			for _, s := range conjGrad(rank, nodes, ClassBOrder) {
				if s.kind == exchanges {
					between[[2]int{rank, s.partner}] += fmt.Sprint(s.bytes, " ")
				}
			}
		}
		for ends, messages := range between {
			if between[[2]int{ends[1], ends[0]}] != messages || ends[0] == ends[1] {
				t.Errorf("%d nodes: %v exchange differently", nodes, ends)
			}
		}
	}
}

// The first 64 KiB of a long message go at once, with its request, and nothing more until the
// receiver has called for it: not while it is busy with a third process's. Messages to that length
// go whole. Source: Open MPI 1.2, mca_pml_ob1_send_request_start_btl.
func TestProcess_SendsTheFirstBytesWithTheRequest(t *testing.T) {
	j, err := newJob(paperCG(paperCases(t)[0], 1))
	if err != nil {
		t.Fatal(err)
	}
	idle := func() {
		for j.queue.Step() {
		}
	}
	arrived := func(what string, to int, want int64) {
		t.Helper()
		idle()
		if got := j.processes[0].flow(to).Received(); got != want {
			t.Errorf("%s: %d bytes at process %d, want %d", what, got, to, want)
		}
	}
	j.cg.Iterations = 0
	for _, p := range j.processes {
		p.steps = nil // but what follows here
	}
	const long = 150_000
	j.processes[0].exchange(1, long)
	arrived("the receiver computes", 1, 64<<10)
	j.processes[1].exchange(2, long)
	arrived("it waits for a third one", 1, 64<<10)
	j.processes[2].exchange(1, long)
	arrived("it is done with that", 1, 64<<10)
	j.processes[1].exchange(0, long)
	arrived("it has called for the message", 1, headerBytes+long+headerBytes) // and one ack

	j.processes[0].exchange(3, eagerBytes)
	arrived("a message that goes whole", 3, eagerBytes)
	j.processes[3].exchange(0, eagerBytes)
	idle()
	for _, p := range j.processes[:4] {
		if p.partner != nobody || p.owed != oweNothing {
			t.Errorf("process %d waits for %d", p.rank, p.partner)
		}
	}
}

func TestCG_SameSeedSameRun(t *testing.T) {
	c := paperCG(paperCases(t)[2], 1)
	c.Order /= 10
	if a, b := run(t, c), run(t, c); *a != *b {
		t.Errorf("%+v and again %+v", a, b)
	}
	other := *c
	other.Network.Seed++
	if a, b := run(t, c), run(t, &other); *a == *b {
		t.Errorf("two seeds: %+v", a)
	}
}

func TestCG_OtherSizes(t *testing.T) {
	for _, spec := range []string{"vbft:2x2x2", "vbft:8x4x8"} {
		topology, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := Cases(topology)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases[2:] {
			cg := paperCG(c, 1)
			cg.Order, cg.Compute = 1000, 0
			if r := run(t, cg); r.Elapsed <= 0 || r.Flows.Received == 0 {
				t.Errorf("%s, %s: %+v", spec, c.Name, r)
			}
		}
	}
}

func TestCG_EndsWhenTold(t *testing.T) {
	stop := errors.New("stop")
	if _, err := paperCG(paperCases(t)[0], ClassBIterations).Run(func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want stop", err)
	}
}

func TestCG_SaysWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(*CG){
		"want a topology and a plan": func(c *CG) { c.Plan = nil },
		"8 hosts (want one of [4 16 64 256])": func(c *CG) {
			c.Network.Topology, _ = topology.Flat(8)
		},
		"a plan of 16 nodes for 4 hosts": func(c *CG) {
			c.Network.Topology, _ = topology.Flat(4)
		},
		"0 iterations of order 75000": func(c *CG) { c.Iterations = 0 },
		"the plan uses VID 2, which the topology lacks": func(c *CG) {
			c.Network.Topology, _ = topology.Flat(16)
		},
		"pair 1-4 by VID 9: there is no such pair or VID": func(c *CG) {
			c.Reroute = map[plan.Pair]transport.VID{{A: 1, B: 4}: 9}
		},
		"queue of 1 bytes": func(c *CG) { c.Network.Queue = 1 },
	} {
		c := paperCG(paperCases(t)[2], 1)
		spoil(c)
		if _, err := c.Run(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A network for which ComputeVLANs has yet to find VLANs has no cases.
func TestCases_WithoutVLANs(t *testing.T) {
	network, err := topology.FatTree(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	network.VLANs = nil
	if cases, err := Cases(network); !errors.Is(err, topology.ErrInvalid) {
		t.Errorf("%d cases, %v; want %v", len(cases), err, topology.ErrInvalid)
	}
}

// A run that takes longer than a network's time may is refused, also where few events lead there:
// lines would count on with numbers that have wrapped.
func TestCG_LongerThanTimeMayRun(t *testing.T) {
	flat, err := topology.Flat(4)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Cases(flat)
	if err != nil {
		t.Fatal(err)
	}
	c := paperCG(cases[0], 1)
	c.Order, c.Compute = 4, 10*time.Minute
	events := 0
	_, err = c.Run(func() error {
		if events++; events > 100 {
			return errors.New("it goes on for ever")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), ether.MaxTime.String()) {
		t.Errorf("%v, want that it takes longer than %v", err, ether.MaxTime)
	}
}
