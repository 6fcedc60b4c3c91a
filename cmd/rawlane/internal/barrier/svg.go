package barrier

import (
	"bytes"
	"fmt"
	"io"
	"time"

	svg "github.com/ajstarks/svgo/float"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Measures of a picture, in pixels.
const (
	plotLeft, plotTop = 56.0, 92.0
	plotMargin        = 32.0 // right and below
	minPlot, maxPlot  = 900.0, 6000.0
	minBox            = 6.0 // of a send or a receive, unless the picture gets too wide
	tickDistance      = 80.0
)

// networkColors differ for the colour-blind, too. More networks than colours share them.
var networkColors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b5cc4", "#666666"}

func networkColor(nic int) string { return networkColors[nic%len(networkColors)] }

// picture is a space-time diagram: ranks from top to bottom, time to the right.
type picture struct {
	*svg.SVG
	plan  *plan
	row   float64       // distance of two ranks
	plot  float64       // width of the time in it
	total time.Duration // of the time in it
}

// drawPicture writes a plan as SVG.
func drawPicture(out io.Writer, p *plan) {
	d := &picture{SVG: svg.New(out), plan: p, total: p.predicted()}
	for _, e := range p.events {
		d.total = max(d.total, e.Handled)
	}
	switch {
	case p.nodes <= 16:
		d.row = 36
	case p.nodes <= 32:
		d.row = 24
	default:
		d.row = 16
	}
	d.plot = minPlot
	if box := min(p.logp.Os, p.logp.Or); box > 0 {
		d.plot = min(max(minPlot, minBox*float64(d.total)/float64(box)), maxPlot)
	}
	width, height := plotLeft+d.plot+plotMargin, d.bottom()+plotMargin
	d.Start(width, height, fmt.Sprintf(`viewBox="0 0 %.2f %.2f"`, width, height),
		`font-family="sans-serif"`, `font-size="11"`)
	d.Title(p.title())
	d.Rect(0, 0, width, height, `fill="white"`)
	d.heads()
	d.caption()
	d.axis()
	d.lifelines()
	d.messages()
	d.work()
	d.exits()
	d.End()
}

func (d *picture) x(t time.Duration) float64 {
	if d.total == 0 {
		return plotLeft
	}
	return plotLeft + d.plot*float64(t)/float64(d.total)
}

func (d *picture) y(rank int) float64 { return plotTop + d.row*(float64(rank)+0.5) }

func (d *picture) bottom() float64 { return plotTop + d.row*float64(d.plan.nodes) }

// heads defines an arrow's head for each network: a marker does not take the colour of its line.
func (d *picture) heads() {
	d.Def()
	for nic := range d.plan.networks {
		d.Marker(fmt.Sprintf("head%d", nic), 8, 4, 8, 8, `orient="auto"`, `markerUnits="userSpaceOnUse"`)
		d.Path("M0,1 L8,4 L0,7 z", fmt.Sprintf(`fill="%s"`, networkColor(nic)))
		d.MarkerEnd()
	}
	d.DefEnd()
}

// caption is the title, the parameters and the legend.
func (d *picture) caption() {
	d.Text(plotLeft, 22, d.plan.title(), `font-size="16"`, `font-weight="bold"`)
	d.Text(plotLeft, 40, d.plan.parameters()+"; "+d.plan.exitTimes())
	x := plotLeft
	sign := func(text string, draw func()) {
		draw()
		d.Text(x+16, 60, text)
		x += 28 + 6.5*float64(len(text))
	}
	sign("sends (os)", func() { d.box(x, 56, 12, 8, 0, networkColor(0)) })
	sign("receives (or)", func() { d.box(x, 56, 12, 8, 0, hollow) })
	sign("leaves", func() { d.Circle(x+6, 56, 4, `fill="#222222"`) })
	for nic := 0; d.plan.networks > 1 && nic < min(d.plan.networks, len(networkColors)); nic++ {
		sign(fmt.Sprintf("NIC %d", nic), func() {
			d.Line(x, 56, x+12, 56, fmt.Sprintf(`stroke="%s"`, networkColor(nic)), `stroke-width="3"`)
		})
	}
}

// axis draws the time, in round microseconds.
func (d *picture) axis() {
	d.Group(`class="axis"`, `stroke="#dddddd"`, `stroke-width="1"`)
	step := d.tick()
	for t := time.Duration(0); t <= d.total; t += step {
		d.Line(d.x(t), plotTop, d.x(t), d.bottom())
	}
	d.Gend()
	d.Group(`fill="#444444"`, `text-anchor="middle"`)
	for t := time.Duration(0); t <= d.total; t += step {
		d.Text(d.x(t), plotTop-6, micros(t))
		d.Text(d.x(t), d.bottom()+16, micros(t))
	}
	d.Gend()
}

// tick is the least of 1, 2, 5, 10 ... ns that sets the axis' numbers far enough apart.
func (d *picture) tick() time.Duration {
	for step := time.Duration(1); ; step *= 10 {
		for _, times := range []time.Duration{1, 2, 5} {
			if d.total == 0 || d.plot*float64(step*times) >= tickDistance*float64(d.total) {
				return step * times
			}
		}
	}
}

// lifelines draws a line for each rank, darker until its exit.
func (d *picture) lifelines() {
	for rank, exit := range d.plan.exits {
		y := d.y(rank)
		d.Text(plotLeft-10, y+4, fmt.Sprint(rank), `text-anchor="end"`, `fill="#222222"`)
		d.Line(plotLeft, y, plotLeft+d.plot, y, `stroke="#dddddd"`)
		d.Line(plotLeft, y, d.x(exit), y, `stroke="#888888"`)
	}
}

// messages draws an arrow for each message, from its departure to its arrival.
func (d *picture) messages() {
	for nic := range d.plan.networks {
		d.Group(fmt.Sprintf(`stroke="%s"`, networkColor(nic)), fmt.Sprintf(`marker-end="url(#head%d)"`, nic))
		for _, e := range d.plan.events {
			if e.NIC == nic {
				d.Group(`class="message"`)
				d.Title(fmt.Sprintf("%d to %d over NIC %d: sent from %s to %s, arrived %s, handled %s",
					e.From, e.To, e.NIC, micros(e.Begun), micros(e.Left), micros(e.Arrived), micros(e.Handled)))
				d.Line(d.x(e.Left), d.y(e.From), d.x(e.Arrived), d.y(e.To))
				d.Gend()
			}
		}
		d.Gend()
	}
}

// hollow is the colour within the box of a receive.
const hollow = "white"

// work draws the busy times of the ranks' processors. A multicast is many messages, and one send.
func (d *picture) work() {
	type send struct {
		from, nic   int
		begun, left time.Duration
	}
	drawn := map[send]bool{}
	height := min(d.row/2, 12)
	busy := func(rank int, from, to time.Duration, nic int, fill string) {
		d.box(d.x(from), d.y(rank), d.x(to)-d.x(from), height, nic, fill)
	}
	for _, e := range d.plan.events {
		if s := (send{e.From, e.NIC, e.Begun, e.Left}); !drawn[s] {
			drawn[s] = true
			busy(e.From, e.Begun, e.Left, e.NIC, networkColor(e.NIC))
		}
	}
	for _, e := range d.plan.events {
		busy(e.To, e.Handled-d.plan.logp.Or, e.Handled, e.NIC, hollow)
	}
}

// box draws a busy time around the height y.
func (d *picture) box(x, y, width, height float64, nic int, fill string) {
	d.Rect(x, y-height/2, width, height, fmt.Sprintf(`fill="%s"`, fill), fmt.Sprintf(`stroke="%s"`, networkColor(nic)))
}

// exits marks the exit of each rank.
func (d *picture) exits() {
	for rank, exit := range d.plan.exits {
		d.Group(`class="exit"`, `fill="#222222"`)
		d.Title(fmt.Sprintf("%d leaves at %s", rank, micros(exit)))
		d.Circle(d.x(exit), d.y(rank), min(4, d.row/4))
		d.Gend()
	}
}

// writePicture replaces the file with the picture: all of it or nothing.
func writePicture(file string, p *plan) error {
	var b bytes.Buffer
	drawPicture(&b, p)
	return cli.WriteFile("svg", file, b.Bytes())
}
