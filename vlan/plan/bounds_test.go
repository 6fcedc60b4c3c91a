package plan

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/topology"
)

func someMAC(i int) transport.MAC { return transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)} }

// What the documents allow is valid to the last one, and one more is not.
func TestBoundsOfAPlan(t *testing.T) {
	valid := func(edit func(*Plan)) error {
		p := &Plan{VIDs: []transport.VID{1}, Nodes: []Node{{MAC: someMAC(0), VID: 1}, {MAC: someMAC(1), VID: 1}}}
		edit(p)
		return p.Validate()
	}
	for _, c := range []struct {
		name string
		edit func(*Plan, int)
		most int
	}{
		{"a name's bytes", func(p *Plan, n int) { p.Nodes[0].Name = strings.Repeat("x", n) }, maxName},
		{"a topology's bytes", func(p *Plan, n int) { p.Topology = strings.Repeat("x", n) }, maxName},
		{"VIDs", func(p *Plan, n int) {
			for v := transport.VID(2); len(p.VIDs) < n; v++ {
				p.VIDs = append(p.VIDs, v)
			}
		}, MaxVIDs},
		{"a priority", func(p *Plan, n int) { p.Nodes[0].Priority = n }, maxPriority},
		{"a negative priority", func(p *Plan, n int) { p.Nodes[0].Priority = -n }, maxPriority},
	} {
		if err := valid(func(p *Plan) { c.edit(p, c.most) }); err != nil {
			t.Errorf("%s, %d: %v", c.name, c.most, err)
		}
		if err := valid(func(p *Plan) { c.edit(p, c.most+1) }); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s, %d: %v", c.name, c.most+1, err)
		}
	}
}

// 524,288 pairs may be listed.
func TestBoundOfPairs(t *testing.T) {
	const most = 524288
	p := &Plan{VIDs: []transport.VID{1, 2}}
	for i := range 1100 {
		p.Nodes = append(p.Nodes, Node{MAC: someMAC(i), VID: 1})
	}
	p.Pairs = make(map[Pair]transport.VID, most+1)
	for a := 0; len(p.Pairs) < most; a++ {
		for b := a + 1; b < len(p.Nodes) && len(p.Pairs) < most; b++ {
			p.Pairs[Pair{a, b}] = 2
		}
	}
	if err := p.Validate(); err != nil {
		t.Errorf("%d pairs: %v", len(p.Pairs), err)
	}
	if q, err := p.With(map[Pair]transport.VID{{1098, 1099}: 2}); q != nil || !errors.Is(err, ErrInvalid) {
		t.Errorf("one more by With: %v, %v", q != nil, err)
	}
	p.Pairs[Pair{1098, 1099}] = 2
	if err := p.Validate(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "524289 pairs: want at most 524288") {
		t.Errorf("%d pairs: %v", len(p.Pairs), err)
	}
}

// Each plan that is valid can be read from what is written of it: also one with all that there may
// be, and nothing short about it.
func TestTheLargestPlanFitsItsFile(t *testing.T) {
	p := &Plan{Topology: strings.Repeat("'", maxName), PCP: 7, Pairs: make(map[Pair]transport.VID, MaxPairs)}
	for i := range MaxVIDs {
		p.VIDs = append(p.VIDs, transport.MaxVID-transport.VID(i))
	}
	for i := range MaxNodes {
		name := fmt.Sprintf("%0*dx", maxName-1, i)
		p.Nodes = append(p.Nodes, Node{Name: name, MAC: someMAC(i), VID: transport.MaxVID, Priority: -maxPriority})
	}
	for a := 1000; len(p.Pairs) < MaxPairs; a++ {
		for b := a + 1; b < MaxNodes && len(p.Pairs) < MaxPairs; b++ {
			p.Pairs[Pair{a, b}] = transport.MaxVID
		}
	}
	if n, err := p.WriteTo(io.Discard); err != nil || n > MaxFile {
		t.Errorf("%d bytes, of %d that are read; %v", n, MaxFile, err)
	}
}

// A plan without nodes has that one fault: its pairs are none of their own.
func TestPairsOfNoNodes(t *testing.T) {
	p := &Plan{VIDs: []transport.VID{1}, Pairs: map[Pair]transport.VID{{0, 1}: 1}}
	if err := p.Validate(); err == nil || strings.Contains(err.Error(), "0-1") {
		t.Errorf("%v", err)
	}
	p = &Plan{VIDs: []transport.VID{1, 2}, Nodes: []Node{{MAC: someMAC(0), VID: 1}}, Pairs: map[Pair]transport.VID{{0, 1}: 2}}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "0-1: want two nodes of 0 to 0") {
		t.Errorf("%v", err)
	}
}

func TestParsePairBounds(t *testing.T) {
	const most = int64(math.MaxInt32)
	for _, text := range []string{fmt.Sprintf("0-%d", most), fmt.Sprintf("%d-0", most)} {
		if p, err := ParsePair(text); err != nil || p != (Pair{0, math.MaxInt32}) {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for _, text := range []string{fmt.Sprintf("0-%d", most+1), fmt.Sprintf("%d-0", most+1)} {
		if _, err := ParsePair(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// A difference is empty if nothing differs, however much comes and goes.
func TestDifferenceIsEmpty(t *testing.T) {
	for n := range 128 {
		var d Difference
		has := func(bit int) bool { return n>>bit&1 == 1 }
		if has(0) {
			d.Pairs = []Change{{}}
		}
		if has(1) {
			d.Defaults = []NodeChange{{}}
		}
		if has(2) {
			d.Added = []Node{{}}
		}
		if has(3) {
			d.Removed = []Node{{}}
		}
		if has(4) {
			d.OldPCP = 1
		}
		if has(5) {
			d.AddedVIDs = []transport.VID{1}
		}
		if has(6) {
			d.RemovedVIDs = []transport.VID{1}
		}
		if d.Empty() != (n == 0) {
			t.Errorf("%+v: empty %v", d, d.Empty())
		}
	}
}

func TestNodesAreFoundByNumber(t *testing.T) {
	p := &Plan{VIDs: []transport.VID{1}, Nodes: []Node{{MAC: someMAC(0), VID: 1}, {MAC: someMAC(1), VID: 1}}}
	for text, want := range map[string]int{"0": 0, "1": 1} {
		if n, err := p.FindNode(text); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"-1", "2", ""} {
		if _, err := p.FindNode(text); !errors.Is(err, ErrUnknownNode) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if vid, err := p.VID(someMAC(8), someMAC(9)); vid != 0 || !errors.Is(err, ErrUnknownNode) {
		t.Errorf("of two strangers: %d, %v", vid, err)
	}
	if vid, err := p.VID(someMAC(0), someMAC(0)); vid != 0 || err == nil {
		t.Errorf("of a node and itself: %d, %v", vid, err)
	}
}

// A check names so many faults, says that there are more, and counts things in words.
func TestCheckNamesSomeFaults(t *testing.T) {
	network, err := topology.Parse("flat:3")
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{VIDs: []transport.VID{1}, Nodes: []Node{{MAC: someMAC(0), VID: 1}}}
	if err := p.Check(network); err == nil || !strings.Contains(err.Error(), "1 node, but the topology has 3 hosts") {
		t.Errorf("%v", err)
	}
	// Leaves without cables: no pair of hosts is connected.
	apart, err := topology.Parse("vbft:8x8x1")
	if err != nil {
		t.Fatal(err)
	}
	apart.VLANs[0].Links = nil
	p = &Plan{VIDs: []transport.VID{apart.VLANs[0].VID}}
	for i := range apart.Hosts {
		p.Nodes = append(p.Nodes, Node{MAC: someMAC(i), VID: p.VIDs[0]})
	}
	err = p.Check(apart)
	if err == nil || !strings.HasSuffix(err.Error(), "and more (mend these first)") {
		t.Errorf("%v", err)
	}
}
