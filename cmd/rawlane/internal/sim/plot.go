package sim

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Colours that the colour-blind can tell apart.
var (
	simBlue = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	simGrey = color.RGBA{R: 0x88, G: 0x88, B: 0x88, A: 0xff}
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
