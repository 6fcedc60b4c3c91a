package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

const (
	demoBarriers = 500
	// demoSilence is the time after which a silent node is down: short, for a short tour.
	demoSilence = 300 * time.Millisecond
	demoLast    = 3 // the node that dies
)

// demoAlgorithms are one algorithm of each kind.
var demoAlgorithms = []struct {
	algorithm schedule.Algorithm
	what      string
}{
	{schedule.Shuffle(), "in each phase all tell another one"},
	{schedule.Tree(3), "entries up a 3-ary tree, one multicast back"},
	{schedule.Concurrent(), "all tell node 0, one multicast back"},
	{schedule.TreeTree(2), "up a binary tree and down again, without multicast"},
	{schedule.Hierarchical(schedule.Star(), schedule.Tree(2), 2), "groups of two, then their leaders"},
}

// barriers passes each kind of barrier on all nodes, and measures them.
func (t *tour) barriers(ctx context.Context) error {
	t.say("\nA barrier of all %d nodes, all in this process (us):", len(t.nodes))
	t.say("%-24s %8s %7s", "# Algorithm", "mean", "frames")
	for _, a := range demoAlgorithms {
		groups, err := t.groups(barrier.GroupConfig{Algorithm: a.algorithm})
		if err != nil {
			return err
		}
		start := time.Now()
		err = atOnce(groups, func(g *barrier.Group) error {
			for range demoBarriers {
				if err := g.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		took := time.Since(start)
		if err = errors.Join(err, atOnce(groups, (*barrier.Group).Close)); err != nil {
			return err
		}
		t.say("%-24v %8.2f %7d  %s",
			a.algorithm, cli.Micros(took)/demoBarriers, a.algorithm.Frames(len(groups)), a.what)
	}
	return nil
}

// fuzzy shows a split-phase barrier among some of the nodes.
func (t *tour) fuzzy(ctx context.Context) error {
	groups, err := t.groups(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	some := barrier.Options{Number: 7, Members: barrier.MaskOf(1, 2)}
	ticket, err := groups[1].ArriveWith(some)
	if err != nil {
		return err
	}
	early, err := ticket.Done()
	if err != nil {
		return err
	}
	if err := groups[2].BarrierWith(ctx, some); err != nil {
		return err
	}
	if err := ticket.Wait(ctx); err != nil {
		return err
	}
	if early {
		return errors.New("node 1 could leave a barrier before node 2 had entered")
	}
	t.say("Fuzzy:     node 1 entered barrier 7 of nodes 1 and 2, and worked on; " +
		"it was complete when node 2 had entered")
	return atOnce(groups, (*barrier.Group).Close)
}

// death cuts a node off. The others notice, and go on without it.
func (t *tour) death(ctx context.Context) error {
	groups, err := t.groups(barrier.GroupConfig{PeerTimeout: demoSilence})
	if err != nil {
		return err
	}
	if err := atOnce(groups, func(g *barrier.Group) error { return g.Barrier(ctx) }); err != nil {
		return err
	}
	if err := t.nodes[demoLast].Close(); err != nil {
		return err
	}
	survivors := groups[:demoLast]
	said := make(chan error, len(survivors))
	err = atOnce(survivors, func(g *barrier.Group) error {
		err := g.Barrier(ctx)
		if !errors.Is(err, barrier.ErrNodeDown) {
			return fmt.Errorf("node %d died, and the barrier says: %w", demoLast, err)
		}
		said <- err
		return nil
	})
	if err != nil {
		return err
	}
	t.say("Death:     node %d was cut off; the others hear: %v", demoLast, <-said)
	return atOnce(survivors, func(g *barrier.Group) error {
		fewer, err := g.Without()
		if err != nil {
			return err
		}
		return errors.Join(fewer.Barrier(ctx), fewer.Close(), g.Close())
	})
}

// groups makes a group of all nodes at each node.
func (t *tour) groups(cfg barrier.GroupConfig) (groups []*barrier.Group, err error) {
	for _, s := range t.services {
		g, err := s.Group(cfg)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// atOnce runs f for all at once, and returns after the last.
func atOnce[T any](all []T, f func(T) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for k, one := range all {
		running.Go(func() { errs[k] = f(one) })
	}
	running.Wait()
	return errors.Join(errs...)
}
