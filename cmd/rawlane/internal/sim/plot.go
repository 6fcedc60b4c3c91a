package sim

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rawlane/rawlane/sim/cenju"
)

// Colours that the colour-blind can tell apart.
var (
	simBlue  = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	simGrey  = color.RGBA{R: 0x88, G: 0x88, B: 0x88, A: 0xff}
	simGreen = color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}
	simRed   = color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}
)

// drawing makes a plot of an experiment's results.
type drawing func() (*plot.Plot, error)

// plotChange draws fig9: bandwidth over time, and when the two ends changed.
func plotChange(all []changeLine) (*plot.Plot, error) {
	points, highest := make(plotter.XYs, len(all)), 0.0
	for i, l := range all {
		points[i] = plotter.XY{X: l.AtS, Y: l.MBPerS}
		highest = max(highest, l.MBPerS)
	}
	first := all[0]
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Receive bandwidth of nodes %d to %d", first.Nodes/2, first.Nodes-1)
	p.X.Label.Text, p.Y.Label.Text = "time (s)", "MB/s"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, first.Seconds, 0, 1.1*highest
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width, line.StepStyle = simBlue, vg.Points(1.5), plotter.PostStep
	p.Add(plotter.NewGrid())
	for _, at := range []float64{first.SenderS, first.ReceiverS} {
		mark, err := plotter.NewLine(plotter.XYs{{X: at, Y: 0}, {X: at, Y: p.Y.Max}})
		if err != nil {
			return nil, err
		}
		mark.Color, mark.Dashes = simGrey, []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(mark)
	}
	p.Add(line)
	return p, nil
}

// plotCG draws fig11: a bar for each network.
func plotCG(all []cgLine) (*plot.Plot, error) {
	values, names := make(plotter.Values, len(all)), make([]string, len(all))
	for i, l := range all {
		values[i], names[i] = l.Relative, l.Network
	}
	p := plot.New()
	p.Title.Text = fmt.Sprintf("NPB CG on %s", all[0].Topology)
	p.Y.Label.Text = "performance relative to flat"
	bars, err := plotter.NewBarChart(values, vg.Points(32))
	if err != nil {
		return nil, err
	}
	bars.Color, bars.LineStyle = simBlue, draw.LineStyle{}
	p.Add(plotter.NewGrid(), bars)
	p.NominalX(names...)
	p.Y.Min, p.Y.Max = 0, 1.1*max(1, slices.Max(values))
	return p, nil
}

// plotCenju draws throughput over the size of transfers, a line for each mode, and its formula
// dashed.
func plotCenju(all []cenjuLine) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Throughput of Cenju-3's transfers"
	p.X.Label.Text, p.Y.Label.Text = "bytes", "MB/s"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{}
	p.Add(plotter.NewGrid())
	highest := 0.0
	for _, mode := range cenju.Modes {
		var simulated, formula plotter.XYs
		for _, l := range all {
			if l.Mode == mode.String() {
				simulated = append(simulated, plotter.XY{X: float64(l.SizeBytes), Y: l.MBPerS})
				formula = append(formula, plotter.XY{X: float64(l.SizeBytes), Y: l.Formula})
				highest = max(highest, l.MBPerS)
			}
		}
		line, err := plotter.NewLine(simulated)
		if err != nil {
			return nil, err
		}
		dashed, err := plotter.NewLine(formula)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = []color.Color{simBlue, simGrey, simRed, simGreen}[mode], vg.Points(1.5)
		dashed.Color, dashed.Dashes = color.Black, []vg.Length{vg.Points(2), vg.Points(4)}
		p.Add(line, dashed)
		p.Legend.Add(mode.String(), line)
	}
	p.Y.Min, p.Y.Max = 0, 1.1*highest
	return p, nil
}
