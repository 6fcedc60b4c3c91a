package engine

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/simfault"
	"github.com/rawlane/rawlane/sim"
)

var (
	maskPairs = flag.Int("masks.pairs", 200, "TestMaskPairs: pairs of random masks")
	maskSeed  = flag.Uint64("masks.seed", 0, "TestMaskPairs: of the first pair; 0 is a random one")
)

// Two groups of random members of 16 nodes use one number at the same time, while frames are lost,
// doubled and late: neither leaves early, both end, and neither takes a message of the other.
func TestMaskPairs(t *testing.T) {
	first := *maskSeed
	if first == 0 {
		first = rand.Uint64()
	}
	sum := simfault.Figures{}
	for seed := first; seed < first+uint64(runs(*maskPairs)); seed++ {
		name := algorithms[seed%uint64(len(algorithms))]
		if wrong := runMasks(name, seed); wrong != "" {
			t.Fatalf("%s, seed %d: %s\nrepeat: go test ./barrier/internal/engine -run TestMaskPairs -masks.pairs=1 -masks.seed=%[2]d",
				name, seed, wrong)
		}
		sum["pairs of masks"]++
	}
	t.Logf("figures %v", sum)
}

func runMasks(name string, seed uint64) string {
	const nodes, generations = 16, 3
	rng := rand.New(rand.NewPCG(seed, 5))
	net := paper
	net.Nodes, net.Seed = nodes, seed
	if rng.IntN(2) == 0 {
		net.Faults = sim.Faults{Loss: .1 * rng.Float64(), Duplicate: .3, Reorder: .3, Delay: .1}
	}
	g := newCluster(name, net)
	waiting := 0
	for group := 1; group <= 2; group++ {
		members := rng.Perm(nodes)[:1+rng.IntN(nodes)]
		g.join(name, group, members)
		for _, node := range members {
			waiting++
			g.After(time.Duration(rng.IntN(5_000_000)), func() { g.arrive(node, barrier{group, 7}) })
		}
	}
	g.left = func(node int, b barrier) {
		if _, generation := g.engine(node, b.group).State(b.number); generation < generations {
			g.arrive(node, b)
		} else {
			waiting--
		}
	}
	g.failed = func(node int, b barrier, f *Failure) { g.broken("node %d, %v: failed: %v", node, b, f) }
	until := g.Now().Add(time.Minute)
	for g.wrong == "" && waiting > 0 && g.Now().Before(until) && g.Step() {
	}
	if g.wrong == "" && waiting > 0 {
		g.broken("%d nodes have not come to the end", waiting)
	}
	return g.wrong
}
