//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// asNode, and the node's number, is the first argument of a node's process. Then come how many
// nodes and barriers there are, the loop, and who counts.
const asNode = "node:"

// The numbers of barriers.
const (
	measured = 0
	meeting  = 1 // before each measured one
)

type node struct {
	group *barrier.Group
	loop  string
	iters int
}

func runNode(number string, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("node %s: %d arguments", number, len(args))
	}
	self, err1 := strconv.Atoi(number)
	nodes, err2 := strconv.Atoi(args[0])
	iters, err3 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if self == 0 {
		runtime.GOMAXPROCS(1)
	}
	s, err := open(self, nodes, args[3])
	if err != nil {
		return fmt.Errorf("node %d: %w", self, err)
	}
	n := &node{loop: args[2], iters: iters}
	cfg := barrier.GroupConfig{Algorithm: schedule.Offload(), PeerTimeout: patience / 2}
	if n.group, err = s.Group(cfg); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if self == 0 {
		err = n.center(context.Background())
	} else {
		err = n.other(context.Background())
	}
	return errors.Join(err, s.Close())
}

// open opens a node, with a unit if it is the Center and that counts. What it opens ends with the
// process.
func open(self, count int, counter string) (*barrier.Service, error) {
	l, err := ring.Open(testbed.Interface(0), ring.Config{})
	if err != nil {
		return nil, err
	}
	cfg := mcd.Config{Node: mcd.NodeID(self)}
	for k := range count {
		cfg.Nodes = append(cfg.Nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	ep, err := mcd.Open(cfg, l)
	if err != nil {
		return nil, err
	}
	own := barrier.Config{}
	if self == 0 && counter == counters[0] {
		u, err := offload.Open(testbed.Interface(0))
		if err != nil {
			return nil, err
		}
		own.Unit = u
	}
	return barrier.Open(ep, own)
}

// warmUp is how many barriers are not counted.
const warmUp = 5

// center prints its time on the processor and its context switches for one barrier, without the
// meetings.
func (n *node) center(ctx context.Context) error {
	var cpu time.Duration
	var switches int64
	for i := range warmUp + n.iters {
		if err := n.group.BarrierWith(ctx, barrier.Options{Number: meeting}); err != nil {
			return err
		}
		before, err := harness.Usage()
		if err != nil {
			return err
		}
		ticket, err := n.group.Arrive()
		if err != nil {
			return err
		}
		n.work()
		if err := ticket.Wait(ctx); err != nil {
			return err
		}
		after, err := harness.Usage()
		if err != nil {
			return err
		}
		if i >= warmUp {
			cpu += after.CPU - before.CPU
			switches += after.Switches - before.Switches
		}
	}
	iters := float64(n.iters)
	fmt.Println(float64(cpu)/1000/iters, float64(switches)/iters)
	return nil
}

// work does what the Center does meanwhile.
func (n *node) work() {
	switch n.loop {
	case computes:
		for begun := time.Now(); time.Since(begun) < work; {
		}
	case sleeps:
		time.Sleep(work)
	}
}

// other prints its waits, in us.
func (n *node) other(ctx context.Context) error {
	samples := make([]time.Duration, 0, n.iters)
	for i := range warmUp + n.iters {
		if err := n.group.BarrierWith(ctx, barrier.Options{Number: meeting}); err != nil {
			return err
		}
		if n.loop != waits {
			time.Sleep(delay)
		}
		begun := time.Now()
		if err := n.group.Barrier(ctx); err != nil {
			return err
		}
		if i >= warmUp {
			samples = append(samples, time.Since(begun))
		}
	}
	for _, s := range samples {
		fmt.Println(float64(s) / 1000)
	}
	return nil
}
