// Command survivor loses two nodes of five at once between two barriers. The others agree on which
// ones those are, make a group without them, the same on each, and go on with the
// same round.
//
//	go run ./examples/survivor
//	go build ./examples/survivor && rawlane run -n 5 ./survivor
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const (
	rounds      = 10
	peerTimeout = 2 * time.Second // more than a busy machine lets a process stand still
)

// victims are the nodes that die.
var victims = barrier.MaskOf(1, 2)

func main() { start.Main(start.Config{Nodes: 5, Limit: 20 * time.Second}, work) }

func work(ctx context.Context, e *start.Node) error {
	barriers, err := barrier.Open(e.Endpoint, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{PeerTimeout: peerTimeout})
	if err != nil {
		return err
	}
	if g, err = goThrough(ctx, e.Endpoint, g, 0); err != nil || g == nil {
		return err
	}
	fmt.Printf("node %d: %d rounds, at the end with %v\n", e.Node(), rounds, g.Members())
	return barriers.Close()
}

// goThrough goes through the rounds from one on, and returns the group that is left then; nil if
// this node has died.
func goThrough(ctx context.Context, e *mcd.Endpoint, g *barrier.Group, round int) (*barrier.Group, error) {
	for round < rounds {
		if victims.Has(e.Node()) && round == rounds/2 {
			fmt.Printf("node %d: dies in round %d\n", e.Node(), round)
			return nil, e.Close() // without leaving the group, like a crash
		}
		err := g.Barrier(ctx)
		switch {
		case err == nil:
			round++
		case errors.Is(err, barrier.ErrNodeDown):
			fmt.Printf("node %d: %v; goes on without\n", e.Node(), err)
			if g, err = g.Without(); err == nil {
				round, err = agree(ctx, e, g, round)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// agree returns the round that the survivors go on with: the first that one of them has not left.
// If nodes die in the midst of a barrier, some survivors may have left it, and are a round ahead.
func agree(ctx context.Context, e *mcd.Endpoint, survivors *barrier.Group, round int) (int, error) {
	dead := func(n mcd.Node) bool { return !slices.Contains(survivors.Members(), n.ID) }
	if err := e.SetNodes(slices.DeleteFunc(e.Nodes(), dead)); err != nil {
		return 0, err
	}
	x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{}) // among the nodes of the table
	if err != nil {
		return 0, err
	}
	all, err := x.Exchange(ctx, []byte{byte(round)})
	for _, other := range all {
		round = min(round, int(other[0]))
	}
	return round, errors.Join(err, x.Close())
}
