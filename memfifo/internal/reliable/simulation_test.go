package reliable

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/simfault"
)

var (
	simRuns    = flag.Int("sim.runs", 60, "simulated runs")
	simSeed    = flag.Uint64("sim.seed", 0, "of the first run, the others count on from it; 0 is a random one")
	simRecords = flag.Uint64("sim.records", 0, "runs until so many records have been delivered, whatever sim.runs is")
)

// Up to 16 nodes that all send to each other, over a network that loses, duplicates, reorders and
// delays frames, and is cut; they are suspended, hold lanes, crash and restart. The receiver of a
// lane gets what was sent, from the first record on, between each pair of incarnations; and all of
// it, if no node has crashed or was cut off.
func TestSimulation(t *testing.T) {
	first := *simSeed
	if first == 0 {
		first = rand.Uint64()
	}
	began := time.Now()
	var records, events, restarts, byes uint64
	runs, most, sum := 0, *simRuns, simfault.Figures{}
	if testing.Short() {
		most = min(most, 20)
	}
	for seed := first; runs < most || records < *simRecords; seed++ {
		r := newRun(seed)
		r.run()
		if r.wrong != "" {
			t.Fatalf("seed %d, %v: %s\nrepeat: go test ./memfifo/internal/reliable -run '^TestSimulation$' -sim.runs=1 -sim.seed=%[1]d",
				seed, r, r.wrong)
		}
		runs++
		records += r.records
		events += r.events
		restarts += r.failures
		byes += r.byes
		r.addTo(sum)
	}
	sum["runs"], sum["events"], sum["records"] = uint64(runs), events, records
	t.Logf("figures %v", sum)
	t.Logf("%d runs, %d events, %d records delivered, %d failures, %d of them by a bye, %v", runs, events, records, restarts, byes, time.Since(began))
}

// The same seed gives the same run.
func TestSimulation_SameSeedSameRun(t *testing.T) {
	for seed := range uint64(10) {
		a, b := newRun(seed), newRun(seed)
		a.run()
		b.run()
		if a.events != b.events || a.records != b.records || a.net.Counters() != b.net.Counters() || a.Now() != b.Now() {
			t.Errorf("seed %d: %d events, then %d", seed, a.events, b.events)
		}
	}
}
