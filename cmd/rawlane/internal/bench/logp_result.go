package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// LogPTimes are the costs of a message as measured, in microseconds. Any may be negative.
type LogPTimes struct {
	OsUS    float64 `json:"os_us"`
	LUS     float64 `json:"l_us"` // RTT/2 - o_s - o_r
	OrUS    float64 `json:"or_us"`
	GapUS   float64 `json:"gap_us"`
	RTT2US  float64 `json:"rtt2_us"`
	DeltaUS float64 `json:"delta_us"` // computed between messages, for o_r
	ClockUS float64 `json:"clock_us"` // of a look at the clock, subtracted
	Late    int     `json:"late"`     // messages with a delay that do not count, as the echo came after it
}

// result fills in the medians of all turns.
func (m *logpClient) result(r *result) error {
	if m.halves.TotalCount() == 0 || m.sends.TotalCount() == 0 || len(m.gaps) == 0 {
		return fmt.Errorf("all messages of %d bytes were lost", r.SizeBytes)
	}
	if len(m.both) == 0 {
		return errors.New("no echo came back in time to measure or (is another program on these cores?)")
	}
	r.record(m.halves)
	const ns = 1e-3 // in microseconds
	t := &LogPTimes{
		OsUS:    float64(m.sends.ValueAtPercentile(50)-int64(m.clock)) * ns,
		GapUS:   median(m.gaps) * ns,
		RTT2US:  (float64(m.halves.ValueAtPercentile(50)) - float64(m.clock)/2) * ns,
		DeltaUS: median(m.alone) * ns,
		ClockUS: cli.Micros(m.clock),
		Late:    m.late,
	}
	t.OrUS = median(m.both)*ns - t.OsUS
	t.LUS = t.RTT2US - t.OsUS - t.OrUS
	r.LogPTimes = t
	r.MsgsPerS = 1e6 / t.GapUS
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
	r.TxPerS = 1e9 / median(m.takes)
	return nil
}

// median returns the median of one value or more, and sorts them. Of an even number it is the
// mean of the two in the middle.
func median[T float64 | time.Duration](values []T) T {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// usage is the command that uses the parameters.
func (t *LogPTimes) usage() string {
	note := ""
	if min(t.OsUS, t.LUS, t.OrUS, t.GapUS) < 0 {
		note = "# What is negative is 0 to the model:\n"
	}
	d := func(us float64) time.Duration { return max(0, time.Duration(math.Round(us*1e3))) }
	return fmt.Sprintf("%s# rawlane barrier show --algo auto --nodes 32 --os %dns --l %dns --or %dns --gap %dns\n",
		note, d(t.OsUS), d(t.LUS), d(t.OrUS), d(t.GapUS))
}
