package traffic_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// The default table: cyclic VIDs 1 to 4, and of each pair the lower node's.
func TestVFREC_2_4_CG_CollidesWithTheDefaultTable(t *testing.T) {
	net := vlantest.Must(topology.FatTree(4, 4, 4))
	cg := vlantest.Must(traffic.Pattern("cg16", 16))
	if got := fmt.Sprint(cg.Pairs()); got != "[1-4 2-8 3-12 6-9 7-13 11-14]" {
		t.Fatal(got)
	}
	byLower := func(a, b int) transport.VID { return transport.VID(min(a, b)%4 + 1) }
	load := vlantest.Must(cg.Load(net, byLower))

	meet := func(pairs ...plan.Pair) (most topology.Rate) {
		var some traffic.Matrix
		for _, f := range cg {
			for _, p := range pairs {
				if plan.PairOf(f.From, f.To) == p {
					some = append(some, f)
				}
			}
		}
		alone := vlantest.Must(some.Load(net, byLower))
		for _, r := range alone.Links {
			most = max(most, r)
		}
		return most
	}
	for _, c := range []struct {
		pairs []plan.Pair
		want  topology.Rate
	}{
		{[]plan.Pair{{A: 2, B: 8}, {A: 6, B: 9}}, 2 * topology.Gbps},
		{[]plan.Pair{{A: 3, B: 12}, {A: 7, B: 13}}, 2 * topology.Gbps},
		{[]plan.Pair{{A: 3, B: 12}, {A: 7, B: 13}, {A: 11, B: 14}}, 3 * topology.Gbps},
		{[]plan.Pair{{A: 1, B: 4}, {A: 2, B: 8}, {A: 3, B: 12}}, topology.Gbps},
	} {
		if got := meet(c.pairs...); got != c.want {
			t.Errorf("%v: the fullest cable carries %v, want %v", c.pairs, got, c.want)
		}
	}
	if hop, u := load.MaxLink(); u != 3 || net.HopName(hop) != "leaf3>top3" {
		t.Errorf("the fullest cable is %s with %v, want leaf3>top3 with 3", net.HopName(hop), u)
	}
}

// Before node 0 changes its VID, two cables of 1 Gbit/s carry all (VFREC §5.2).
func TestVFREC_5_2_Shift8_FillsTwoPaths(t *testing.T) {
	net := vlantest.Must(topology.FatTree(4, 4, 4))
	load := vlantest.Must(vlantest.Must(traffic.Pattern("shift:8", 16)).Load(net, func(_, _ int) transport.VID { return 1 }))
	used := map[string]topology.Rate{}
	for i, r := range load.Links {
		if r > 0 {
			used[net.HopName(topology.HopAt(i))] = r
		}
	}
	want := "map[leaf0>top0:4G leaf1>top0:4G top0>leaf2:4G top0>leaf3:4G]"
	if got := fmt.Sprint(used); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// NPB's own formula for CG's partner, of setup_proc_info: columns are rows, or twice as many.
func TestPatternCGAgreesWithNPB(t *testing.T) {
	for _, c := range []struct{ n, rows, columns int }{{1, 1, 1}, {2, 1, 2}, {4, 2, 2}, {8, 2, 4}, {16, 4, 4}, {32, 4, 8}, {64, 8, 8}, {128, 8, 16}, {1024, 32, 32}} {
		to := map[int]int{}
		for _, f := range vlantest.Must(traffic.Pattern("cg", c.n)) {
			to[f.From] = f.To
		}
		for me := range c.n {
			want := me%c.rows*c.rows + me/c.rows
			if c.columns == 2*c.rows {
				want = 2*(me/2%c.rows*c.rows+me/2/c.rows) + me%2
			}
			if got, ok := to[me]; ok && got != want || !ok && want != me {
				t.Errorf("%d nodes: %d sends to %d, want %d", c.n, me, got, want)
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		flows int
		rate  topology.Rate // of each flow
	}{
		{"cg16", 16, 12, topology.Gbps},
		{"shift:1", 5, 4, topology.Gbps},
		{"shift:4", 5, 1, topology.Gbps},
		{"all", 5, 20, topology.Gbps / 4},
		{"all", 1, 0, 0},
		{"random:0", 7, 7, topology.Gbps},
		{"random:18446744073709551615", 100, 100, topology.Gbps},
		{"random:3", 1, 0, 0},
		{"bisection", 8, 8, topology.Gbps},
	} {
		got := vlantest.Must(traffic.Pattern(c.name, c.n))
		if err := got.Validate(c.n); err != nil {
			t.Errorf("%s of %d: %v", c.name, c.n, err)
		}
		if len(got) != c.flows {
			t.Errorf("%s of %d: %d flows, want %d", c.name, c.n, len(got), c.flows)
		}
		receives := map[int]topology.Rate{}
		for _, f := range got {
			if f.Rate != c.rate {
				t.Errorf("%s of %d: flow %v, want rate %v", c.name, c.n, f, c.rate)
			}
			if receives[f.To] += f.Rate; receives[f.To] > topology.Gbps {
				t.Errorf("%s of %d: node %d receives %v", c.name, c.n, f.To, receives[f.To])
			}
		}
	}
	if a, b := fmt.Sprint(vlantest.Must(traffic.Pattern("random:1", 16))), fmt.Sprint(vlantest.Must(traffic.Pattern("random:2", 16))); a == b {
		t.Errorf("two seeds have one pattern: %s", a)
	}
}

func TestPatternSaysWhatIsWrong(t *testing.T) {
	const list = " (there are: " + traffic.Patterns + ")"
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"cg16", 15, `bad traffic: pattern "cg16" for 15 nodes: want 16 nodes (or the pattern cg)` + list},
		{"cg", 15, `bad traffic: pattern "cg" for 15 nodes: want a square of nodes, or twice a square` + list},
		{"shift:0", 4, `bad traffic: pattern "shift:0" for 4 nodes: want to shift by 1 to 3` + list},
		{"shift:4", 4, `bad traffic: pattern "shift:4" for 4 nodes: want to shift by 1 to 3` + list},
		{"shift", 4, `bad traffic: pattern "shift" for 4 nodes: want a number behind the colon, as shift:8` + list},
		{"shift:x", 4, `bad traffic: pattern "shift:x" for 4 nodes: want a number behind the colon, as shift:8` + list},
		{"all:3", 4, `bad traffic: pattern "all:3" for 4 nodes: there is no such pattern` + list},
		{"all", 2049, `bad traffic: pattern "all" for 2049 nodes: too many flows (want 2048 nodes at most)` + list},
		{"all", 0, `bad traffic: pattern "all" for 0 nodes: want 1 to 1048576 nodes` + list},
		{"bisection", 3, `bad traffic: pattern "bisection" for 3 nodes: want an even number of nodes` + list},
	} {
		_, err := traffic.Pattern(c.name, c.n)
		if !errors.Is(err, traffic.ErrInvalid) || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

func ExamplePattern() {
	cg, err := traffic.Pattern("cg", 8)
	fmt.Println(cg, err)
	// Output: [{2 4 1G} {3 5 1G} {4 2 1G} {5 3 1G}] <nil>
}
