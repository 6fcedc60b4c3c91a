package topology_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// naivePath searches a VLAN from a switch, breadth first.
func naivePath(t *topology.Topology, v topology.VLAN, from, to int) []topology.Hop {
	paths := map[int][]topology.Hop{from: {}}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, l := range v.Links {
			for _, hop := range []topology.Hop{{Link: l}, {Link: l, Back: true}} {
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
		net := vlantest.RandomNetwork(r, 1+r.IntN(20), r.IntN(30), 3)
		if err := net.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := vlantest.Must(topology.NewPaths(net))
		for a := range net.Hosts {
			for b := range net.Hosts {
				for _, v := range net.VLANs {
					want := naivePath(net, v, a, b)
					if got := vlantest.Must(p.Append(nil, a, b, v.VID)); !slices.Equal(got, want) {
						t.Fatalf("seed %d: %d to %d on VID %d: %s, want %s", seed, a, b, v.VID, net.PathName(got), net.PathName(want))
					}
				}
			}
		}
	}
}

// The load of a link is what the flows carry that cross it; each flow by itself, with the naive
// path.
func TestLoadAgreesWithNaive(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		net := vlantest.RandomNetwork(r, 2+r.IntN(10), r.IntN(10), 3)
		demand := vlantest.Must(traffic.Pattern(fmt.Sprintf("random:%d", seed), len(net.Hosts)))
		vid := func(a, b int) transport.VID { return transport.VID((a+b)%3 + 1) }
		want := make([]topology.Rate, 2*len(net.Links))
		for _, f := range demand {
			for _, h := range naivePath(net, net.VLANs[vid(f.From, f.To)-1], f.From, f.To) {
				want[h.Index()] += f.Rate
			}
		}
		if got := vlantest.Must(demand.Load(net, vid)); !slices.Equal(got.Links, want) {
			t.Errorf("seed %d: %v, want %v", seed, got.Links, want)
		}
	}
}
