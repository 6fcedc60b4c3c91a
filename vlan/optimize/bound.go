package optimize

import (
	"cmp"
	"math"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/topology"
)

// maxCutWork bounds the search for narrow cuts, in pairs, links and switches looked at: some tens
// of milliseconds.
const maxCutWork = 1 << 24

// lowerBound returns a utilisation that the worst link has at least, whatever the choices: the
// highest of
//
//   - each pair alone on the best of its paths;
//   - each hop with the pairs that cross it by all of their paths;
//   - each cut: a set of switches, and the hops that leave it. They share the demand that leaves:
//     on average; and as whole pairs, so that of k·m+1 pairs, m+1 meet on one of k hops.
func (p *problem) lowerBound() float64 {
	bound := max(p.boundOfPairs(), p.boundOfHops())
	vids := p.topology.LinkVIDs()
	for set := range p.cuts {
		bound = max(bound, p.boundOfCut(set, vids))
	}
	return bound
}

func (p *problem) boundOfPairs() (bound float64) {
	empty := p.newAssignment()
	for i := range p.pairs {
		peak, _ := empty.atLeast(i)
		bound = max(bound, peak)
	}
	return bound
}

func (p *problem) boundOfHops() float64 {
	load := make([]int64, len(p.inverse))
	mark, now := make([]int, len(p.inverse)), 0 // a hop has mark now if all paths of the pair so far cross it
	for i := range p.pairs {
		var last []int32
		for _, path := range p.pairs[i].paths {
			if path == nil {
				continue
			}
			for _, h := range path {
				if last == nil || mark[h] == now {
					mark[h] = now + 1
				}
			}
			last = path
			now++
		}
		for _, h := range last {
			if mark[h] == now {
				load[h] += p.pairs[i].forth
				load[h^1] += p.pairs[i].back
			}
		}
	}
	bound := 0.0
	for h := range load {
		bound = max(bound, float64(load[h])*p.inverse[h])
	}
	return bound
}

// cuts yields sets of switches that may be hard to leave: those on the far side of each link of
// each VLAN, as far as maxCutWork allows. Sets with the same switches that have hosts count as one.
func (p *problem) cuts(yield func([]bool) bool) {
	hosts := make([]uint64, len(p.topology.Switches)) // a random number for each switch with hosts
	random := prng.Source(0)
	for _, h := range p.topology.Hosts {
		if hosts[h.Switch] == 0 {
			hosts[h.Switch] = random.Next() | 1
		}
	}
	seen, work := make(map[uint64]bool), 0
	for _, v := range p.topology.VLANs {
		for _, below := range p.topology.Subtrees(v) {
			if work += len(below); work > maxCutWork {
				return
			}
			sum := uint64(0)
			for _, s := range below {
				sum += hosts[s]
			}
			if sum == 0 || seen[sum] {
				continue
			}
			seen[sum] = true
			work += len(p.pairs) + len(p.topology.Links)
			set := make([]bool, len(hosts))
			for _, s := range below {
				set[s] = true
			}
			if !yield(p.narrow(set, hosts)) {
				return
			}
		}
	}
}

// narrow moves switches without hosts to the side where they leave the cut with less capacity.
func (p *problem) narrow(set []bool, hosts []uint64) []bool {
	for range 3 { // passes: each move can change what is best for the next switch
		across := make([]topology.Rate, len(set)) // of each switch: capacity to the other side, less that to its own
		for _, l := range p.topology.Links {
			capacity := l.Rate
			if set[l.A] == set[l.B] {
				capacity = -capacity
			}
			across[l.A] += capacity
			across[l.B] += capacity
		}
		for s := range set {
			if hosts[s] == 0 && across[s] > 0 {
				set[s] = !set[s]
			}
		}
	}
	return set
}

// boundOfCut returns the bound that the hops out of a set of switches give, and those into it.
func (p *problem) boundOfCut(set []bool, vids [][]transport.VID) float64 {
	var out, in []int64
	for i := range p.pairs {
		d := &p.pairs[i]
		a, b := set[p.topology.Hosts[d.pair.A].Switch], set[p.topology.Hosts[d.pair.B].Switch]
		switch {
		case a && !b:
			out, in = append(out, d.forth), append(in, d.back)
		case b && !a:
			out, in = append(out, d.back), append(in, d.forth)
		}
	}
	hops, capacity, least := 0, 0.0, math.Inf(1) // in units, and utilisation per unit
	for i, l := range p.topology.Links {
		if len(vids[i]) > 0 && set[l.A] != set[l.B] {
			hops++
			capacity += float64(l.Rate) / p.unit
			least = min(least, p.inverse[2*i])
		}
	}
	return max(share(out, hops, capacity, least), share(in, hops, capacity, least))
}

// share returns the utilisation that one of some hops has at least if all items must cross them.
func share(items []int64, hops int, capacity, perUnit float64) float64 {
	if hops == 0 {
		return 0
	}
	total := int64(0)
	for _, n := range items {
		total += n
	}
	bound := float64(total) / capacity
	slices.SortFunc(items, func(a, b int64) int { return cmp.Compare(b, a) })
	for m := 0; m*hops < len(items); m++ {
		bound = max(bound, float64(int64(m+1)*items[m*hops])*perUnit)
	}
	return bound
}
