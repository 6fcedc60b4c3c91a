package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// endpoints makes a cluster in memory. On real machines, each process opens its own link and
// finds the others: see package cluster.
func endpoints(n int) []*mcd.Endpoint {
	eps, _, err := mcdtest.Start(n, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return eps
}

// barriers opens the barrier service of an endpoint.
func barriers(ep *mcd.Endpoint) *barrier.Service {
	s, err := barrier.Open(ep, barrier.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return s
}

func Example() {
	var nodes sync.WaitGroup
	for _, ep := range endpoints(4) {
		nodes.Go(func() {
			defer ep.Close()
			g, err := barriers(ep).Group(barrier.GroupConfig{})
			if err != nil {
				log.Fatal(err)
			}
			defer g.Close()
			time.Sleep(time.Duration(ep.Node()) * time.Millisecond)
			if err := g.Barrier(context.Background()); err != nil {
				log.Fatal(err)
			}
			if g.Rank() == 0 {
				fmt.Println("all", g.Size(), "nodes have come")
			}
		})
	}
	nodes.Wait()
	// Output: all 4 nodes have come
}

// A fuzzy barrier: work that other nodes need comes before Arrive, work that needs other nodes
// after Wait, and all other work between them.
func ExampleGroup_Arrive() {
	var nodes sync.WaitGroup
	for _, ep := range endpoints(2) {
		nodes.Go(func() {
			defer ep.Close()
			g, err := barriers(ep).Group(barrier.GroupConfig{Algorithm: schedule.Shuffle()})
			if err != nil {
				log.Fatal(err)
			}
			defer g.Close()
			ticket, err := g.Arrive()
			if err != nil {
				log.Fatal(err)
			}
			work := 0
			for done := false; !done; {
				work++
				if done, err = ticket.Done(); err != nil {
					log.Fatal(err)
				}
			}
			if err := ticket.Wait(context.Background()); err != nil {
				log.Fatal(err)
			}
			if g.Rank() == 0 {
				fmt.Println("worked meanwhile:", work > 0)
			}
		})
	}
	nodes.Wait()
	// Output: worked meanwhile: true
}

// Some of the members, with a number of their own.
func ExampleGroup_BarrierWith() {
	var nodes sync.WaitGroup
	for _, ep := range endpoints(4) {
		nodes.Go(func() {
			defer ep.Close()
			g, err := barriers(ep).Group(barrier.GroupConfig{})
			if err != nil {
				log.Fatal(err)
			}
			defer g.Close()
			even := barrier.Options{Number: 7, Members: barrier.MaskOf(0, 2)}
			if g.Rank()%2 == 0 {
				if err := g.BarrierWith(context.Background(), even); err != nil {
					log.Fatal(err)
				}
			}
			if g.Rank() == 2 {
				fmt.Println("nodes", even.Members, "have met")
			}
			if err := g.Barrier(context.Background()); err != nil { // all of them
				log.Fatal(err)
			}
		})
	}
	nodes.Wait()
	// Output: nodes {0 2} have met
}

// Two nodes die at once. The others agree on which ones, and go on without them.
func ExampleGroup_Without() {
	var nodes sync.WaitGroup
	for _, ep := range endpoints(5) {
		nodes.Go(func() {
			defer ep.Close()
			g, err := barriers(ep).Group(barrier.GroupConfig{PeerTimeout: 500 * time.Millisecond})
			if err != nil {
				log.Fatal(err)
			}
			if ep.Node() == 1 || ep.Node() == 3 {
				return // without a goodbye
			}
			defer g.Close()
			err = g.Barrier(context.Background())
			var down *barrier.NodeDownError
			if !errors.As(err, &down) {
				log.Fatal(err)
			}
			rest, err := g.Without()
			if err != nil {
				log.Fatal(err)
			}
			defer rest.Close()
			if err := rest.Barrier(context.Background()); err != nil {
				log.Fatal(err)
			}
			if ep.Node() == 0 {
				fmt.Println(down)
				fmt.Println("nodes", rest.Members(), "go on")
			}
		})
	}
	nodes.Wait()
	// Output:
	// barrier 0, generation 1: nodes 1, 3: silent for more than 500ms
	// nodes [0 2 4] go on
}

// A wait that is given up names the nodes awaited. A status request asks all members.
func ExampleGroup_Status() {
	eps := endpoints(3)
	var groups []*barrier.Group
	for _, ep := range eps {
		defer ep.Close()
		g, err := barriers(ep).Group(barrier.GroupConfig{Algorithm: schedule.Concurrent()})
		if err != nil {
			log.Fatal(err)
		}
		groups = append(groups, g)
	}
	if _, err := groups[2].Arrive(); err != nil {
		log.Fatal(err)
	}
	ticket, err := groups[0].Arrive()
	if err != nil {
		log.Fatal(err)
	}
	members, err := groups[0].Status(context.Background(), 0)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	fmt.Println(ticket.Wait(ctx)) // node 2 has answered Status behind its arrival
	for _, m := range members {
		fmt.Println("node", m.Node, m.Presence)
	}
	// Output:
	// barrier 0, generation 1: waiting for node 1: context deadline exceeded
	// node 0 entered
	// node 1 not entered
	// node 2 entered
}

// A trace names the node that was last.
func ExampleGroup_Trace() {
	var groups []*barrier.Group
	for _, ep := range endpoints(3) {
		defer ep.Close()
		g, err := barriers(ep).Group(barrier.GroupConfig{Algorithm: schedule.Concurrent()})
		if err != nil {
			log.Fatal(err)
		}
		groups = append(groups, g)
	}
	if _, err := groups[1].Arrive(); err != nil {
		log.Fatal(err)
	}
	ticket, err := groups[0].Arrive()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := groups[0].Status(context.Background(), 0); err != nil { // node 1 answers behind its arrival
		log.Fatal(err)
	}
	if _, err := groups[2].Arrive(); err != nil {
		log.Fatal(err)
	}
	if err := ticket.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	trace, _ := groups[0].Trace(0)
	late := slices.MaxFunc(trace.Steps[0].Arrivals, func(a, b barrier.TraceArrival) int { return int(a.At - b.At) })
	fmt.Println("the last one was node", late.Node)
	// Output: the last one was node 2
}
