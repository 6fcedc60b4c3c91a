package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/barrier"
)

// barrierResult is one line of the barrier benchmark. Times are of one barrier.
type barrierResult struct {
	benchResult
	Mode      string    `json:"mode"`
	Loop      string    `json:"loop"`       // "work" between the barriers, or "tight"
	WorkUS    float64   `json:"work_us"`    // how much
	Chosen    string    `json:"chosen"`     // the algorithm, where algo is auto
	FastestUS float64   `json:"fastest_us"` // the mean of the node that waits least
	SlowestUS float64   `json:"slowest_us"` // and of the one that waits longest
	NetworkUS float64   `json:"network_us"` // mean of each barrier's shortest wait: that of the last one to come
	SkewUS    float64   `json:"skew_us"`    // how much longer the first one to come waits
	WaitsUS   []float64 `json:"waits_us"`   // each node's mean
	Frames    int       `json:"frames"`     // of one barrier
	Asked     uint64    `json:"asked"`      // messages that node 0 has asked for, as they seemed lost
	ModelUS   float64   `json:"model_us"`
	MPIUS     float64   `json:"mpi_us,omitempty"`
	ToMPI     float64   `json:"mpi_ratio,omitempty"`
}

func (r *barrierRun) result(g *barrier.Group, name, loop string) *barrierResult {
	b := r.bench
	p := (&bench{place: b.place}).parameters(r.ep)
	p.Algo, p.Iters = name, b.iters
	res := &barrierResult{
		benchResult: benchResult{Schema: benchSchema, Bench: "barrier", benchParameters: p, Host: r.host},
		Mode:        b.place.mode,
		Loop:        loop,
		Chosen:      g.Algorithm().String(),
		Frames:      g.Algorithm().Frames(g.Size()),
		ModelUS:     us(g.Algorithm().Cost(g.Size(), b.place.model()...)),
	}
	if loop == "work" {
		res.WorkUS = us(b.work)
	}
	return res
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// fill takes the samples of all nodes: the paper's averages, and what lies behind them.
func (r *barrierResult) fill(all [][]uint32) {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	for _, samples := range all {
		sum := 0.0
		for _, s := range samples {
			_ = h.RecordValue(int64(s)) // all below 4.3 s
			sum += float64(s)
		}
		r.WaitsUS = append(r.WaitsUS, sum/float64(len(samples))/1e3)
		r.MinUS += float64(slices.Min(samples)) / 1e3 / float64(len(all))
		r.MaxUS += float64(slices.Max(samples)) / 1e3 / float64(len(all))
	}
	r.P50US, r.P99US = float64(h.ValueAtPercentile(50))/1e3, float64(h.ValueAtPercentile(99))/1e3
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

// barrierTable writes results as they come.
type barrierTable struct {
	out    io.Writer
	json   bool
	headed bool
	lines  []*barrierResult
}

func (t *barrierTable) write(r *barrierResult) error {
	t.lines = append(t.lines, r)
	if t.json {
		return json.NewEncoder(t.out).Encode(r)
	}
	if !t.headed {
		t.headed = true
		_, err := fmt.Fprintf(t.out, "# rawlane bench barrier: %s, %d nodes, %s, %d NICs, %d barriers, %v\n"+
			"# Algorithm              loop  Barrier (us)      p50      p99      min      max  fastest  slowest  network     skew    model frames asked\n",
			r.Link, r.Nodes, r.Mode, r.NICs, r.Iters, r.Host)
		if err != nil {
			return err
		}
	}
	name := r.Algo
	if r.Chosen != r.Algo {
		name += " = " + r.Chosen
	}
	_, err := fmt.Fprintf(t.out, "%-24s %-5s %12.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %6d %5d\n",
		name, r.Loop, r.MeanUS, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.FastestUS, r.SlowestUS, r.NetworkUS, r.SkewUS, r.ModelUS, r.Frames, r.Asked)
	return err
}
