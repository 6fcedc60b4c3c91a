package demo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// rounds is the number of round trips of each of two pairs.
const rounds = 50

// paths sends the same message by two VIDs, and shows its path.
func (t *tour) paths(ctx context.Context) error {
	before, to := t.tables[0].Routes(), t.nodes[3].MAC(0)
	for _, vid := range []transport.VID{1, 2} {
		tag := transport.Tagged(transport.Tag{VID: vid, PCP: 5})
		if err := t.tables[0].Set(vlan.Route{Dst: to, OptionalTag: tag}); err != nil {
			return err
		}
		passed := t.net.Passed()
		got, err := t.deliver(ctx, 0, 3, []byte("which way?"))
		if err != nil {
			return err
		}
		if !got.Tagged || got.Tag.VID != vid {
			return fmt.Errorf("sent with VID %d, received with %v (tagged: %v)", vid, got.Tag, got.Tagged)
		}
		t.say("Paths:     0 -> 3 with %v%s", got.Tag, t.net.Way(passed))
	}
	return t.tables[0].Replace(before)
}

// reroute makes two pairs of nodes collide on one path, finds a better plan from the counters, and
// changes to it while the program runs.
func (t *tour) reroute(ctx context.Context) error {
	network, err := topology.FatTree(2, 2, 2) // like the fabric
	if err != nil {
		return err
	}
	pl := t.onePath()
	if err := t.follow(ctx, pl); err != nil {
		return err
	}
	t.say("\nRoutes:    nodes 0 and 2, and 1 and 3, send each other %d messages, all with VID 1", 2*rounds)
	if err := t.talk(ctx); err != nil {
		return err
	}
	better, report, err := optimize.Plan(network, t.demand(), pl, optimize.Options{})
	if err != nil {
		return err
	}
	if report.After.Worst >= report.Before.Worst {
		return fmt.Errorf("no plan is better than one path: %+v", report)
	}
	for _, c := range report.Changes {
		t.say("Optimize:  %v: the worst link would carry %.0f %% of what it does now",
			c, 100*report.After.Worst/report.Before.Worst)
	}
	if err := t.follow(ctx, better); err != nil {
		return err
	}
	t.say("Re-route:  done, after a drain: no message overtakes another")
	if err := t.talk(ctx); err != nil {
		return err
	}
	var rates []float64
	for _, p := range []*plan.Plan{pl, better} {
		rate, err := throughput(network, p)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	t.say("The gain:  on links of 1 Gb/s, in virtual time, two streams carry %.0f MB/s before and %.0f MB/s after",
		rates[0], rates[1])
	return nil
}

// onePath is the plan with VID 1 for all pairs.
func (t *tour) onePath() *plan.Plan {
	p := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for k, e := range t.nodes {
		p.Nodes = append(p.Nodes, plan.Node{Name: fmt.Sprintf("node%d", k), MAC: e.MAC(0), VID: 1})
	}
	return p
}

// follow makes the tables of all nodes follow a plan, after all earlier messages have arrived.
func (t *tour) follow(ctx context.Context, p *plan.Plan) error {
	for k, e := range t.nodes {
		var others []mcd.NodeID
		for other := range t.nodes {
			if other != k {
				others = append(others, mcd.NodeID(other))
			}
		}
		change := func() error { return t.tables[k].Replace(p.Routes(k)) }
		if err := e.Drain(ctx, change, others...); err != nil {
			return fmt.Errorf("node %d: %w", k, err)
		}
	}
	return nil
}

// talk sends messages to and fro in the pairs 0-2 and 1-3, and prints their paths.
func (t *tour) talk(ctx context.Context) error {
	passed, sent := t.net.Passed(), t.sent()
	for range rounds {
		for _, way := range [][2]int{{0, 2}, {1, 3}, {2, 0}, {3, 1}} {
			if _, err := t.deliver(ctx, way[0], way[1], make([]byte, 1000)); err != nil {
				return err
			}
		}
	}
	var ways []string
	for i, top := range t.net.Tops {
		ways = append(ways, fmt.Sprintf("%s %d", top.Name, top.Frames()-passed[i]))
	}
	for _, f := range t.sent() {
		for _, was := range sent {
			if was.from == f.from && was.to == f.to && was.vid == f.vid {
				f.frames -= was.frames
			}
		}
		if f.from < f.to && f.frames > 0 {
			ways = append(ways, fmt.Sprintf("%d -> %d with VID %d %d", f.from, f.to, f.vid, f.frames))
		}
	}
	t.say("Frames:    %s", strings.Join(ways, ", "))
	return nil
}

// flow is what a node has sent to another with a VID, by its counters.
type flow struct {
	from, to      int
	vid           transport.VID
	frames, bytes uint64
}

func (t *tour) sent() (all []flow) {
	for from, table := range t.tables {
		for _, s := range table.Counts() {
			to := slices.IndexFunc(t.nodes, func(e *mcd.Endpoint) bool { return e.MAC(0) == s.Dst })
			if to >= 0 {
				all = append(all, flow{from, to, s.VID, s.Frames, s.Bytes})
			}
		}
	}
	return all
}

// demand is the traffic until now, in any unit.
func (t *tour) demand() traffic.Matrix {
	var demand traffic.Matrix
	for _, f := range t.sent() {
		demand = append(demand, traffic.Flow{From: f.from, To: f.to, Rate: topology.Rate(f.bytes)})
	}
	return demand.Normalise()
}

// throughput is what two endless streams, 0 to 2 and 1 to 3, carry together in MB/s on a network of
// 1 Gb/s links, in virtual time.
func throughput(network *topology.Topology, p *plan.Plan) (float64, error) {
	const begin, end = 200 * time.Millisecond, 700 * time.Millisecond // slow start apart
	var q sim.Queue
	n, err := ether.New(&q, ether.Config{Topology: network, Seed: 1})
	if err != nil {
		return 0, err
	}
	n.Apply(p)
	streams := []*ether.Flow{n.NewFlow(0, 2, nil), n.NewFlow(1, 3, nil)}
	for _, s := range streams {
		s.Send(math.MaxInt64)
	}
	var start monotime.Time
	q.Run(start.Add(begin))
	was := n.Flows().Received
	q.Run(start.Add(end))
	return float64(n.Flows().Received-was) / (end - begin).Seconds() / 1e6, nil
}
