package optimize

import (
	"cmp"
	"math"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"

	"github.com/rawlane/rawlane/vlan/topology"
)

// maxCutWork bounds the search for narrow places, in pairs looked at: some tens of milliseconds.
const maxCutWork = 1 << 24

var inf = math.Inf(1)

// lowerBound returns a utilisation that the worst link has at least, whatever the choices: the highest of
//
//   - each pair alone on the best of its paths,
//   - each hop with the pairs that cross it by all of their paths,
//   - each cut: a set of switches, and the hops that leave it. They share what must leave: on average; and as whole pairs, so
//     that of k·m+1 pairs, m+1 meet on one of k hops.
func (p *Problem) lowerBound() float64 {
	bound := max(p.boundOfPairs(), p.boundOfHops())
	work := 0
	for _, set := range p.cuts() {
		if work += len(p.Pairs) + len(p.Topology.Links); work > maxCutWork {
			break
		}
		bound = max(bound, p.boundOfCut(set))
	}
	return bound
}

func (p *Problem) boundOfPairs() float64 {
	empty := p.NewAssignment()
	bound := 0.0
	for i := range p.Pairs {
		least := inf
		for c, path := range p.Pairs[i].paths {
			if path != nil {
				peak, _ := empty.after(i, int32(c))
				least = min(least, peak)
			}
		}
		bound = max(bound, least)
	}
	return bound
}

func (p *Problem) boundOfHops() float64 {
	load := make([]int64, len(p.inverse))
	times := make([]int, len(p.inverse))
	for i := range p.Pairs {
		var last []int32
		connected := 0
		for _, path := range p.Pairs[i].paths {
			if path != nil {
				connected++
				last = path
			}
			for _, h := range path {
				times[h]++
			}
		}
		for _, h := range last {
			if times[h] == connected {
				load[h] += p.Pairs[i].forth
				load[h^1] += p.Pairs[i].back
			}
		}
		for _, path := range p.Pairs[i].paths {
			for _, h := range path {
				times[h] = 0
			}
		}
	}
	bound := 0.0
	for h := range load {
		bound = max(bound, float64(load[h])*p.inverse[h])
	}
	return bound
}

// cuts returns sets of switches that may be hard to leave: those on the far side of each link of each VLAN. What counts is which
// switches with hosts are there; sets that agree in that are one.
func (p *Problem) cuts() [][]bool {
	hosts := make([]uint64, len(p.Topology.Switches)) // a random number for each switch with hosts
	random := prng.Source(0)
	for _, h := range p.Topology.Hosts {
		if hosts[h.Switch] == 0 {
			hosts[h.Switch] = random.Next() | 1
		}
	}
	var sets [][]bool
	seen := make(map[uint64]bool)
	for i, v := range p.Topology.VLANs {
		if !slices.Contains(p.Vids, v.VID) {
			continue
		}
		tr, err := p.Topology.Tree(i)
		if err != nil {
			continue // NewPaths has made all trees: there is none
		}
		sum := slices.Clone(hosts) // of the subtree
		for _, s := range tr.DeepestFirst() {
			if tr.Parent[s] == s {
				continue
			}
			sum[tr.Parent[s]] += sum[s]
			if !seen[sum[s]] && sum[s] != 0 {
				seen[sum[s]] = true
				sets = append(sets, p.narrow(tr.Below(s), hosts))
			}
		}
	}
	return sets
}

// narrow puts the switches without hosts on the side where they leave the cut with less capacity.
func (p *Problem) narrow(set []bool, hosts []uint64) []bool {
	for range 3 { // passes: what one switch does can change what is best for the next
		across := make([]topology.Rate, len(set)) // of each switch: capacity to the other side, less that to its own
		for _, l := range p.Topology.Links {
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
func (p *Problem) boundOfCut(set []bool) float64 {
	var out, in []int64
	for i := range p.Pairs {
		c := &p.Pairs[i]
		a, b := set[p.Topology.Hosts[c.Pair.A].Switch], set[p.Topology.Hosts[c.Pair.B].Switch]
		switch {
		case a && !b:
			out, in = append(out, c.forth), append(in, c.back)
		case b && !a:
			out, in = append(out, c.back), append(in, c.forth)
		}
	}
	used := make([]bool, len(p.Topology.Links))
	for _, v := range p.Topology.VLANs {
		if slices.Contains(p.Vids, v.VID) {
			for _, l := range v.Links {
				used[l] = true
			}
		}
	}
	hops, capacity, least := 0, 0.0, inf // in units, and utilisation per unit
	for i, l := range p.Topology.Links {
		if used[i] && set[l.A] != set[l.B] {
			hops++
			capacity += float64(l.Rate) / p.unit
			least = min(least, p.inverse[2*i])
		}
	}
	return max(share(out, hops, capacity, least), share(in, hops, capacity, least))
}

// share returns the utilisation that one of some hops has at least if all of items must cross them.
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
