// Command phases changes its routes from phase to phase.
//
// Of eight nodes on two leaf switches, the even ones exchange blocks with their partners on the
// other leaf while the odd ones compute; then the odd ones exchange and the even ones compute. The
// default plan gives the even nodes one of the two paths and the odd ones the other, so in each
// phase one path would be crowded and the other idle. The program knows its phases: it computes a
// plan for each, and changes to it between two barriers, when the frames under way have been sent.
// It prints how many frames each path has carried in each phase.
//
//	go run ./examples/phases
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	blocks            = 100 // sent by each node in a phase
	port   mcd.PortID = 1
)

// phases, by number: in phase 0 the even nodes exchange, in phase 1 the odd ones.
var phases = []string{"even nodes", "odd nodes"}

// partner returns the node that a node exchanges blocks with in a phase; ok is false if it
// computes.
func partner(phase, node, nodes int) (other int, ok bool) {
	return (node + nodes/2) % nodes, node%2 == phase
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	network, err := topology.FatTree(2, 2, 4)
	if err != nil {
		return err
	}
	links, tops, err := build(network)
	if err != nil {
		return err
	}
	plans, err := prepare(network, links)
	if err != nil {
		return err
	}
	var table []mcd.Node
	for k, l := range links {
		table = append(table, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
	}
	var nodes []*mcd.Endpoint
	defer func() {
		for _, e := range nodes {
			_ = e.Close() // the program ends
		}
	}()
	routes := make([]*vlan.Table, len(links))
	for k, l := range links {
		if routes[k], err = vlan.NewTable(plans[0].Routes(k)); err != nil {
			return err
		}
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Router: routes[k]}, l)
		if err != nil {
			return err
		}
		nodes = append(nodes, e)
	}
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for k, e := range nodes {
		all.Go(func() { errs[k] = work(ctx, e, routes[k], plans, tops) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// prepare computes a plan for each phase, with few changes to the one before, and prints its
// benefit.
func prepare(network *topology.Topology, links []*fabric.Link) (plans []*plan.Plan, err error) {
	var macs []transport.MAC
	for _, l := range links {
		macs = append(macs, l.MAC())
	}
	plan, err := plan.RoundRobin(macs, []transport.VID{1, 2})
	if err != nil {
		return nil, err
	}
	for i, name := range phases {
		var demand traffic.Matrix
		for k := range macs {
			if other, ok := partner(i, k, len(macs)); ok {
				demand = append(demand, traffic.Flow{From: k, To: other, Rate: 400 * topology.Mbps})
			}
		}
		better, report, err := optimize.Plan(network, demand, plan, optimize.Options{})
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s: %v; the worst link is used to %.0f %% of its rate, and not to %.0f %%\n",
			name, report.Changes, 100*report.After.Worst, 100*report.Before.Worst)
		plan = better
		plans = append(plans, plan)
	}
	return plans, nil
}

// work is each node's part.
func work(ctx context.Context, e *mcd.Endpoint, routes *vlan.Table, plans []*plan.Plan, tops []*fabric.Switch) error {
	p, err := e.OpenPort(port, mcd.PortOptions{})
	if err != nil {
		return err
	}
	barriers, err := barrier.Open(e, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	self, size := int(e.Node()), len(e.Nodes())
	for i, name := range phases {
		other, active := partner(i, self, size)
		// Between the barriers no node sends blocks. So both ends of a pair change before the next
		// block, and no block is flooded.
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		change := func() error { return routes.Replace(plans[i].Routes(self)) }
		if err := e.Drain(ctx, change, mcd.NodeID(other)); err != nil {
			return err
		}
		before := carried(tops)
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		if active {
			if err := exchange(ctx, p, mcd.NodeID(other)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		if self == 0 {
			after := carried(tops)
			fmt.Printf("%s: the paths carried %d and %d frames, barriers included\n",
				name, after[0]-before[0], after[1]-before[1])
		}
	}
	return g.Barrier(ctx)
}

// carried returns how many frames each top switch has forwarded.
func carried(tops []*fabric.Switch) (frames []uint64) {
	for _, top := range tops {
		c := top.Counters()
		frames = append(frames, c.Forwarded+c.Flooded)
	}
	return frames
}

// exchange sends blocks to a partner, and receives one for each.
func exchange(ctx context.Context, p *mcd.Port, partner mcd.NodeID) error {
	block := make([]byte, 1000)
	for range blocks {
		if err := p.Send(ctx, mcd.Addr{Node: partner, Port: port}, block); err != nil {
			return err
		}
		if _, from, err := p.Recv(ctx, block); err != nil || from.Node != partner {
			return errors.Join(err, fmt.Errorf("a block from %v, want %d", from, partner))
		}
	}
	return nil
}

// build makes the network in memory. It returns the hosts' links and the top switches.
func build(t *topology.Topology) (links []*fabric.Link, tops []*fabric.Switch, err error) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		return nil, nil, err
	}
	var switches []*fabric.Switch
	for _, name := range t.Switches {
		switches = append(switches, f.AddSwitch(name))
	}
	vids := t.LinkVIDs()
	for i, l := range t.Links {
		if _, err := f.Connect(switches[l.A], switches[l.B], fabric.Trunk(vids[i]...)); err != nil {
			return nil, nil, err
		}
	}
	hosts := 0
	for _, h := range t.Hosts {
		l, err := f.Attach(switches[h.Switch], fabric.Station{})
		if err != nil {
			return nil, nil, err
		}
		links = append(links, l)
		hosts = max(hosts, h.Switch+1) // leaves come before tops
	}
	return links, switches[hosts:], nil
}
