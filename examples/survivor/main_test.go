package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// The root of a barrier dies in its midst: node 4 was released, and node 3 was not. Both go on with the
// round that node 3 has not left, and end in one group.
func TestAgree_WhenOneWasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var links []*fault.Link
		nodes := mcdtest.Open(t, 5, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
				lossy, err := fault.New(l, rand.New(rand.NewPCG(1, 2)), fault.Config{})
				if err != nil {
					t.Fatal(err)
				}
				links = append(links, lossy)
				return lossy
			},
		})
		groups := map[mcd.NodeID]*barrier.Group{}
		for _, node := range []mcd.NodeID{0, 3, 4} { // the victims of the example are not among them
			barriers, err := barrier.Open(nodes[node], barrier.Config{})
			if err != nil {
				t.Fatal(err)
			}
			groups[node], err = barriers.Group(barrier.GroupConfig{
				Members: barrier.MaskOf(0, 3, 4), Algorithm: schedule.Concurrent(), PeerTimeout: peerTimeout,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		gaveUp, giveUp := context.WithCancel(ctx)
		giveUp()
		if err := groups[3].Barrier(gaveUp); !errors.Is(err, barrier.ErrIncomplete) { // it has entered, and resumes later
			t.Fatal(err)
		}
		synctest.Wait()
		links[3].Cut(true)
		var released sync.WaitGroup
		for _, node := range []mcd.NodeID{0, 4} {
			released.Go(func() {
				if err := groups[node].Barrier(ctx); err != nil {
					t.Errorf("node %d: %v", node, err)
				}
			})
		}
		released.Wait()
		_ = nodes[0].Close()
		links[3].Cut(false)
		survivors := barrier.MaskOf(3, 4).Nodes()
		var going sync.WaitGroup
		for node, round := range map[mcd.NodeID]int{3: 0, 4: 1} {
			going.Go(func() {
				g, err := goThrough(ctx, nodes[node], groups[node], round)
				if err != nil {
					t.Errorf("node %d: %v", node, err)
				} else if got := g.Members(); !slices.Equal(got, survivors) {
					t.Errorf("node %d ends with %v, want %v", node, got, survivors)
				}
			})
		}
		going.Wait()
	})
}
