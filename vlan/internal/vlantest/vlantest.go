// Package vlantest makes networks, plans and traffic for the tests of the packages below vlan.
package vlantest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// Must returns v, and panics with an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Seeds returns the seeds of a test's random cases: n, or a fifth of them with -short, with which
// the tests run under the race detector. It is ten times slower, and has nothing more to find in
// code without goroutines.
func Seeds(n int) (seeds []uint64) {
	if testing.Short() {
		n = max(1, n/5)
	}
	for seed := range uint64(n) {
		seeds = append(seeds, seed)
	}
	return seeds
}

// Pattern returns the traffic of a pattern.
func Pattern(t testing.TB, name string, nodes int) traffic.Matrix {
	t.Helper()
	demand, err := traffic.Pattern(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return demand
}

// Network returns the network of a spec.
func Network(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	network, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// RandomNetwork returns a connected graph of switches, each with a host: a random tree, and more
// cables between switches by chance, some side by side. VIDs 1 to vlans are random spanning trees.
func RandomNetwork(r *rand.Rand, switches, more, vlans int) *topology.Topology {
	t := &topology.Topology{}
	for s := range switches {
		t.Switches = append(t.Switches, fmt.Sprintf("s%d", s))
		t.Hosts = append(t.Hosts, topology.Host{Name: fmt.Sprintf("h%d", s), Switch: s, Rate: topology.Gbps})
		if s > 0 {
			t.Links = append(t.Links, topology.Link{A: r.IntN(s), B: s, Rate: topology.Gbps})
		}
	}
	for range more {
		if a, b := r.IntN(switches), r.IntN(switches); a != b {
			t.Links = append(t.Links, topology.Link{A: a, B: b, Rate: topology.Gbps})
		}
	}
	for i := range vlans {
		t.VLANs = append(t.VLANs, topology.VLAN{VID: transport.VID(i + 1), Links: randomTree(r, t)})
	}
	return t
}

// randomTree takes cables in random order, unless they close a loop.
func randomTree(r *rand.Rand, t *topology.Topology) []int {
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

// RandomTraffic is that many flows by chance, of all sizes.
func RandomTraffic(n, flows int, seed uint64) (demand traffic.Matrix) {
	r := rand.New(rand.NewPCG(seed, 0))
	for range flows {
		a, b := r.IntN(n), r.IntN(n)
		if a != b {
			rate := topology.Rate(r.ExpFloat64()) * 50 * topology.Mbps
			demand = append(demand, traffic.Flow{From: a, To: b, Rate: rate})
		}
	}
	return demand.Normalise()
}

// RandomPlan is a plan in which pairs use what the seed says.
func RandomPlan(top *topology.Topology, seed uint64) *plan.Plan {
	r := rand.New(rand.NewPCG(seed, 1))
	pl := &plan.Plan{Pairs: map[plan.Pair]transport.VID{}}
	for _, v := range top.VLANs {
		pl.VIDs = append(pl.VIDs, v.VID)
	}
	for i := range top.Hosts {
		pl.Nodes = append(pl.Nodes, plan.Node{
			MAC:      transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)},
			VID:      pl.VIDs[r.IntN(len(pl.VIDs))],
			Priority: r.IntN(3),
		})
		for k := range i {
			if r.IntN(4) == 0 {
				pl.Pairs[plan.Pair{A: k, B: i}] = pl.VIDs[r.IntN(len(pl.VIDs))]
			}
		}
	}
	return pl
}
