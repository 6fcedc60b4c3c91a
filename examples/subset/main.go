// Command subset runs barriers among parts of a group: the rows and the columns of a grid of nodes,
// at the same time. A mask of members tells them apart.
//
//	go run ./examples/subset
//	go build ./examples/subset && rawlane run -n 6 ./subset
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const columns = 3

func main() { start.Main(start.Config{Nodes: 2 * columns, Limit: 20 * time.Second}, run) }

func run(ctx context.Context, e *start.Node) error {
	barriers, err := barrier.Open(e.Endpoint, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	var row, column []mcd.NodeID // this node's
	for rank, node := range g.Members() {
		if rank/columns == g.Rank()/columns {
			row = append(row, node)
		}
		if rank%columns == g.Rank()%columns {
			column = append(column, node)
		}
	}
	inRow := barrier.Options{Members: barrier.MaskOf(row...)}
	inColumn := barrier.Options{Members: barrier.MaskOf(column...)}
	for range 100 {
		ticket, err := g.ArriveWith(inRow) // both at the same time
		if err != nil {
			return err
		}
		if err := g.BarrierWith(ctx, inColumn); err != nil {
			return err
		}
		if err := ticket.Wait(ctx); err != nil {
			return err
		}
	}
	if err := g.Barrier(ctx); err != nil { // all nodes
		return err
	}
	fmt.Printf("node %d passed %d barriers: with row %v, column %v, and all\n",
		e.Node(), g.Stats().Barriers, row, column)
	return barriers.Close()
}
