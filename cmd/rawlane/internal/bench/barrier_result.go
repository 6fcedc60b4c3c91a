package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// absent takes the place of a key that results of a kind do not have.
type absent struct{}

// barrierResult is one line of the barrier benchmark. Times are of one barrier.
type barrierResult struct {
	result
	Mode      string    `json:"mode"`
	Loop      string    `json:"loop"`       // "work" between the barriers, or "tight"
	WorkUS    float64   `json:"work_us"`    // how much
	Chosen    string    `json:"chosen"`     // the algorithm, where algo is auto
	ChosenBy  string    `json:"chosen_by"`  // with --table, of auto: byTable or byModel
	FastestUS float64   `json:"fastest_us"` // the mean of the node that waits least
	SlowestUS float64   `json:"slowest_us"` // and of the one that waits longest
	NetworkUS float64   `json:"network_us"` // mean of each barrier's shortest wait: that of the last one to come
	SkewUS    float64   `json:"skew_us"`    // how much longer the first one to come waits
	WaitsUS   []float64 `json:"waits_us"`   // each node's mean
	Frames    int       `json:"frames"`     // of one barrier
	Nacks     uint64    `json:"nacks"`      // sent by node 0 for messages that seemed lost
	Lost      *absent   `json:"lost,omitempty"`
	ModelUS   float64   `json:"model_us"`

	// Each node's least and greatest, averaged over the nodes, as in the MCD paper, section 4.3.
	MeanMinUS float64 `json:"mean_min_us"`
	MeanMaxUS float64 `json:"mean_max_us"`

	MPIUS      float64 `json:"mpi_us,omitempty"` // Open MPI's mean, in the same loop
	ToMPI      float64 `json:"mpi_ratio,omitempty"`
	MPIVersion string  `json:"mpi_version,omitempty"`

	chosenBy string // likewise, behind a line
}

// What has chosen an algorithm where there is a table.
const (
	byTable = "table"
	byModel = "model"
)

// choseBy says what has chosen for ranks of a shape.
func (r *barrierResult) choseBy(t *schedule.Table, s schedule.Shape, ranks int) {
	row, has := t.Find(s, ranks)
	switch {
	case !has:
		r.ChosenBy = byModel
		r.chosenBy = fmt.Sprintf("  by the model: --table has no row of %d ranks, %s", ranks, s)
	case row.Where == "":
		r.ChosenBy, r.chosenBy = byTable, "  by --table, for ranks anywhere"
	default:
		r.ChosenBy, r.chosenBy = byTable, "  by --table"
	}
}

// result returns a result of one of the loops.
func (b *barrierBench) result(form result, loop string) *barrierResult {
	r := &barrierResult{result: form, Mode: b.cluster.Mode, Loop: loop}
	if loop == "work" {
		r.WorkUS = cli.Micros(b.work)
	}
	return r
}

// fill takes the samples of all nodes: the distribution over all barriers of all nodes, and the
// paper's averages.
func (r *barrierResult) fill(all [][]uint32) {
	h := newTimes()
	r.MinUS = math.Inf(1)
	for _, samples := range all {
		sum := 0.0
		for _, s := range samples {
			_ = h.RecordValue(int64(s)) // all below 4.3 s
			sum += float64(s)
		}
		r.WaitsUS = append(r.WaitsUS, sum/float64(len(samples))/1e3)
		least, greatest := float64(slices.Min(samples))/1e3, float64(slices.Max(samples))/1e3
		r.MinUS, r.MaxUS = min(r.MinUS, least), max(r.MaxUS, greatest)
		r.MeanMinUS += least / float64(len(all))
		r.MeanMaxUS += greatest / float64(len(all))
	}
	quantile := func(percent float64) float64 { // the histogram rounds up, past the greatest
		return min(float64(h.ValueAtPercentile(percent))/1e3, r.MaxUS)
	}
	r.P50US, r.P99US = quantile(50), quantile(99)
	for _, w := range r.WaitsUS {
		r.MeanUS += w / float64(len(all))
	}
	r.FastestUS, r.SlowestUS = slices.Min(r.WaitsUS), slices.Max(r.WaitsUS)
	for i := range all[0] {
		shortest, longest := all[0][i], all[0][i]
		for _, samples := range all {
			shortest, longest = min(shortest, samples[i]), max(longest, samples[i])
		}
		r.NetworkUS += float64(shortest) / 1e3 / float64(len(all[0]))
		r.SkewUS += float64(longest-shortest) / 1e3 / float64(len(all[0]))
	}
}

// compare adds the comparison with Open MPI's first line of the same loop.
func (r *barrierResult) compare(openMPI []*barrierResult) {
	for _, m := range openMPI {
		if m.Loop == r.Loop {
			r.MPIUS, r.ToMPI, r.MPIVersion = m.MeanUS, r.MeanUS/m.MeanUS, m.MPIVersion
			return
		}
	}
}

func (b *barrierBench) head(form *result) string {
	with, column := "", ""
	if len(b.openMPI) > 0 {
		first := b.openMPI[0]
		with, column = ", beside Open MPI "+first.MPIVersion+" by "+first.Link, "    / MPI"
	}
	return fmt.Sprintf("# rawlane bench barrier: %s, %d nodes%s, %s, %s, %s, %d barriers, %v%s\n"+
		"# Algorithm              loop     mean (us)      p50      p99      min      max  fastest  slowest  network"+
		"     skew    model frames nacks%s\n",
		form.Link, form.Nodes, form.protection(), b.cluster.Mode, form.pinned(), cli.Count(form.NICs, "NIC"),
		form.Iters, form.Host, with, column)
}

func (r *barrierResult) line() string {
	name := r.Algo
	if r.Algo == mpiAlgo {
		name = r.Chosen
	} else if r.Chosen != r.Algo {
		name += " = " + r.Chosen
	}
	ours := fmt.Sprintf("%8.2f %6d %5d", r.ModelUS, r.Frames, r.Nacks)
	if r.Algo == mpiAlgo {
		ours = fmt.Sprintf("%8s %6s %5s", "-", "-", "-")
	}
	if r.MPIVersion != "" {
		ours += fmt.Sprintf(" %8.2f", r.ToMPI)
	}
	return fmt.Sprintf("%-24s %-5s %12.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %s%s\n",
		name, r.Loop, r.MeanUS, r.P50US, r.P99US, r.MinUS, r.MaxUS,
		r.FastestUS, r.SlowestUS, r.NetworkUS, r.SkewUS, ours, r.chosenBy)
}
