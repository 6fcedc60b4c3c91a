package cli

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// PlotWidth and plotHeight are the size of plots.
const (
	PlotWidth  = 16 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// SavePlot writes a plot as the SVG file that --plot names: as a whole, or not at all.
func SavePlot(file string, draw func() (*plot.Plot, error)) error {
	p, err := draw()
	var w io.WriterTo
	if err == nil {
		w, err = p.WriterTo(PlotWidth, plotHeight, "svg")
	}
	var b bytes.Buffer
	if err == nil {
		_, err = w.WriteTo(&b)
	}
	if err != nil {
		return fmt.Errorf("--plot %s: %w", file, err)
	}
	return WriteFile("plot", file, b.Bytes())
}
