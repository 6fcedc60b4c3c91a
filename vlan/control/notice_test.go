package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/internal/vlantest"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// constant has nodes send to others at rates that stay the same.
type constant struct {
	t       *testing.T
	control *control.Controller
	now     monotime.Time
	rates   map[[2]int]topology.Rate
	sent    map[int]map[counterKey]uint64
}

// period has one pass, and returns what is decided and noticed in it.
func (c *constant) period() (decisions []control.Decision, notices []string) {
	c.now = c.now.Add(period)
	for ends, rate := range c.rates {
		key := counterKey{ends[1], c.control.Plan().PairVID(ends[0], ends[1])}
		if c.sent[ends[0]] == nil {
			c.sent[ends[0]] = make(map[counterKey]uint64)
		}
		c.sent[ends[0]][key] += uint64(rate / 8)
	}
	for node := range c.control.Plan().Nodes {
		s := control.Sample{Node: node, At: c.now}
		for key, bytes := range c.sent[node] {
			s.Sent = append(s.Sent, control.SentTo{Node: key.to, VID: key.vid, Bytes: bytes})
		}
		if err := c.control.Observe(s); err != nil {
			c.t.Fatal(err)
		}
	}
	decisions = c.control.Advance(c.now, nil)
	return decisions, c.control.Notices()
}

func newConstant(t *testing.T, top *topology.Topology, p *plan.Plan, rates map[[2]int]topology.Rate) *constant {
	t.Helper()
	c := &constant{t: t, now: monotime.At(time.Hour), rates: rates, sent: make(map[int]map[counterKey]uint64)}
	var err error
	if c.control, err = control.NewController(c.now, top, p, control.ControllerConfig{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// cut takes a leaf's cable from a VLAN.
func cut(top *topology.Topology, vlan, leaf int) {
	var left []int
	for _, l := range top.VLANs[vlan].Links {
		if top.Links[l].A != leaf {
			left = append(left, l)
		}
	}
	top.VLANs[vlan].Links = left
}

// Pairs that talk and that no VID connects keep no other pair from being relieved. They are told of
// once, and again under another plan.
func TestControlLeavesOutWhatNoVIDConnects(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x2x4")
	cut(top, 0, 3)
	cut(top, 1, 3)
	p := vlantest.RandomPlan(top, 0)
	share := map[plan.Pair]transport.VID{{A: 0, B: 4}: 1, {A: 1, B: 5}: 1}
	p.Pairs = share
	half := topology.Gbps / 2
	c := newConstant(t, top, p, map[[2]int]topology.Rate{{0, 4}: half, {1, 5}: half, {8, 13}: 3000, {14, 9}: 3000})
	var decisions []control.Decision
	var notices []string
	for range 10 {
		d, n := c.period()
		decisions, notices = append(decisions, d...), append(notices, n...)
	}
	if len(decisions) != 1 || share[decisions[0].Change.Pair] != 1 {
		t.Errorf("decisions %v, want that one of the pairs moves which share a link", decisions)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], ": 8-13 and 9-14: left out") {
		t.Errorf("noticed %q, want the pairs that are cut off, once", notices)
	}
	if _, u := c.control.Worst(); u < 0.49 || u > 0.51 {
		t.Errorf("worst link %v, want 0.50", u)
	}
	if err := c.control.Replace(c.control.Plan()); err != nil {
		t.Fatal(err)
	}
	if _, n := c.period(); len(n) != 1 {
		t.Errorf("another plan: noticed %q, want the pairs again", n)
	}
}

// A pair whose VID does not connect it gets one that does, though the worst link becomes worse by
// that, also while another pair has none.
func TestControlConnectsWhatCanBe(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x2x4")
	cut(top, 0, 3)
	cut(top, 1, 3)
	cut(top, 0, 2)
	p := vlantest.RandomPlan(top, 0)
	cutOff := plan.Pair{A: 0, B: 8}
	p.Pairs = map[plan.Pair]transport.VID{cutOff: 1, {A: 1, B: 5}: 2}
	c := newConstant(t, top, p, map[[2]int]topology.Rate{{0, 8}: 6e8, {1, 5}: 5e8, {9, 13}: 3000})
	var first []control.Decision
	for range 10 {
		if d, _ := c.period(); len(first) == 0 {
			first = d
		}
	}
	if want := (plan.Change{Pair: cutOff, From: 1, To: 2}); len(first) != 1 || first[0].Change != want {
		t.Errorf("first %v, want %v", first, want)
	}
}

// A plan from outside that leaves a pair without a VID, as it has fewer, does not stop the control
// though the pair was in the average traffic.
func TestControlGoesOnWhereAPlanCutsAPairOff(t *testing.T) {
	top := vlantest.Network(t, "vbft:2x3x4")
	for _, v := range []int{0, 1} { // leaf 1 is in the last VLAN alone, but for what leaf 0 has to itself
		top.VLANs[v].Links = top.VLANs[v].Links[:1]
	}
	p := vlantest.RandomPlan(top, 0)
	p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 4}: 3}
	c := newConstant(t, top, p, map[[2]int]topology.Rate{{0, 4}: topology.Gbps / 2})
	for range 4 {
		if d, n := c.period(); len(d)+len(n) > 0 {
			t.Fatalf("%v, noticed %q, want nothing", d, n)
		}
	}
	fewer := *p
	fewer.VIDs, fewer.Pairs = []transport.VID{1, 2}, nil
	for k := range fewer.Nodes {
		fewer.Nodes[k].VID = 1
	}
	if err := c.control.Replace(&fewer); err != nil {
		t.Fatal(err)
	}
	_, n := c.period()
	if len(n) != 1 || !strings.Contains(n[0], ": 0-4: left out") || len(c.control.Traffic()) > 0 {
		t.Errorf("noticed %q, traffic %v; want the pair noticed, and left out", n, c.control.Traffic())
	}
}

// Where the network is five times as fast as the topology says, two flows that share a link are
// parted all the same, and the nodes told of, once.
func TestControlOfANetworkThatIsFasterThanItsTopology(t *testing.T) {
	top := vlantest.Network(t, "vbft:2x2x2")
	p := vlantest.RandomPlan(top, 0)
	share := map[plan.Pair]transport.VID{{A: 0, B: 2}: 1, {A: 1, B: 3}: 1}
	p.Pairs = share
	c := newConstant(t, top, p, map[[2]int]topology.Rate{{0, 2}: 5 * topology.Gbps, {1, 3}: 5 * topology.Gbps})
	var decisions []control.Decision
	var notices []string
	for range 10 {
		d, n := c.period()
		decisions, notices = append(decisions, d...), append(notices, n...)
	}
	if len(decisions) != 1 || share[decisions[0].Change.Pair] != 1 {
		t.Errorf("decisions %v, want that one pair moves", decisions)
	}
	const want = "these nodes send more than their cables carry: 0 (5.0 times 1G) and 1 (5.0 times 1G): are the topology's rates right?"
	if len(notices) != 1 || notices[0] != want {
		t.Errorf("noticed %q, want %q once", notices, want)
	}
}

// What a node sends goes on while its manager is gone: nobody is moved into its way.
func TestControlGoesOnAroundAMissingNode(t *testing.T) {
	top := vlantest.Network(t, "vbft:2x2x4")
	p := vlantest.RandomPlan(top, 0)
	p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 4}: 1, {A: 1, B: 5}: 2, {A: 2, B: 6}: 2}
	m := newModel(top, p, control.ControllerConfig{})
	m.wants(traffic.Matrix{{From: 0, To: 4, Rate: topology.Gbps}, {From: 1, To: 5, Rate: topology.Gbps / 2}, {From: 2, To: 6, Rate: topology.Gbps / 2}})
	for range 10 {
		m.run(period)
		m.decide()
	}
	for range 200 {
		m.run(period)
		if d := m.decide(0); len(d) > 0 {
			t.Fatalf("%v: node 0 fills the other link", d)
		}
	}
}
