package optimize_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

var rewrite = flag.Bool("rewrite", false, "write what is found into testdata")

// The same problem and the same effort give the same plan, for ever, at the same cost of search:
// testdata/plans.txt has one problem on each line. A line that changes is a search that has become
// better or worse: rewrite the file with -rewrite, and read the difference.
func TestPlansAreTheSameForEver(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("floating point differs in the last digit where multiplying and adding are one instruction")
	}
	var got strings.Builder
	for seed := range uint64(240) {
		rng := rand.New(rand.NewPCG(seed, 77))
		network, name := goldenNetwork(t, rng)
		n := len(network.Hosts)
		demand := vlantest.RandomTraffic(n, 1+rng.IntN(3*n), seed)
		if seed%5 == 4 {
			demand = matching(n, seed)
		}
		if seed%8 == 7 { // some pairs must change
			cut := &network.VLANs[0]
			cut.Links = cut.Links[:len(cut.Links)/2]
		}
		current := vlantest.RandomPlan(network, seed)
		if seed%7 == 6 {
			current = nil
		}
		opt := optimize.Options{Effort: []int{300, 3000, 100000}[rng.IntN(3)]}
		switch seed % 6 {
		case 1:
			opt.MaxChanges = 1 + rng.IntN(5)
		case 2:
			opt.PerChange = rng.Float64()
		case 3:
			opt.Batch = 1 + rng.IntN(12)
		case 4:
			opt.MinGain, opt.GainPerChange = 0.1, 0.01
		case 5:
			opt.Keep = func(p plan.Pair) bool { return (p.A+p.B)%3 == 0 }
		}
		fmt.Fprintf(&got, "%d %s flows=%d effort=%d: ", seed, name, len(demand), opt.Effort)
		_, r, err := optimize.Plan(network, demand, current, opt)
		got.WriteString(line(&r, err))
		_, r, err = optimize.PlanFast(network, demand, current, opt)
		fmt.Fprintf(&got, "; fast %s", line(&r, err))
		if len(demand) <= 12 {
			_, r, err = optimize.PlanExact(network, demand, current, opt)
			fmt.Fprintf(&got, "; exact %s", line(&r, err))
		}
		views, cuts, err := optimize.Looks(network, demand)
		fmt.Fprintf(&got, "; %d views %d cuts %v\n", views, cuts, err)
	}
	file := filepath.Join("testdata", "plans.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(b), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("found %s\nwant  %s\n(if the search is meant to find that: -rewrite)", line, want[min(i, len(want)-1)])
		}
	}
}

func goldenNetwork(t *testing.T, rng *rand.Rand) (network *topology.Topology, name string) {
	t.Helper()
	if rng.IntN(3) == 0 {
		network = vlantest.RandomNetwork(rng, 3+rng.IntN(6), rng.IntN(5), 1+rng.IntN(4))
		return network, fmt.Sprintf("random of %d switches", len(network.Switches))
	}
	names := []string{"vbft:2x2x3", "vbft:4x4x4", "vbft:4x3x6", "vbft:3x2x8@1G/10G", "tree:2x2x3", "flat:5"}
	name = names[rng.IntN(len(names))]
	return vlantest.Network(t, name), name
}

// line is a report in short.
func line(r *optimize.Report, err error) string {
	if err != nil {
		return err.Error()
	}
	sum := fnv.New32a()
	for _, c := range r.Changes {
		fmt.Fprintln(sum, c)
	}
	for _, o := range []optimize.Outcome{r.Before, r.After} {
		for _, links := range [][]optimize.LinkUse{o.Links, o.WorstLinks(), o.Collisions()} {
			for _, l := range links {
				fmt.Fprintf(sum, "%v %.6g %v;", l.Hop, l.Utilisation, l.Pairs)
			}
			fmt.Fprintln(sum)
		}
	}
	return fmt.Sprintf("%.6g -> %.6g of %.6g, squares %.6g -> %.6g, %d changes, %v, %d tried, %08x", r.Before.Worst, r.After.Worst,
		r.LowerBound, r.Before.Squares, r.After.Squares, len(r.Changes), r.Stopped, r.Tried, sum.Sum32())
}

// The default effort is a few tenths of a second of search.
func TestDefaultEffort(t *testing.T) {
	if optimize.DefaultEffort != 8388608 {
		t.Errorf("%d, want 8,388,608", optimize.DefaultEffort)
	}
}
