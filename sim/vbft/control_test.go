package vbft

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// stream keeps a flow busy, and knows what it has sent by which VID, as a host's counters do.
type stream struct {
	from    int
	to      int
	flow    *ether.Flow
	back    *ether.Flow // the other way: its acks go with what this one sends
	asked   int64
	counted uint64 // of what was sent, as of the last count
	sent    map[transport.VID]uint64
}

// feed gives the stream more to send than it can before the next feed.
func (s *stream) feed(bytes int64) {
	if missing := s.flow.Received() + bytes - s.asked; missing > 0 {
		s.flow.Send(missing)
		s.asked += missing
	}
}

// count counts as a vlan.Table does: frames from destination to payload, those that were sent
// again, and acks, one for every second segment.
func (s *stream) count(vid transport.VID) {
	const frame, ack = ether.MTU + transport.MaxHeaderLen, 70
	segments := uint64(s.flow.Received())/ether.Payload + s.flow.Counters().Retransmitted
	now := segments*frame + uint64(s.back.Received())/ether.Payload/2*ack
	s.sent[vid] += now - s.counted
	s.counted = now
}

// The controller on a network whose frames queue, get lost, flood and are sent again: on the
// paper's fat tree, with patterns of traffic that follow each other. After each change of the
// traffic it comes within a tenth of what the hosts' cables carry, and then leaves the routes
// alone; no pattern is ever carried worse than the plan did that the controller found, but for a
// moment. docs/simulation.md has its figures.
func TestControllerOnFrames(t *testing.T) {
	const phase = 25 * time.Second
	rate, patterns := 100*topology.Mbps, []string{"cg16", "crowded", "cg16"}
	if testing.Short() {
		rate, patterns = 30*topology.Mbps, patterns[:2]
	}
	const settled = 15 * time.Second // into a phase
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := string(page)
	network, err := topology.FatTree(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	network.SetRates(rate, rate)
	var macs []transport.MAC
	for k := range network.Hosts {
		macs = append(macs, ether.Address(k))
	}
	plan, err := plan.RoundRobin(macs, []transport.VID{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	var q sim.Queue
	n, err := ether.New(&q, ether.Config{Topology: network, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n.Apply(plan)
	c, err := control.NewController(q.Now(), network, plan, control.ControllerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for k, name := range patterns {
		begin := time.Duration(k) * phase
		streams := streamsOf(t, n, name)
		var first, last, worst float64
		changes, late := 0, 0
		for at := begin; at < begin+phase; at += time.Second {
			was := total(streams)
			for step := at; step < at+time.Second; step += 10 * time.Millisecond {
				for _, s := range streams {
					s.feed(1 << 20)
				}
				q.Run(monotime.At(step + 10*time.Millisecond))
			}
			mbps := float64(total(streams)-was) / 1e6
			if at == begin+time.Second { // slow start apart
				first, worst = mbps, mbps
			}
			worst, last = min(worst, mbps), mbps
			for _, d := range decide(t, c, q.Now(), streams) {
				n.SetRoute(d.Change.Pair, d.Change.To)
				changes++
				if at >= begin+settled {
					late++
				}
			}
		}
		most := float64(len(streams)) * float64(rate) / 8e6 * ether.Payload / ether.FullFrame
		row := fmt.Sprintf("| %.1f MB/s | %.1f MB/s | %.1f MB/s | %d |", first, last, most, changes)
		if !testing.Short() && !strings.Contains(documented, row) {
			t.Errorf("docs/simulation.md has no %s of %s", row, name)
		}
		t.Logf("%s: %.1f MB/s at first, %.1f at worst, %.1f at last of %.1f; %d pairs changed", name, first, worst, last, most, changes)
		if last < 0.9*most {
			t.Errorf("%s: %.1f MB/s at last, of %.1f that the hosts' cables carry", name, last, most)
		}
		if first < 0.9*most && changes == 0 {
			t.Errorf("%s: %.1f MB/s at first, of %.1f, and nothing was changed", name, first, most)
		}
		if worst < 0.8*first {
			t.Errorf("%s: %.1f MB/s at worst, and %.1f at first", name, worst, first)
		}
		if late > 0 {
			t.Errorf("%s: %d changes when the traffic had been the same for %v", name, late, settled)
		}
	}
}

// streamsOf are the flows of a pattern. The crowded one is of four pairs that meet in one leaf,
// two with the same VID each by the default plan.
func streamsOf(t *testing.T, n *ether.Network, name string) (all []*stream) {
	pairs := []plan.Pair{{A: 0, B: 8}, {A: 4, B: 9}, {A: 1, B: 10}, {A: 5, B: 11}}
	if name != "crowded" {
		pattern, err := traffic.Pattern(name, 16)
		if err != nil {
			t.Fatal(err)
		}
		pairs = pattern.Pairs()
	}
	for _, p := range pairs {
		there, back := n.NewFlow(p.A, p.B, nil), n.NewFlow(p.B, p.A, nil)
		all = append(all,
			&stream{from: p.A, to: p.B, flow: there, back: back, sent: map[transport.VID]uint64{}},
			&stream{from: p.B, to: p.A, flow: back, back: there, sent: map[transport.VID]uint64{}})
	}
	return all
}

func total(streams []*stream) (bytes int64) {
	for _, s := range streams {
		bytes += s.flow.Received()
	}
	return bytes
}

// decide tells the controller what each host has sent, and returns its decisions.
func decide(t *testing.T, c *control.Controller, now monotime.Time, streams []*stream) []control.Decision {
	plan := c.Plan()
	samples := make(map[int][]control.SentTo)
	for k := range plan.Nodes {
		samples[k] = nil
	}
	for _, s := range streams {
		s.count(plan.PairVID(s.from, s.to))
		for vid, bytes := range s.sent {
			samples[s.from] = append(samples[s.from], control.SentTo{Node: s.to, VID: vid, Bytes: bytes})
		}
	}
	for k := range plan.Nodes {
		if err := c.Observe(control.Sample{Node: k, At: now, Sent: samples[k]}); err != nil {
			t.Fatal(err)
		}
	}
	return c.Advance(now, nil)
}
