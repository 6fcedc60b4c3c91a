package engine

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/simfault"
	"github.com/rawlane/rawlane/sim"
)

var (
	detectorRuns = flag.Int("detector.runs", 50, "TestDetector: simulated runs")
	detectorSeed = flag.Uint64("detector.seed", 0, "TestDetector: of the first run; 0 is a random one")
)

// One member of a group computes for a while, and the others wait for it: all live, and 30 % of the
// frames are lost; or it stands still for less than the peer timeout now and then; or all of them
// get a tenth of their processors. Then it arrives, or crashes. False accusations are counted, and
// how long the others take to notice the crash.
func TestDetector(t *testing.T) {
	first := *detectorSeed
	if first == 0 {
		first = rand.Uint64()
	}
	sum := simfault.Figures{}
	for seed := first; seed < first+uint64(runs(*detectorRuns)); seed++ {
		d := newDetection(seed)
		d.run()
		if d.wrong != "" {
			t.Fatalf("seed %d, %s: %s\nrepeat: go test ./barrier/internal/engine -run TestDetector -detector.runs=1 -detector.seed=%[1]d",
				seed, d.kind, d.wrong)
		}
		d.addTo(sum)
	}
	late, all := sum["detections after 5 timeouts"], sum["detections"]
	if accusations := sum["false accusations"]; accusations*1_000_000 > sum["node-seconds"]+1_000_000 || late*100 > all || all == 0 {
		t.Errorf("first seed %d: %d false accusations in %d node-seconds (want one in 10^6 at most), %d of %d detections late",
			first, accusations, sum["node-seconds"], late, all)
	}
	t.Logf("figures %v", sum)
}

// A member that stands still for longer than its peers wait is accused: the test counts that.
func TestDetector_SeesAccusations(t *testing.T) {
	for seed := range uint64(300) {
		d := newDetection(seed + 1)
		d.kind = "clean"
		d.net.Pause(d.late, 10*limit)
		if d.run(); d.accused > 0 {
			return
		}
	}
	t.Error("300 runs in which one stands still for ten timeouts, and nobody was accused")
}

// detection is a run.
type detection struct {
	*cluster
	kind    string
	rng     *rand.Rand
	late    int // who computes
	crashAt monotime.Time
	waiting map[int]bool
	seconds float64
	accused uint64
	took    []time.Duration
}

var detectionKinds = []string{"lossy 30 %", "pauses", "slow", "clean"}

func newDetection(seed uint64) *detection {
	d := &detection{rng: rand.New(rand.NewPCG(seed, 9)), waiting: map[int]bool{}}
	d.kind = detectionKinds[d.rng.IntN(len(detectionKinds))]
	net := paper
	net.Nodes, net.Seed = 2+d.rng.IntN(15), seed
	if d.kind == "lossy 30 %" {
		net.Faults = sim.Faults{Loss: .3}
	}
	d.cluster = newCluster(algorithms[d.rng.IntN(len(algorithms))], net)
	d.parted = true // accusations are counted here
	d.late = d.rng.IntN(net.Nodes)
	return d
}

func (d *detection) run() {
	began := d.Now()
	computes := time.Duration(d.rng.Int64N(int64(20 * limit)))
	d.left = func(node int, _ barrier) { delete(d.waiting, node) }
	d.failed = d.notice
	for node := range d.sites {
		d.waiting[node] = true
		if node != d.late {
			d.arrive(node, barrier{})
		}
		d.disturb(node)
	}
	crashes := d.rng.IntN(2) == 0
	d.After(computes, func() {
		if !crashes {
			d.arrive(d.late, barrier{})
			return
		}
		delete(d.waiting, d.late)
		d.crashAt = d.Now()
		d.crash(d.late)
	})
	until := began.Add(computes + time.Minute)
	for d.wrong == "" && len(d.waiting) > 0 && d.Now().Before(until) && d.Step() {
	}
	if d.wrong == "" && len(d.waiting) > 0 {
		d.broken("nodes %v still wait", d.waiting)
	}
	d.seconds = float64(len(d.sites)) * d.Now().Sub(began).Seconds()
}

// disturb has a node stand still for less than half the timeout now and then, or most of the time.
func (d *detection) disturb(node int) {
	switch d.kind {
	case "pauses":
		d.net.Pause(node, limit/2-1)
		d.After(limit+time.Duration(d.rng.Int64N(int64(limit))), func() { d.disturb(node) })
	case "slow":
		d.net.Pause(node, 90*time.Millisecond)
		d.After(100*time.Millisecond, func() { d.disturb(node) })
	}
}

// notice is called where a node's barrier has failed.
func (d *detection) notice(node int, _ barrier, f *Failure) {
	delete(d.waiting, node)
	for _, rank := range f.Ranks {
		if rank != d.late || d.crashAt.IsZero() {
			d.accused++
		} else {
			d.took = append(d.took, d.Now().Sub(d.crashAt))
		}
	}
}

func (d *detection) addTo(sum simfault.Figures) {
	sum["node-seconds"] += uint64(d.seconds)
	sum["node-seconds, "+d.kind] += uint64(d.seconds)
	sum["false accusations"] += d.accused
	sum["false accusations, "+d.kind] += d.accused
	for _, took := range d.took {
		sum["detections"]++
		switch {
		case took <= limit:
			sum["detections within 1 timeout"]++
		case took <= 2*limit:
			sum["detections within 2 timeouts"]++
		case took <= 5*limit:
			sum["detections within 5 timeouts"]++
		default:
			sum["detections after 5 timeouts"]++
		}
		sum["detection in ms, max"] = max(sum["detection in ms, max"], uint64(took.Milliseconds()))
	}
}
