// Command halo smooths a ring of cells, a part of it on each node, by remote write. In each step a
// node puts its edge cells into its neighbours' memory, computes the cells that need no neighbour,
// and waits for the notification that the neighbours' edges are in place. (examples/stencil does
// the same with messages and a barrier.)
//
//	go run ./examples/halo
//	go build ./examples/halo && rawlane run -n 4 ./halo
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

const (
	cells = 1000 // of each node
	steps = 200
)

func main() { start.Main(start.Config{Nodes: 4, Limit: 20 * time.Second}, smooth) }

// smooth is each node's part. Its cells have a ghost cell at each end: a copy of the neighbour's
// edge.
func smooth(ctx context.Context, e *start.Node) error {
	barriers, err := barrier.Open(e.Endpoint, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	d, err := memfifo.Open(e.Endpoint, memfifo.Config{})
	if err != nil {
		return err
	}
	h, err := meet(ctx, e.Endpoint, d)
	if err != nil {
		return err
	}

	now, next := staircase(cells+2, func(int) int { return int(e.Node()) }), make([]float64, cells+2)
	var waited time.Duration
	for step := range uint64(steps) {
		at := int64(step % 2 * 8)
		err := errors.Join(h.left.PutNotify(ctx, at, word(now[1])), h.right.PutNotify(ctx, at, word(now[cells])))
		if err != nil {
			return err
		}
		for i := 2; i < cells; i++ { // cells that need no neighbour
			next[i] = mean(now[i-1], now[i], now[i+1])
		}
		start := time.Now()
		if now[0], err = ghost(ctx, h.fromLeft, step, at); err != nil {
			return err
		}
		if now[cells+1], err = ghost(ctx, h.fromRight, step, at); err != nil {
			return err
		}
		waited += time.Since(start)
		for _, i := range []int{1, cells} {
			next[i] = mean(now[i-1], now[i], now[i+1])
		}
		now, next = next, now
	}
	fmt.Printf("node %d: its edges are %.3f and %.3f; it waited for %.1f us a step\n",
		e.Node(), now[1], now[cells], float64(waited.Microseconds())/steps)
	for i, want := range alone(h.size)[int(e.Node())*cells:][:cells] {
		if now[i+1] != want {
			return fmt.Errorf("node %d: cell %d is %v, and %v where one node does it all", e.Node(), i, now[i+1], want)
		}
	}
	// Flush confirms this node's writes, so that the barrier may let the others go.
	return errors.Join(d.Flush(ctx), g.Barrier(ctx), h.keys.Close(), d.Close(), barriers.Close())
}

// halo is what neighbours share: a window for each side here, as notifications are counted per
// window, and the neighbours' windows for this side. Each window has a word for even and one for
// odd steps: a neighbour may be one step ahead, but for the next it needs this node's edge.
type halo struct {
	fromLeft, fromRight *memfifo.Window
	left, right         *memfifo.Remote
	size                int // of the cluster
	keys                *cluster.Exchanger
}

// meet makes a node's windows and exchanges their keys with all nodes.
func meet(ctx context.Context, e *mcd.Endpoint, d *memfifo.Domain) (h halo, err error) {
	var err1, err2 error
	h.fromLeft, err1 = d.Register(1, make([]byte, 16), memfifo.Write)
	h.fromRight, err2 = d.Register(2, make([]byte, 16), memfifo.Write)
	if err := errors.Join(err1, err2); err != nil {
		return h, err
	}
	if h.keys, err = cluster.OpenExchanger(e, cluster.ExchangerConfig{}); err != nil {
		return h, err
	}
	all, err := h.keys.Exchange(ctx, []byte(h.fromLeft.Key().String()+" "+h.fromRight.Key().String()))
	if err != nil {
		return h, err
	}
	h.size = len(all)
	// This node is its left neighbour's right one.
	_, h.left, err1 = remotes(d, string(all[(int(e.Node())+h.size-1)%h.size]))
	h.right, _, err2 = remotes(d, string(all[(int(e.Node())+1)%h.size]))
	return h, errors.Join(err1, err2)
}

// remotes returns the two windows of a node.
func remotes(d *memfifo.Domain, keys string) (fromLeft, fromRight *memfifo.Remote, err error) {
	var a, b string
	if _, err := fmt.Sscan(keys, &a, &b); err != nil {
		return nil, nil, err
	}
	left, err1 := memfifo.ParseKey(a)
	right, err2 := memfifo.ParseKey(b)
	return d.Remote(left), d.Remote(right), errors.Join(err1, err2)
}

// ghost waits for a neighbour's edge of a step.
func ghost(ctx context.Context, w *memfifo.Window, step uint64, at int64) (float64, error) {
	if _, err := w.Wait(ctx, step); err != nil { // notification number step+1 has arrived
		return 0, err
	}
	bits, err := w.Load(at)
	return math.Float64frombits(bits), err
}

// word returns a cell as the 8 bytes that Window.Load reads.
func word(v float64) []byte { return binary.NativeEndian.AppendUint64(nil, math.Float64bits(v)) }

func mean(a, b, c float64) float64 { return (a + 2*b + c) / 4 }

// staircase makes n cells, each with its node's number as its value.
func staircase(n int, node func(int) int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = float64(node(i))
	}
	return all
}

// alone computes the cells of all nodes in one place, for comparison.
func alone(size int) []float64 {
	now, next := staircase(size*cells, func(i int) int { return i / cells }), make([]float64, size*cells)
	for range steps {
		for i := range now {
			next[i] = mean(now[(i+len(now)-1)%len(now)], now[i], now[(i+1)%len(now)])
		}
		now, next = next, now
	}
	return now
}
