//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/outfile"
)

// checkFile finds out whether a file can be written, before the run whose results it is to have,
// and makes its folder. A file that is not there yet is not left there: the run may fail.
func checkFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("-out %s: %w", file, err)
	}
	_, absent := os.Stat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	err = f.Close()
	if errors.Is(absent, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// write writes the results as a Markdown file, and a picture of each grid beside it.
func (c *compare) write(file string) error {
	var text strings.Builder
	command := strings.Join(append([]string{"go run ./bench/compare"}, os.Args[1:]...), " ")
	fmt.Fprintf(&text, "# Results of one run\n\n*Reference, written by `%s`.*\n\n", command)
	fmt.Fprintf(&text, "%s; %s. %s, %d rounds in which all take turns.\n\n", harness.Machine(), c.Link,
		time.Now().UTC().Format(time.DateOnly), c.Rounds)
	text.WriteString("Medians, with the lowest and the highest round behind them; the best of a column is bold. " +
		"Of libfabric they are medians of its means of round trips: it tells no others. " +
		"**Compare within a column, never with another run.** There is no NIC and no wire in these numbers: " +
		"they are what the kernel and the programs cost. Programs that spin have a core each; " +
		"in barriers of more members than cores they share them. What is not installed on the machine is left out. " +
		"[README](README.md) says what each row is.\n")
	for _, g := range c.grids() {
		if len(g.rows()) == 0 {
			continue
		}
		picture := "results-" + g.name + ".svg"
		if err := g.draw(filepath.Join(filepath.Dir(file), picture)); err != nil {
			return err
		}
		fmt.Fprintf(&text, "\n## %s\n\n%s\n![%s](%s)\n", g.title, g.markdown(), g.title, picture)
	}
	return outfile.Replace(file, []byte(text.String()))
}

// Size of pictures.
const (
	pictureWidth = 20 * vg.Centimeter
	rowHeight    = 0.55 * vg.Centimeter
	aroundRows   = 3 * vg.Centimeter
)

// palette are colours that the colour-blind can tell apart.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

// draw draws the grid: a line for each program, a mark for each column's median, and its spread; on
// a logarithmic axis.
func (g *grid) draw(file string) error {
	p := plot.New()
	p.Title.Text = g.title
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	names := g.rows()
	slices.Reverse(names) // the first one is on top
	lowest, highest := math.Inf(1), 0.0
	p.Add(plotter.NewGrid())
	for i, column := range g.columns {
		var marks plotter.XYs
		for y, name := range names {
			cell := g.cell(name, i)
			if cell == nil || cell.Min() <= 0 {
				continue
			}
			lowest, highest = min(lowest, cell.Min()), max(highest, cell.Max())
			marks = append(marks, plotter.XY{X: cell.Median(), Y: float64(y)})
			span, err := plotter.NewLine(plotter.XYs{{X: cell.Min(), Y: float64(y)}, {X: cell.Max(), Y: float64(y)}})
			if err != nil {
				return err
			}
			span.Color, span.Width = palette[i%len(palette)], vg.Points(1)
			p.Add(span)
		}
		points, err := plotter.NewScatter(marks)
		if err != nil {
			return err
		}
		color := palette[i%len(palette)]
		points.GlyphStyle = draw.GlyphStyle{Color: color, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(points)
		p.Legend.Add(fmt.Sprintf("%d %s", column, g.unit), points)
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max = lowest/1.2, highest*1.2
	p.Y.Min, p.Y.Max = -1, float64(len(names))
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, pictureWidth*3/5
	w, err := p.WriterTo(pictureWidth, rowHeight*vg.Length(len(names))+aroundRows, "svg")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return err
	}
	return outfile.Replace(file, b.Bytes())
}
