package bench

import (
	"fmt"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// memoryResult is one line of these benchmarks.
type memoryResult struct {
	benchResult
	DuplexMBPerS float64 `json:"duplex_mb_per_s"`    // put: each way, both at once
	BatchedPerS  float64 `json:"batched_msgs_per_s"` // fifo: records pushed 64 at once
	Frames       uint64  `json:"frames"`             // that node 0 has sent
	Again        uint64  `json:"sent_again"`         // of these, again
	Mode         string  `json:"mode"`
	launch.Faults
}

func (b *memoryBench) result(ep *mcd.Endpoint, size int, h launch.Host) *memoryResult {
	r := &memoryResult{
		benchResult: newResult(b.name, parametersOf(&b.cluster, ep), h),
		Mode:        b.cluster.Mode, Faults: b.cluster.Faults,
	}
	r.SizeBytes = size
	return r
}

// memoryColumns are the headings of what differs, and a column that one alone has.
var memoryColumns = map[string]struct {
	time, rate string
	own        func(*memoryResult) float64
	name       string
	digits     int
}{
	"put":  {"one way (us)", "puts/s", func(r *memoryResult) float64 { return r.DuplexMBPerS }, "duplex MB/s", 2},
	"get":  {time: "call (us)", rate: "gets/s"},
	"fifo": {"one way (us)", "records/s", func(r *memoryResult) float64 { return r.BatchedPerS }, "batched/s", 0},
	"amo":  {time: "call (us)", rate: "adds/s"},
}

// head is the heading of the table.
func (r *memoryResult) head() string {
	c, own, faulty := memoryColumns[r.Bench], "", r.Faults.String()
	if c.own != nil {
		own = fmt.Sprintf(" %12s", c.name)
	}
	if faulty != "" {
		faulty = ", " + faulty
	}
	return fmt.Sprintf("# rawlane bench %s: %s, %d nodes, %s, %v%s\n# Size %15s %10s %10s %10s %12s %12s%s %7s\n",
		r.Bench, r.Link, r.Nodes, r.Mode, r.Host, faulty, c.time, "p99", "min", "max", "MB/s", c.rate, own, "again")
}

func (r *memoryResult) line() string {
	c, own := memoryColumns[r.Bench], ""
	if c.own != nil {
		own = fmt.Sprintf(" %12.*f", c.digits, c.own(r))
	}
	return fmt.Sprintf("%-10d %11.2f %10.2f %10.2f %10.2f %12.2f %12.0f%s %7d\n",
		r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.MBPerS, r.MsgsPerS, own, r.Again)
}
