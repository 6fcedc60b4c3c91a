// Command heat computes how heat spreads in a square plate whose edges are kept cold. Each rank has
// a block of its cells. In each step it sends its edge cells to up to four neighbours, computes the
// cells that need none of theirs, waits for these, and computes the rest. The result is compared
// with the exact solution.
//
//	go run ./examples/heat -o heat.png                      four ranks in this process; a picture
//	go build ./examples/heat && rawlane run -n 4 ./heat     a process for each, on kernel links
//	go build ./examples/heat && mpirun -n 4 ./heat          started by MPICH
//
// (In one dimension examples/stencil does the like with datagrams and a barrier, and examples/halo
// by remote write.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mpi"
)

// tolerance of the result, where temperatures are up to 2.
const tolerance = 1e-3

func main() {
	picture := flag.String("o", "", "write a picture of the result to this `file`: PNG")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: a picture's file is set by -o\n", flag.Arg(0))
		flag.Usage()
		os.Exit(2)
	}
	start.Main(start.Config{Nodes: 4}, func(ctx context.Context, n *start.Node) error {
		w, err := mpi.Open(n.Endpoint, mpi.Config{})
		if err != nil {
			return err
		}
		return errors.Join(run(ctx, w.Comm(), 400, 2000, *picture, os.Stdout), w.Close())
	})
}

// run is each rank's part: so many steps on a plate with so many cells to a side.
func run(ctx context.Context, c *mpi.Comm, cells, steps int, picture string, out io.Writer) error {
	p, err := newPlate(c, cells)
	if err != nil {
		return err
	}
	p.fill(func(x, y float64) float64 { return exact(x, y, 0) })
	begin := time.Now()
	for range steps {
		if err := p.step(ctx); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	end := float64(steps) * p.stepTime()
	worst, err := p.compare(ctx, func(x, y float64) float64 { return exact(x, y, end) })
	if err != nil {
		return err
	}
	whole, err := p.gather(ctx)
	if err != nil {
		return err
	}
	if err := c.Barrier(ctx); err != nil || c.Rank() != 0 { // nobody needs this rank any more
		return err
	}
	fmt.Fprintf(out, "%d x %d cells on %d x %d ranks: %d steps in %.2f s; off the exact solution by up to %.1e\n",
		cells, cells, p.ranks.rows, p.ranks.columns, steps, took.Seconds(), worst)
	if !(worst <= tolerance) { // nor if it is no number
		return fmt.Errorf("the result is off the exact solution by %v: want at most %v", worst, tolerance)
	}
	if picture == "" {
		return nil
	}
	return writePicture(picture, whole, cells)
}

// exact is the temperature at a place and a time, of which neither has a unit: waves fade, the
// short ones first.
func exact(x, y, t float64) float64 {
	var sum float64
	for _, wave := range []struct{ height, across, down float64 }{{1, 1, 1}, {0.5, 3, 2}, {0.5, 5, 4}} {
		fade := math.Exp(-(wave.across*wave.across + wave.down*wave.down) * math.Pi * math.Pi * t)
		sum += wave.height * fade * math.Sin(wave.across*math.Pi*x) * math.Sin(wave.down*math.Pi*y)
	}
	return sum
}
