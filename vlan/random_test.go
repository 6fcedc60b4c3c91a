package vlan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// randomNetwork returns a connected graph of switches, each with a host: a random tree, and more cables between switches
// by chance, some side by side. VIDs 1 to vlans are random spanning trees.
func randomNetwork(r *rand.Rand, switches, more, vlans int) *vlan.Topology {
	t := &vlan.Topology{}
	for s := range switches {
		t.Switches = append(t.Switches, fmt.Sprintf("s%d", s))
		t.Hosts = append(t.Hosts, vlan.Host{Name: fmt.Sprintf("h%d", s), Switch: s, Rate: vlan.Gbps})
		if s > 0 {
			t.Links = append(t.Links, vlan.Link{A: r.IntN(s), B: s, Rate: vlan.Gbps})
		}
	}
	for range more {
		if a, b := r.IntN(switches), r.IntN(switches); a != b {
			t.Links = append(t.Links, vlan.Link{A: a, B: b, Rate: vlan.Gbps})
		}
	}
	for i := range vlans {
		t.VLANs = append(t.VLANs, vlan.VLAN{VID: transport.VID(i + 1), Links: randomTree(r, t)})
	}
	return t
}

// randomTree takes cables in random order, unless they close a loop.
func randomTree(r *rand.Rand, t *vlan.Topology) []int {
	of := make([]int, len(t.Switches)) // the piece that each switch is in
	for s := range of {
		of[s] = s
	}
	var links []int
	for _, l := range r.Perm(len(t.Links)) {
		a, b := of[t.Links[l].A], of[t.Links[l].B]
		if a == b {
			continue
		}
		for s := range of {
			if of[s] == b {
				of[s] = a
			}
		}
		links = append(links, l)
	}
	slices.Sort(links)
	return links
}

// naivePath searches a VLAN from a switch, breadth first.
func naivePath(t *vlan.Topology, v vlan.VLAN, from, to int) []vlan.Hop {
	paths := map[int][]vlan.Hop{from: {}}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, l := range v.Links {
			for _, hop := range []vlan.Hop{{Link: l}, {Link: l, Back: true}} {
				begin, end := t.Links[l].A, t.Links[l].B
				if hop.Back {
					begin, end = end, begin
				}
				if _, seen := paths[end]; begin == at && !seen {
					paths[end] = append(slices.Clone(paths[at]), hop)
					queue = append(queue, end)
				}
			}
		}
	}
	return paths[to]
}

func TestPathsAgreeWithNaive(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		net := randomNetwork(r, 1+r.IntN(20), r.IntN(30), 3)
		if err := net.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := must(vlan.NewPaths(net))
		for a := range net.Hosts {
			for b := range net.Hosts {
				for _, v := range net.VLANs {
					want := naivePath(net, v, a, b)
					if got := must(p.Append(nil, a, b, v.VID)); !slices.Equal(got, want) {
						t.Fatalf("seed %d: %d to %d on VID %d: %s, want %s", seed, a, b, v.VID, net.PathName(got), net.PathName(want))
					}
				}
			}
		}
	}
}

// The load of a link is what the flows carry that cross it; each flow by itself, with the naive path.
func TestLoadAgreesWithNaive(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		net := randomNetwork(r, 2+r.IntN(10), r.IntN(10), 3)
		demand := must(vlan.Pattern(fmt.Sprintf("random:%d", seed), len(net.Hosts)))
		vid := func(a, b int) transport.VID { return transport.VID((a+b)%3 + 1) }
		want := make([]vlan.Rate, 2*len(net.Links))
		for _, f := range demand {
			for _, h := range naivePath(net, net.VLANs[vid(f.From, f.To)-1], f.From, f.To) {
				want[h.Index()] += f.Rate
			}
		}
		if got := must(demand.Load(net, vid)); !slices.Equal(got.Links, want) {
			t.Errorf("seed %d: %v, want %v", seed, got.Links, want)
		}
	}
}
