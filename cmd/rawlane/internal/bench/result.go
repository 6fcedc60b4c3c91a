package bench

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// resultSchema is the version of result as JSON. docs/bench-json.md describes it.
const resultSchema = 2

// result is one line of a benchmark.
type result struct {
	Schema int    `json:"schema"`
	Bench  string `json:"bench"`

	// What was asked for, with defaults filled in.
	Link      string  `json:"link"`
	Nodes     int     `json:"nodes"`
	NICs      int     `json:"nics"`
	Algo      string  `json:"algo"`
	Iters     int     `json:"iters"`
	Window    int     `json:"window"`             // under way before an answer; 0: bounded by the link
	Batch     int     `json:"batch"`              // messages sent in one call
	InPlace   bool    `json:"in_place,omitempty"` // they are sent from where they are built
	Tagged    bool    `json:"tagged"`
	VID       int     `json:"vid"`
	PCP       int     `json:"pcp"`
	Routed    bool    `json:"routed,omitempty"` // by a manager's routes, which give each message its tag
	Keys      string  `json:"keys"`             // what a key file does for the frames
	Checksum  string  `json:"checksum"`         // what the checksums of node 0's messages cover besides the headers
	Pin       int     `json:"pin"`              // the core of node 0's process, or notPinned
	SpinUS    float64 `json:"spin_us"`
	SizeBytes int     `json:"size_bytes"`

	// What was measured.
	MinUS    float64     `json:"min_us"`
	P50US    float64     `json:"p50_us"`
	P99US    float64     `json:"p99_us"`
	MaxUS    float64     `json:"max_us"`
	MeanUS   float64     `json:"mean_us"`
	MBPerS   float64     `json:"mb_per_s"`
	MsgsPerS float64     `json:"msgs_per_s"`
	TxPerS   float64     `json:"tx_msgs_per_s"`
	Allocs   float64     `json:"allocs_per_op"`
	Lost     uint64      `json:"lost"`
	Host     launch.Host `json:"host"`
	*LogPTimes
	*KeyTimes
	*Breakdown

	together bool // the nodes share this process

	// Of round trips, for those that are measured in several rounds.
	halves  *hdrhistogram.Histogram
	elapsed time.Duration
}

// notPinned is the core of a process that the system's scheduler places.
const notPinned = -1

// result returns what all results on an endpoint have.
func (b *bench) result(ep *mcd.Endpoint, nic string) result {
	core := notPinned
	if cores, _ := b.cluster.Cores(); len(cores) > 0 { // Validate has shown the error
		core = cores[0]
	}
	r := result{
		Schema: resultSchema, Bench: b.name, Host: launch.ThisHost(nic, ep.MaxPayload()+ep.HeaderLen()),
		Link: b.cluster.Kind, Nodes: len(ep.Nodes()), NICs: ep.NICs(), Iters: b.iters,
		Routed: b.cluster.Manager != "", Pin: core, SpinUS: cli.Micros(b.cluster.Spin),
		Checksum: ep.Checksum(0).String(), together: b.cluster.Together(),
	}
	if b.cluster.VID != launch.NoVID {
		r.Tagged, r.VID, r.PCP = true, b.cluster.VID, b.cluster.PCP
	}
	return r
}

// elsewhere makes r a row about another network, whose frames rawlane does not make.
func (r *result) elsewhere(network string) {
	r.Link, r.Tagged, r.VID, r.PCP, r.Routed = network, false, 0, 0, false
	r.Keys, r.Checksum = launch.Unprotected, ""
}

// protection says in a head what a key file does, if there is one, and what no checksum covers.
func (r *result) protection() string {
	switch {
	case r.Keys == launch.Authenticated, r.Keys == launch.Encrypted:
		return ", " + r.Keys
	case r.KeyTimes != nil:
		return ", without the key"
	case r.Checksum == mcd.ChecksumHeader.String():
		return ", checksums of headers"
	}
	return ""
}

// record takes the distribution from a histogram of nanoseconds.
func (r *result) record(h *hdrhistogram.Histogram) {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	r.MinUS, r.MaxUS, r.MeanUS = us(h.Min()), us(h.Max()), h.Mean()/1e3
	r.P50US, r.P99US = us(h.ValueAtPercentile(50)), us(h.ValueAtPercentile(99))
}

// pinned says on which core node 0 runs. A process that the scheduler moves about is slower, and
// differs more from run to run.
func (r *result) pinned() string {
	switch {
	case r.Pin != notPinned:
		return fmt.Sprintf("node 0 on core %d", r.Pin)
	case r.together:
		return "one process"
	}
	return "not pinned (--pin CORE)"
}

// recordRates takes the rates of messages and bytes.
func (r *result) recordRates(messages int64, took time.Duration) {
	r.MsgsPerS = float64(messages) / took.Seconds()
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
}

// recordPingPong takes half round trips, and the rates of messages and bytes both ways.
func (r *result) recordPingPong(h *hdrhistogram.Histogram, elapsed time.Duration) {
	r.halves, r.elapsed = h, elapsed
	r.record(h)
	r.recordRates(2*h.TotalCount(), elapsed)
	r.TxPerS = float64(h.TotalCount()+int64(r.Lost)) / elapsed.Seconds()
}

// addPingPong adds what another round has measured of the same.
func (r *result) addPingPong(other *result) {
	r.Allocs = (r.Allocs*float64(r.Iters) + other.Allocs*float64(other.Iters)) / float64(r.Iters+other.Iters)
	r.Iters += other.Iters
	r.Lost += other.Lost
	r.halves.Merge(other.halves)
	r.recordPingPong(r.halves, r.elapsed+other.elapsed)
}

// recordStream takes the times and the rates of a stream of messages.
func (r *result) recordStream(
	h *hdrhistogram.Histogram, sent, received uint64, sending, arriving time.Duration,
) error {
	if received > sent {
		return fmt.Errorf("%d messages sent and %d received", sent, received)
	}
	r.record(h)
	r.Lost = sent - received
	r.TxPerS = float64(sent) / sending.Seconds()
	r.recordRates(int64(received), arriving)
	return nil
}

// column is one of a table whose columns differ from benchmark to benchmark.
type column[R any] struct {
	head   string
	digits int
	value  func(*R) float64 // NaN: not measured
}

// cell returns a result's value as the table has it.
func (c *column[R]) cell(r *R) string {
	value := c.value(r)
	if math.IsNaN(value) {
		return "-"
	}
	return strconv.FormatFloat(value, 'f', c.digits, 64)
}

// columns returns the heads of some columns, or with a result its values.
func columns[R any](all []column[R], width int, r *R) (text string) {
	for _, c := range all {
		cell := c.head
		if r != nil {
			cell = c.cell(r)
		}
		text += fmt.Sprintf(" %*s", width, cell)
	}
	return text
}

// layout is the table of a benchmark.
type layout struct {
	head string
	line func(*result) string
}

// layouts are those of the benchmarks of messages.
var layouts = map[string]layout{
	"latency": {
		"# Size         p50 (us)        p99        min        max     lost",
		func(r *result) string {
			return fmt.Sprintf("%-8d %14.2f %10.2f %10.2f %10.2f %8d%s\n",
				r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.Lost, r.KeyTimes.columns())
		},
	},
	"bandwidth": {
		"# Size   Bandwidth (MB/s)    Messages/s  us/msg p50       p99     lost",
		func(r *result) string {
			return fmt.Sprintf("%-8d %14.2f %14.0f %10.2f %10.2f %8d\n",
				r.SizeBytes, r.MBPerS, r.MsgsPerS, r.P50US, r.P99US, r.Lost)
		},
	},
	"rate": {
		"# Size         Sent/s     Received/s       MB/s     lost",
		func(r *result) string {
			return fmt.Sprintf("%-8d %14.0f %14.0f %10.2f %8d\n", r.SizeBytes, r.TxPerS, r.MsgsPerS, r.MBPerS, r.Lost)
		},
	},
	"logp": {
		"# Size             os          L         or        gap      RTT/2 (us)",
		func(r *result) string {
			return fmt.Sprintf("%-8d %10.3f %10.3f %10.3f %10.3f %10.3f\n",
				r.SizeBytes, r.OsUS, r.LUS, r.OrUS, r.GapUS, r.RTT2US)
		},
	},
}

// layout is the benchmark's own, or that of programs.
func (r *result) layout() layout {
	if r.Breakdown != nil {
		return breakdownLayout
	}
	if l, ok := layouts[r.Bench]; ok {
		return l
	}
	return programLayout
}

func (r *result) line() string { return r.layout().line(r) }

func (r *result) head() string {
	tag := "untagged"
	switch {
	case r.Routed:
		tag = "by the manager's routes"
	case r.Tagged:
		tag = fmt.Sprintf("VID %d PCP %d", r.VID, r.PCP)
	}
	return fmt.Sprintf("# rawlane bench %s: %s, %d nodes, %s%s, %s, %d iterations, %v\n%s%s\n",
		r.Bench, r.Link, r.Nodes, tag, r.protection(), r.pinned(), r.Iters, r.Host,
		r.layout().head, r.KeyTimes.heads())
}
