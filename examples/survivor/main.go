// Command survivor loses two nodes of five at once between two barriers. The others agree on which
// ones those are, make a group without them, the same on each, and go on.
//
//	go run ./examples/survivor
//	go build ./examples/survivor && rawlane run -n 5 ./survivor
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/examples/internal/attach"
	"github.com/rawlane/rawlane/mcd"
)

const rounds = 10

// victims are the nodes that die.
var victims = barrier.MaskOf(1, 2)

func main() { attach.Main(5, 20*time.Second, work) }

func work(ctx context.Context, e *mcd.Endpoint) error {
	barriers, err := barrier.Open(e, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{PeerTimeout: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	for round := 0; round < rounds; round++ {
		if victims.Has(e.Node()) && round == rounds/2 {
			fmt.Printf("node %d: dies in round %d\n", e.Node(), round)
			return e.Close() // without leaving the group, like a crash
		}
		err := g.Barrier(ctx)
		if errors.Is(err, barrier.ErrNodeDown) {
			fmt.Printf("node %d: %v; goes on without\n", e.Node(), err)
			if g, err = g.Without(); err == nil {
				err = g.Barrier(ctx) // repeat this round
			}
		}
		if err != nil {
			return err
		}
	}
	fmt.Printf("node %d: %d rounds, at the end with %v\n", e.Node(), rounds, g.Members())
	return barriers.Close()
}
