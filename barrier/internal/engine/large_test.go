package engine

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/simfault"
)

var (
	largeNodes = flag.Int("large.nodes", 128, "TestSimulation_Large: how many nodes")
	largeRuns  = flag.Int("large.runs", 1, "TestSimulation_Large: simulated runs of each algorithm")
	largeSeed  = flag.Uint64("large.seed", 1, "TestSimulation_Large: of the first run; 0 is a random one")
)

// TestSimulation with clusters that are larger than any in a room, -large.nodes=1024: what grows
// with the square of the nodes shows, and so do trees of five levels and more.
func TestSimulation_Large(t *testing.T) {
	first := *largeSeed
	if first == 0 {
		first = rand.Uint64()
	}
	nodes := *largeNodes
	if testing.Short() {
		nodes = min(nodes, 48)
	}
	sum := simfault.Figures{}
	for i := range uint64(*largeRuns) {
		for _, name := range []string{"shuffle", "tree:3", "hier:4:star:shuffle", "hier:32:tree:2:tree:3"} {
			r := newLargeRun(name, first+i, nodes)
			events := r.run()
			if r.wrong != "" {
				t.Fatalf("seed %d, %v: %s\nrepeat: go test ./barrier/internal/engine -run '^TestSimulation_Large$' "+
					"-large.nodes=%d -large.runs=1 -large.seed=%[1]d", first+i, r, r.wrong, nodes)
			}
			r.addTo(sum)
			sum["runs"]++
			sum["events"] += uint64(events)
			sum["large clusters"]++
			sum["most nodes max"] = uint64(nodes)
		}
	}
	t.Logf("figures %v", sum)
}

// In a large group the first nack is later: the member that all others await answers each of them.
func TestNack_LargeGroup(t *testing.T) {
	for size, first := range map[int]time.Duration{150: firstNack, 151: 151 * nackShare, 1000: 20 * time.Millisecond} {
		a := newAlone(t, "star", 1, size)
		a.arrives(0)
		a.want(a.passes(first-1), "")
		a.want(a.passes(1), "0 nack 1 gen=1")
		a.want(a.passes(2*first-1), "")
		a.want(a.passes(1), "0 nack 1 gen=1")
	}
}
