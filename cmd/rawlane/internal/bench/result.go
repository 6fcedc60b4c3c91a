package bench

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// benchSchema is the version of benchResult as JSON. docs/bench-json.md describes it.
const benchSchema = 1

// benchResult is one line of a benchmark.
type benchResult struct {
	Schema int    `json:"schema"`
	Bench  string `json:"bench"`
	benchParameters
	SizeBytes int         `json:"size_bytes"`
	MinUS     float64     `json:"min_us"`
	P50US     float64     `json:"p50_us"`
	P99US     float64     `json:"p99_us"`
	MaxUS     float64     `json:"max_us"`
	MeanUS    float64     `json:"mean_us"`
	MBPerS    float64     `json:"mb_per_s"`
	MsgsPerS  float64     `json:"msgs_per_s"`
	TxPerS    float64     `json:"tx_msgs_per_s"`
	Allocs    float64     `json:"allocs_per_op"`
	Lost      uint64      `json:"lost"`
	Host      launch.Host `json:"host"`
	*LogPTimes
}

// benchParameters are what a benchmark was told, defaults filled in.
type benchParameters struct {
	Link   string  `json:"link"`
	Nodes  int     `json:"nodes"`
	NICs   int     `json:"nics"`
	Algo   string  `json:"algo"`
	Iters  int     `json:"iters"`
	Window int     `json:"window"` // messages on their way before an answer is awaited; 0: bounded by the link
	Batch  int     `json:"batch"`  // messages posted in one call
	Tagged bool    `json:"tagged"`
	VID    int     `json:"vid"`
	PCP    int     `json:"pcp"`
	Routed bool    `json:"routed,omitempty"` // by a manager's routes, which tag each message as they say
	Pin    int     `json:"pin"`              // the core of node 0's process, or notPinned
	SpinUS float64 `json:"spin_us"`
}

// record takes the distribution from a histogram of nanoseconds.
func (r *benchResult) record(h *hdrhistogram.Histogram) {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	r.MinUS, r.MaxUS, r.MeanUS = us(h.Min()), us(h.Max()), h.Mean()/1e3
	r.P50US, r.P99US = us(h.ValueAtPercentile(50)), us(h.ValueAtPercentile(99))
}

// benchTable writes results as they come: a table in the manner of the OSU benchmarks, or JSON
// lines.
type benchTable struct {
	out  io.Writer
	json bool
	head string     // the link whose head was written last
	logp *LogPTimes // of the first size
}

func (t *benchTable) write(r *benchResult) error {
	if t.json {
		return json.NewEncoder(t.out).Encode(r)
	}
	if t.head != r.Link {
		t.head = r.Link
		if err := t.writeHead(r); err != nil {
			return err
		}
	}
	var err error
	switch r.Bench {
	case "latency":
		_, err = fmt.Fprintf(t.out, "%-8d %14.2f %10.2f %10.2f %10.2f %8d\n", r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.Lost)
	case "bandwidth":
		_, err = fmt.Fprintf(t.out, "%-8d %14.2f %14.0f %10.2f %10.2f %8d\n", r.SizeBytes, r.MBPerS, r.MsgsPerS, r.P50US, r.P99US, r.Lost)
	case "logp":
		if t.logp == nil {
			t.logp = r.LogPTimes
		}
		_, err = fmt.Fprintf(t.out, "%-8d %10.3f %10.3f %10.3f %10.3f %10.3f\n", r.SizeBytes, r.OsUS, r.LUS, r.OrUS, r.GapUS, r.RTT2US)
	default:
		_, err = fmt.Fprintf(t.out, "%-8d %14.0f %14.0f %10.2f %8d\n", r.SizeBytes, r.TxPerS, r.MsgsPerS, r.MBPerS, r.Lost)
	}
	return err
}

var benchHeads = map[string]string{
	"latency":   "# Size     Latency (us)        p99        min        max     lost",
	"bandwidth": "# Size   Bandwidth (MB/s)    Messages/s  us/msg p50       p99     lost",
	"rate":      "# Size         Sent/s     Received/s       MB/s     lost",
	"logp":      "# Size             os          L         or        gap      RTT/2 (us)",
}

// finish writes what follows the last result.
func (t *benchTable) finish() error {
	if t.logp == nil {
		return nil
	}
	return t.logp.writeUse(t.out)
}

func (t *benchTable) writeHead(r *benchResult) error {
	tag := "untagged"
	switch {
	case r.Routed:
		tag = "by the manager's routes"
	case r.Tagged:
		tag = fmt.Sprintf("VID %d PCP %d", r.VID, r.PCP)
	}
	_, err := fmt.Fprintf(t.out, "# rawlane bench %s: %s, %d nodes, %s, %d iterations, %v\n%s\n",
		r.Bench, r.Link, r.Nodes, tag, r.Iters, r.Host, benchHeads[r.Bench])
	return err
}
