package bench

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Breakdown is where the time of round trips goes, in microseconds: medians, and 99th percentiles.
type Breakdown struct {
	TripUS     float64           `json:"trip_us"`         // a round trip, without stamps
	StampedUS  float64           `json:"stamped_trip_us"` // with them
	SumUS      float64           `json:"sum_us"`          // of the parts of one
	PartsUS    [numParts]float64 `json:"parts_us"`
	PartsP99US [numParts]float64 `json:"parts_p99_us"`
	Shares     [numParts]float64 `json:"part_shares"` // of the time of all round trips but the slowest tenth
	Split      int64             `json:"split"`       // round trips that were
	Unsplit    int64             `json:"unsplit"`     // measured with stamps, and not split
	// HardwareUS is the wire's time there and back between the NICs, if they stamp.
	HardwareUS    float64 `json:"hardware_wire_us,omitempty"`
	HardwareP99US float64 `json:"hardware_wire_p99_us,omitempty"`
}

// breakdownParts describe the parts, in their order: their letters in the bar of characters, and
// colours that the colour-blind can tell from their neighbours'.
var breakdownParts = [numParts]struct {
	letter string
	name   string
	color  color.RGBA
}{
	partSend:     {"S", "node 0: send", color.RGBA{0x00, 0x72, 0xb2, 0xff}},
	partWire:     {"=", "wire, there and back", color.RGBA{0x99, 0x99, 0x99, 0xff}},
	partWake1:    {"w", "node 1: wake-up", color.RGBA{0xf0, 0xe4, 0x42, 0xff}},
	partReceive1: {"r", "node 1: receive", color.RGBA{0xe6, 0x9f, 0x00, 0xff}},
	partProgram1: {"p", "node 1: program", color.RGBA{0xff, 0xdd, 0xaa, 0xff}},
	partSend1:    {"s", "node 1: send", color.RGBA{0xd5, 0x5e, 0x00, 0xff}},
	partWake:     {"W", "node 0: wake-up", color.RGBA{0x00, 0x9e, 0x73, 0xff}},
	partReceive:  {"R", "node 0: receive", color.RGBA{0x56, 0xb4, 0xe9, 0xff}},
	partProgram:  {"P", "node 0: program", color.RGBA{0xbb, 0xdd, 0xff, 0xff}},
}

// result takes the distributions.
func (s *split) result() *Breakdown {
	us := func(h *hdrhistogram.Histogram, percent float64) float64 {
		return float64(h.ValueAtPercentile(percent)) / 1e3
	}
	b := &Breakdown{
		TripUS: us(s.plain, 50), StampedUS: us(s.whole, 50), SumUS: us(s.sum, 50),
		Shares: s.shares(), Split: s.whole.TotalCount(), Unsplit: int64(s.measured) - s.whole.TotalCount(),
	}
	for i, h := range s.parts {
		b.PartsUS[i], b.PartsP99US[i] = us(h, 50), us(h, 99)
	}
	if s.hardware.TotalCount() > 0 {
		b.HardwareUS, b.HardwareP99US = us(s.hardware, 50), us(s.hardware, 99)
	}
	return b
}

var breakdownLayout = layout{
	"#   Part of a round trip      p50 (us)        p99    share",
	func(r *result) string { return r.Breakdown.text(r.SizeBytes) },
}

// barLen is the length of the bar, in characters.
const barLen = 72

// text is the table of a size, and a bar below it.
func (b *Breakdown) text(size int) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%d bytes: a round trip takes %.2f us, with stamps %.2f; %d of %d were split\n",
		size, b.TripUS, b.StampedUS, b.Split, b.Split+b.Unsplit)
	bar, upTo := "", 0.0
	for i, part := range breakdownParts {
		fmt.Fprintf(&t, "  %s %-22s %10.2f %10.2f %7.1f%%\n",
			part.letter, part.name, b.PartsUS[i], b.PartsP99US[i], 100*b.Shares[i])
		if i == partWire && b.HardwareUS > 0 {
			fmt.Fprintf(&t, "    %-22s %10.2f %10.2f\n", "of it between the NICs", b.HardwareUS, b.HardwareP99US)
		}
		upTo += b.Shares[i]
		bar += strings.Repeat(part.letter, max(0, int(barLen*upTo+0.5)-len(bar)))
	}
	fmt.Fprintf(&t, "    %-22s %10.2f %20.1f%% of a round trip with stamps\n",
		"sum of one's parts", b.SumUS, 100*b.SumUS/b.StampedUS)
	fmt.Fprintf(&t, "  |%s|\n", bar)
	return t.String()
}

// savePlot draws a bar of each size into the file of --plot, if there is one.
func (b *messageBench) savePlot(splits []*result) error {
	if b.plot == "" {
		return nil
	}
	return cli.SavePlot(b.plot, func() (*plot.Plot, error) { return plotBreakdown(splits) })
}

func plotBreakdown(splits []*result) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Where a round trip's time goes: " + splits[0].Link
	p.Y.Label.Text, p.X.Label.Text = "us", "bytes"
	p.Add(plotter.NewGrid())
	legendAt := cli.PlotWidth / 2
	var below *plotter.BarChart
	highest := 0.0
	for i, part := range breakdownParts {
		values := make(plotter.Values, len(splits))
		for k, r := range splits {
			values[k] = r.Shares[i] * r.StampedUS
			highest = max(highest, r.StampedUS)
		}
		bars, err := plotter.NewBarChart(values, vg.Points(40))
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle = part.color, draw.LineStyle{}
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(part.name, bars)
	}
	var sizes []string
	for _, r := range splits {
		sizes = append(sizes, fmt.Sprint(r.SizeBytes))
	}
	p.NominalX(sizes...)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, legendAt
	p.X.Max = 2*float64(len(splits)) - 0.5 // the right half is for the legend
	p.Y.Min, p.Y.Max = 0, 1.1*highest
	return p, nil
}
