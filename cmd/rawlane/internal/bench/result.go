package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
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

// benchParameters are the parameters of a benchmark, with defaults filled in.
type benchParameters struct {
	Link   string  `json:"link"`
	Nodes  int     `json:"nodes"`
	NICs   int     `json:"nics"`
	Algo   string  `json:"algo"`
	Iters  int     `json:"iters"`
	Window int     `json:"window"` // messages under way before an answer is awaited; 0: bounded by the link
	Batch  int     `json:"batch"`  // messages posted in one call
	Tagged bool    `json:"tagged"`
	VID    int     `json:"vid"`
	PCP    int     `json:"pcp"`
	Routed bool    `json:"routed,omitempty"` // by a manager's routes, which give each message its tag
	Pin    int     `json:"pin"`              // the core of node 0's process, or notPinned
	SpinUS float64 `json:"spin_us"`
}

// notPinned is the core of a process that the system's scheduler places.
const notPinned = -1

// parametersOf returns the parameters that the flags of the cluster give.
func parametersOf(c *launch.ClusterFlags, e *mcd.Endpoint) benchParameters {
	core := notPinned
	if cores, _ := c.Cores(); len(cores) > 0 { // Validate has shown the error
		core = cores[0]
	}
	p := benchParameters{
		Link: c.Kind, Nodes: len(e.Nodes()), NICs: e.NICs(), Routed: c.Manager != "", Pin: core,
		SpinUS: cli.Micros(mcd.DefaultSpin),
	}
	if c.VID != launch.NoVID {
		p.Tagged, p.VID, p.PCP = true, c.VID, c.PCP
	}
	return p
}

func newResult(bench string, p benchParameters, h launch.Host) benchResult {
	return benchResult{Schema: benchSchema, Bench: bench, benchParameters: p, Host: h}
}

// record takes the distribution from a histogram of nanoseconds.
func (r *benchResult) record(h *hdrhistogram.Histogram) {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	r.MinUS, r.MaxUS, r.MeanUS = us(h.Min()), us(h.Max()), h.Mean()/1e3
	r.P50US, r.P99US = us(h.ValueAtPercentile(50)), us(h.ValueAtPercentile(99))
}

// recordPingPong takes half round trips, and the rates of messages and bytes both ways.
func (r *benchResult) recordPingPong(h *hdrhistogram.Histogram, elapsed time.Duration) {
	r.record(h)
	r.MsgsPerS = float64(2*h.TotalCount()) / elapsed.Seconds()
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
	r.TxPerS = r.MsgsPerS / 2
}

// benchTable writes results one by one: a table like those of the OSU benchmarks, or JSON lines.
type benchTable struct {
	cli.Lines
	logp *LogPTimes // of the first size
}

func (t *benchTable) write(r *benchResult) error {
	if t.logp == nil {
		t.logp = r.LogPTimes
	}
	return t.Write(r, r.head(), r.line())
}

// finish writes the end of the table.
func (t *benchTable) finish() error {
	if t.logp == nil || t.JSON {
		return nil
	}
	_, err := io.WriteString(t.Out, t.logp.usage())
	return err
}

func (r *benchResult) line() string {
	switch r.Bench {
	case "latency":
		return fmt.Sprintf("%-8d %14.2f %10.2f %10.2f %10.2f %8d\n",
			r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.Lost)
	case "bandwidth":
		return fmt.Sprintf("%-8d %14.2f %14.0f %10.2f %10.2f %8d\n",
			r.SizeBytes, r.MBPerS, r.MsgsPerS, r.P50US, r.P99US, r.Lost)
	case "logp":
		return fmt.Sprintf("%-8d %10.3f %10.3f %10.3f %10.3f %10.3f\n",
			r.SizeBytes, r.OsUS, r.LUS, r.OrUS, r.GapUS, r.RTT2US)
	}
	return fmt.Sprintf("%-8d %14.0f %14.0f %10.2f %8d\n", r.SizeBytes, r.TxPerS, r.MsgsPerS, r.MBPerS, r.Lost)
}

var benchHeads = map[string]string{
	"latency":   "# Size     Latency (us)        p99        min        max     lost",
	"bandwidth": "# Size   Bandwidth (MB/s)    Messages/s  us/msg p50       p99     lost",
	"rate":      "# Size         Sent/s     Received/s       MB/s     lost",
	"logp":      "# Size             os          L         or        gap      RTT/2 (us)",
}

func (r *benchResult) head() string {
	tag := "untagged"
	switch {
	case r.Routed:
		tag = "by the manager's routes"
	case r.Tagged:
		tag = fmt.Sprintf("VID %d PCP %d", r.VID, r.PCP)
	}
	return fmt.Sprintf("# rawlane bench %s: %s, %d nodes, %s, %d iterations, %v\n%s\n",
		r.Bench, r.Link, r.Nodes, tag, r.Iters, r.Host, benchHeads[r.Bench])
}
