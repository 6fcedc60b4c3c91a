// Command subset has barriers among parts of a group: rows and columns of a grid of nodes, at the same time and with
// the same number. A mask tells them apart.
//
//	go run ./examples/subset
//	go build ./examples/subset && rawlane run -n 6 ./subset
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/examples/internal/attach"
	"github.com/rawlane/rawlane/mcd"
)

const columns = 3

func main() { attach.Main(2*columns, 20*time.Second, run) }

func run(ctx context.Context, e *mcd.Endpoint) error {
	g, err := barrier.NewGroup(e, barrier.Config{})
	if err != nil {
		return err
	}
	var row, column []int // ranks that share them with this one
	for rank := range g.Size() {
		if rank/columns == g.Rank()/columns {
			row = append(row, rank)
		}
		if rank%columns == g.Rank()%columns {
			column = append(column, rank)
		}
	}
	inRow, inColumn := barrier.Options{Members: barrier.Of(row...)}, barrier.Options{Members: barrier.Of(column...)}
	for range 100 {
		ticket, err := g.ArriveWith(inRow) // both at once
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
	if err := g.Barrier(ctx); err != nil { // and all together
		return err
	}
	fmt.Printf("node %d passed %d barriers: with row %v, column %v, and all\n", e.Node(), g.Stats().Barriers, row, column)
	return g.Close()
}
