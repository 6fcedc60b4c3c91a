package plan_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func vbft(t testing.TB, leaves, tops, hosts int) *topology.Topology {
	t.Helper()
	network, err := topology.FatTree(leaves, tops, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func TestPlan_CheckOfTheRoundRobinPlanOnAFatTree(t *testing.T) {
	if err := roundRobin(t, 16, 1, 2, 3, 4).Check(vbft(t, 4, 4, 4)); err != nil {
		t.Error(err)
	}
	if err := roundRobin(t, 16, 1, 4).Check(vbft(t, 4, 4, 4)); err != nil {
		t.Errorf("a plan that does not use all VIDs: %v", err)
	}
}

// Nodes are the topology's hosts by their order: names that say otherwise are a fault, and names
// that the topology does not have are none.
func TestPlan_CheckOfNodesInAnotherOrder(t *testing.T) {
	network := vbft(t, 2, 1, 2)
	p := roundRobin(t, 4, 1)
	for k, h := range network.Hosts {
		p.Nodes[k].Name = h.Name
	}
	p.Nodes[3].Name = "elsewhere"
	if err := p.Check(network); err != nil {
		t.Error(err)
	}
	p.Nodes[0].Name, p.Nodes[2].Name = p.Nodes[2].Name, p.Nodes[0].Name
	want := fmt.Sprintf("bad plan: node 0 is %[1]s, which is host 2 of the topology (want the same order in both)\n"+
		"bad plan: node 2 is %[2]s, which is host 0 of the topology (want the same order in both)", network.Hosts[2].Name, network.Hosts[0].Name)
	if err := p.Check(network); !errors.Is(err, plan.ErrInvalid) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPlan_CheckNamesAScreenOfVIDs(t *testing.T) {
	var vids []transport.VID
	for vid := range transport.VID(100) {
		vids = append(vids, vid+1)
	}
	err := roundRobin(t, 4, vids...).Check(vbft(t, 2, 1, 2))
	if err == nil {
		t.Fatal("a network of one VID has a hundred")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != strictyaml.MaxFaults+1 || !strings.Contains(lines[len(lines)-1], "and more") {
		t.Errorf("%d faults, the last one %q; want %d and more", len(lines), lines[len(lines)-1], strictyaml.MaxFaults)
	}
}

func TestPlan_CheckNamesWhatTheNetworkLacks(t *testing.T) {
	network := vbft(t, 4, 4, 4)
	if err := roundRobin(t, 15, 1).Check(network); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), "15 nodes, but the topology has 16 hosts") {
		t.Errorf("a node too few: %v", err)
	}
	if err := roundRobin(t, 16, 1, 2, 3, 4, 5).Check(network); !errors.Is(err, plan.ErrInvalid) || err.Error() != "bad plan: vid 5: the topology does not have it (it has 1-4)" {
		t.Errorf("a VID that it has not: %v", err)
	}
	bare := *network
	bare.VLANs = nil
	if err := roundRobin(t, 16, 1).Check(&bare); !errors.Is(err, plan.ErrInvalid) || err.Error() != "bad plan: vid 1: the topology does not have it (it has none)" {
		t.Errorf("no VLAN: %v", err)
	}
	// VID 2 loses its cable to leaf 3, where nodes 12 to 15 are: the pairs of 1, 5 and 9 with them.
	cut := slices.IndexFunc(network.VLANs, func(v topology.VLAN) bool { return v.VID == 2 })
	links := network.VLANs[cut].Links
	network.VLANs[cut].Links = slices.DeleteFunc(slices.Clone(links), func(l int) bool { return network.LinkName(l) == "leaf3-top1" })
	err := roundRobin(t, 16, 1, 2, 3, 4).Check(network)
	var want []string
	for _, low := range []int{1, 5, 9} {
		for high := 12; high < 16; high++ {
			want = append(want, fmt.Sprintf("bad plan: pair %d-%d: vid 2 does not connect leaf%d and leaf3", low, high, low/4))
		}
	}
	if !errors.Is(err, plan.ErrInvalid) || err.Error() != strings.Join(want, "\n") {
		t.Errorf("a VLAN in two parts:\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	// The plan that moves just these pairs can be carried out.
	moved := make(map[plan.Pair]transport.VID)
	for _, low := range []int{1, 5, 9} {
		for high := 12; high < 16; high++ {
			moved[plan.Pair{A: low, B: high}] = 3
		}
	}
	better, err := roundRobin(t, 16, 1, 2, 3, 4).With(moved)
	if err == nil {
		err = better.Check(network)
	}
	if err != nil {
		t.Errorf("moved: %v", err)
	}
}

// In networks that have lost cables, Check complains of exactly the pairs that have no path.
func TestPlan_CheckAgreesWithPaths(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		network := vbft(t, 2+rng.IntN(3), 3, 1+rng.IntN(2))
		for i, v := range network.VLANs {
			network.VLANs[i].Links = slices.DeleteFunc(slices.Clone(v.Links), func(int) bool { return rng.IntN(8) == 0 })
		}
		p := roundRobin(t, len(network.Hosts), 1, 2, 3)
		var want []string
		for a := range p.Nodes {
			for b := a + 1; b < len(p.Nodes); b++ {
				if _, err := network.Path(a, b, p.PairVID(a, b)); err != nil {
					want = append(want, fmt.Sprintf("pair %d-%d:", a, b))
				}
			}
		}
		err := p.Check(network)
		if len(want) == 0 {
			if err != nil {
				t.Errorf("seed %d: %v, want none", seed, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("seed %d: no error, want %v", seed, want)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		if len(got) != min(len(want), strictyaml.MaxFaults+1) {
			t.Errorf("seed %d: %d faults, want %d:\n%v", seed, len(got), len(want), err)
			continue
		}
		for i, line := range got[:min(len(got), strictyaml.MaxFaults)] {
			if !strings.Contains(line, want[i]) {
				t.Errorf("seed %d: %s, want %s", seed, line, want[i])
			}
		}
	}
}
