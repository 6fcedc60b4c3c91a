package main

import (
	"context"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mpi"
)

// onRanks runs f at each rank.
func onRanks(t *testing.T, ranks int, f func(ctx context.Context, c *mpi.Comm) error) error {
	t.Helper()
	return start.Run(t.Context(), start.Config{Nodes: ranks}, func(ctx context.Context, n *start.Node) error {
		w, err := mpi.Open(n.Endpoint, mpi.Config{})
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, w.Comm()), w.Comm().Barrier(ctx), w.Close())
	})
}

// The program runs: what it computes is close to the exact solution, and it paints that.
func TestProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "heat.png")
	var out strings.Builder
	err := onRanks(t, 4, func(ctx context.Context, c *mpi.Comm) error { return run(ctx, c, 100, 200, name, &out) })
	if err != nil || !strings.HasPrefix(out.String(), "100 x 100 cells on 2 x 2 ranks: 200 steps in ") {
		t.Fatalf("%v: %s", err, &out)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if b := picture.Bounds(); b.Dx() != 100 || b.Dy() != 100 {
		t.Errorf("the picture is %v", b)
	}
}

// With few cells the result is far from the exact one: that is an error, of rank 0 alone.
func TestProgram_TooCoarse(t *testing.T) {
	err := onRanks(t, 2, func(ctx context.Context, c *mpi.Comm) error { return run(ctx, c, 8, 5, "", io.Discard) })
	if err == nil || strings.Count(err.Error(), "the result is off the exact solution by 0.") != 1 {
		t.Error(err)
	}
}

// However many ranks share the plate, each cell is the same to the bit.
func TestPlate_AnyRanks(t *testing.T) {
	const cells, steps = 13, 40
	var alone []float64
	for _, ranks := range []int{1, 2, 3, 4, 6, 13} {
		var whole []float64
		err := onRanks(t, ranks, func(ctx context.Context, c *mpi.Comm) error {
			p, err := newPlate(c, cells)
			if err != nil {
				return err
			}
			p.fill(func(x, y float64) float64 { return x*x + 3*y }) // no symmetry
			for range steps {
				if err := p.step(ctx); err != nil {
					return err
				}
			}
			got, err := p.gather(ctx)
			if c.Rank() == 0 {
				whole = got
			}
			return err
		})
		if err != nil {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		if alone == nil {
			alone = whole
		}
		if len(whole) != cells*cells || !slices.Equal(whole, alone) {
			t.Errorf("%d ranks: the cells are not those of one rank: %v, want %v", ranks, whole, alone)
		}
	}
}

// One cell that differs, anywhere, is the difference at all ranks.
func TestPlate_Compare(t *testing.T) {
	err := onRanks(t, 2, func(ctx context.Context, c *mpi.Comm) error {
		p, err := newPlate(c, 20)
		if err != nil {
			return err
		}
		p.fill(func(x, y float64) float64 { return exact(x, y, 0) })
		if c.Rank() == 1 {
			p.now[p.at(3, 4)] += 5
		}
		worst, err := p.compare(ctx, func(x, y float64) float64 { return exact(x, y, 0) })
		if err == nil && math.Abs(worst-5) > 1e-12 {
			t.Errorf("rank %d: off by %v, want 5", c.Rank(), worst)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlate_RefusesMoreRanksThanCells(t *testing.T) {
	err := onRanks(t, 3, func(_ context.Context, c *mpi.Comm) error {
		_, err := newPlate(c, 2)
		if err == nil || !strings.Contains(err.Error(), "1 x 3 ranks, and 2 x 2 cells: want no more ranks") {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSquarest(t *testing.T) {
	for ranks, want := range map[int]grid{1: {1, 1}, 2: {1, 2}, 4: {2, 2}, 6: {2, 3}, 7: {1, 7}, 12: {3, 4}} {
		if got := squarest(ranks); got != want {
			t.Errorf("%d ranks: %v, want %v", ranks, got, want)
		}
	}
}

// The hottest cell is red, the coldest blue, and one of the edges' temperature white.
func TestPaint(t *testing.T) {
	p := paint([]float64{2, -2, 0, 1}, 2)
	for k, want := range []color.RGBA{{255, 1, 1, 255}, {1, 1, 255, 255}, {255, 255, 255, 255}, {255, 127, 127, 255}} {
		if got := p.At(k%2, k/2); got != want {
			t.Errorf("cell %d is %v, want %v", k, got, want)
		}
	}
}
