package matching

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	programs    = flag.Int("programs", 3000, "random programs that are run")
	programSeed = flag.Uint64("programs.seed", 0, "of the first, the others count on from it; 0 is a random one")
)

// Random programs of sends, receives, wildcards, probes and cancels on 2 to 4 processes: whatever
// crosses, the outcome is one that MPI's rules allow, all that can meet does, and memory is bounded.
func TestSimulation(t *testing.T) {
	first := *programSeed
	if first == 0 {
		first = rand.Uint64()
	}
	counts := map[string]int{"programs": *programs}
	for k := range uint64(*programs) {
		c := newCluster(first + k)
		if c.run(1 + c.random.Below(60)); c.wrong != "" {
			t.Fatalf("seed %d: %s\nrepeat: go test ./mpi/internal/matching -run '^TestSimulation$' -programs 1 -programs.seed %[1]d",
				first+k, c.wrong)
		}
		for what, n := range c.counts {
			counts[what] += n
		}
	}
	figures, err := json.Marshal(counts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("figures %s", figures)
}
