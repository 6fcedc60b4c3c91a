// Command stencil smooths a ring of cells, a part of it on each node, with a split-phase (fuzzy)
// barrier: between arriving and waiting, while the neighbours' edges are on their way, a node
// computes the cells that do not need them.
//
//	go run ./examples/stencil
//	go build ./examples/stencil && rawlane run -n 4 ./stencil
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const (
	cells            = 1000 // of each node
	steps            = 200
	port  mcd.PortID = 1
)

func main() { start.Main(start.Config{Nodes: 4, Limit: 20 * time.Second}, smooth) }

// smooth is each node's part. Its cells have a ghost cell at each end: a copy of the neighbour's
// edge.
func smooth(ctx context.Context, e *start.Node) error {
	size := mcd.NodeID(e.Size())
	if size < 2 {
		return errors.New("one node is no ring (want two nodes or more)")
	}
	left, right := (e.Node()+size-1)%size, (e.Node()+1)%size
	p, err := e.OpenPort(port, mcd.PortOptions{})
	if err != nil {
		return err
	}
	barriers, err := barrier.Open(e.Endpoint, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	if err := g.Barrier(ctx); err != nil { // all ports are open now
		return err
	}
	now, next := make([]float64, cells+2), make([]float64, cells+2)
	for i := range now {
		now[i] = float64(e.Node()) // the ring starts as a staircase
	}
	var edges halo
	var waited time.Duration
	for step := range steps {
		// This node's left edge is the right ghost of its left neighbour.
		err := errors.Join(
			sendEdge(ctx, p, left, step, rightSide, now[1]),
			sendEdge(ctx, p, right, step, leftSide, now[cells]),
		)
		if err != nil {
			return err
		}
		ticket, err := g.Arrive() // this node's edges are sent
		if err != nil {
			return err
		}
		for i := 2; i < cells; i++ { // cells that need no neighbour
			next[i] = (now[i-1] + 2*now[i] + now[i+1]) / 4
		}
		start := time.Now()
		if err := ticket.Wait(ctx); err != nil {
			return err
		}
		waited += time.Since(start)
		if now[0], now[cells+1], err = edges.receive(ctx, p, step); err != nil {
			return err
		}
		for _, i := range []int{1, cells} {
			next[i] = (now[i-1] + 2*now[i] + now[i+1]) / 4
		}
		now, next = next, now
	}
	fmt.Printf("node %d: its edges are %.3f and %.3f; it waited for %.1f us a step\n",
		e.Node(), now[1], now[cells], float64(waited.Microseconds())/steps)
	return barriers.Close()
}

// The sides of a node's cells.
const (
	leftSide = iota
	rightSide
)

// edgeLen is the length of an edge's message: its step, the receiver's side, the cell.
const edgeLen = 4 + 1 + 8

// sendEdge sends one cell.
func sendEdge(ctx context.Context, p *mcd.Port, to mcd.NodeID, step int, side byte, value float64) error {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(step)), side)
	return p.Send(ctx, mcd.Addr{Node: to, Port: port}, binary.BigEndian.AppendUint64(b, math.Float64bits(value)))
}

// halo holds the edges received from the neighbours, by step (even or odd) and side. A neighbour
// that has left the barrier may send the next step's edge before this node receives this step's,
// but not the one after.
type halo struct {
	here  [2][2]bool
	value [2][2]float64
}

// receive waits for both edges of a step and returns them.
func (h *halo) receive(ctx context.Context, p *mcd.Port, step int) (left, right float64, err error) {
	now := step % 2
	for h.here[now] != [2]bool{true, true} {
		var b [edgeLen]byte
		// Lost edges are not sent again: all nodes sent theirs before the barrier ended.
		patience, cancel := context.WithTimeout(ctx, time.Second)
		n, from, err := p.Recv(patience, b[:])
		cancel()
		if err != nil {
			return 0, 0, fmt.Errorf("an edge of step %d: %w", step, err)
		}
		if n != edgeLen || b[4] > rightSide {
			return 0, 0, fmt.Errorf("an edge of step %d: %d bytes from %v", step, n, from)
		}
		of := int(binary.BigEndian.Uint32(b[:]))
		if of != step && of != step+1 {
			continue // a frame that came twice
		}
		parity, side := of%2, b[4]
		h.here[parity][side] = true
		h.value[parity][side] = math.Float64frombits(binary.BigEndian.Uint64(b[5:]))
	}
	h.here[now] = [2]bool{}
	return h.value[now][leftSide], h.value[now][rightSide], nil
}
