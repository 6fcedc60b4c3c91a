package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// MaxTries bounds the random orders that ComputeVLANs tries.
const MaxTries = 1 << 10

// defaultTries is the number of tries from which on more hardly help: on a hypercube of four
// dimensions, two paths for each pair take 13 VLANs with one try, 11 with 30, and 11 with 200.
const defaultTries = 30

// VLANOptions say how ComputeVLANs chooses. The zero value is a good choice.
type VLANOptions struct {
	// Paths is the number of paths between any two switches that have hosts: more if one fails, or
	// to spread traffic; fewer for fewer VLANs. 0 is as many as the one with fewer links has links.
	Paths int
	// MaxVLANs is the largest number of VLANs: many switches carry fewer than there are VIDs. 0 is
	// as many as there are VIDs from FirstVID on.
	MaxVLANs int
	// FirstVID is the first VLAN's VID; the others follow. 0 is 1.
	FirstVID transport.VID
	// Tries is the number of random orders of the paths to try, beyond two orders that are not
	// random. 0 is 30.
	Tries int
	// Seed is the seed of the random orders.
	Seed uint64
}

// SwitchPath is a path between two switches that have hosts, and its VLAN.
type SwitchPath struct {
	From, To int // From < To
	Hops     []Hop
	VID      transport.VID // 0: in none
}

// VLANReport describes what ComputeVLANs did.
type VLANReport struct {
	Paths   []SwitchPath // chosen, sorted by From, then To; for each two switches the shortest comes first
	Dropped int          // paths that are in no VLAN, because of MaxVLANs
	// AtLeast is a number of VLANs that no solution for all chosen paths goes below.
	AtLeast     int
	UnusedLinks []int // in no VLAN
}

// ComputeVLANs finds VLANs for a network of any shape: few trees, which together have several short
// paths between any two switches that have hosts. It ignores the VLANs of t, and does not change t.
//
// It has three steps:
//
//	choose   for each two switches with hosts, the shortest path; then the path that shares the
//	         fewest links with those before, and is the shortest of these; and so on. Of equals,
//	         the one whose links are used less by others
//	pack     put each path into the VLAN that has the most of its links already, of those in which
//	         it closes no loop; or into a new one
//	extend   add links to each VLAN until it reaches all switches with hosts: those first that are
//	         in fewer VLANs
//
// Two different paths between the same two switches are never in one VLAN, so another VID is
// another path.
//
// To find the least number of VLANs is NP-hard, and no factor is known that bounds how many more
// this heuristic takes. The result has at most as many VLANs as there are chosen paths, and at
// least VLANReport.AtLeast: that many paths exclude each other two by two, or that many trees have
// as many links as are in use. It depends on the order of the paths. Several orders are tried, and
// the best is taken: the longest first, the first ones of all pairs first, and random ones. On fat
// trees of two levels (one VLAN for each top switch) and on rings (one for each link, to do without
// it) the result is the least. Rates do not matter here.
//
// With E switches that have hosts, k paths for each pair, L links and V VLANs, it takes time for
// E²k searches of the network, of L log L each, and for each order for E²kV path lengths. Equal
// arguments give equal VLANs.
//
// The error is ErrInvalid: t is not valid, its links do not connect all hosts (the error names a
// switch that is cut off), or the options are impossible.
//
// Source: Mudigonda, Yalagandula, Al-Fares, Mogul: SPAIN, NSDI 2010: its path computation and its
// greedy packing of paths into VLANs, but best fit instead of first fit.
func ComputeVLANs(t *Topology, opt VLANOptions) ([]VLAN, VLANReport, error) {
	bare := *t
	bare.VLANs = nil
	opt, err := opt.complete()
	if err == nil {
		err = bare.Validate()
	}
	if err == nil {
		err = bare.checkReachable()
	}
	if err != nil {
		return nil, VLANReport{}, fmt.Errorf("compute VLANs: %w", err)
	}
	paths, err := bare.choosePaths(opt.Paths, maxPathHops)
	if err != nil {
		return nil, VLANReport{}, fmt.Errorf("compute VLANs: %w", err)
	}
	report := VLANReport{Paths: paths, AtLeast: bare.leastVLANs(paths)}
	best := bare.packBest(paths, report.AtLeast, opt)
	if len(best.forests) == 0 { // all hosts are at one switch
		best.forests = append(best.forests, newForest(&bare))
	}
	vlans := make([]VLAN, len(best.forests))
	in := make([]int, len(t.Links)) // how many VLANs each link is in
	for i, f := range best.forests {
		vlans[i] = VLAN{VID: opt.FirstVID + transport.VID(i), Links: bare.span(f, in)}
	}
	for i, v := range best.of {
		if v == none {
			report.Dropped++
		} else {
			report.Paths[i].VID = vlans[v].VID
		}
	}
	for l, n := range in {
		if n == 0 {
			report.UnusedLinks = append(report.UnusedLinks, l)
		}
	}
	return vlans, report, nil
}

// complete returns the options with what zeros stand for.
func (o VLANOptions) complete() (VLANOptions, error) {
	if o.FirstVID == 0 {
		o.FirstVID = 1
	}
	if o.FirstVID > transport.MaxVID {
		return o, invalid("first VID %d (want 1 to %d)", o.FirstVID, transport.MaxVID)
	}
	free := int(transport.MaxVID-o.FirstVID) + 1
	if o.MaxVLANs == 0 {
		o.MaxVLANs = free
	}
	if o.MaxVLANs < 1 || o.MaxVLANs > free {
		return o, invalid("%d VLANs from VID %d on (want 1 to %d)", o.MaxVLANs, o.FirstVID, free)
	}
	if o.Tries == 0 {
		o.Tries = defaultTries
	}
	if o.Tries < 0 || o.Tries > MaxTries {
		return o, invalid("%d tries (want 1 to %d)", o.Tries, MaxTries)
	}
	if o.Paths < 0 {
		return o, invalid("%d paths (want 1 or more)", o.Paths)
	}
	return o, nil
}

// edges returns the switches that have hosts, ascending.
func (t *Topology) edges() []int {
	var all []int
	for _, h := range t.Hosts {
		all = append(all, h.Switch)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkReachable makes sure that the links connect all switches that have hosts.
func (t *Topology) checkReachable() error {
	all := newForest(t)
	for l := range t.Links {
		all.join(l)
	}
	edges := t.edges()
	for _, s := range edges {
		if all.find(s) != all.find(edges[0]) {
			return invalid("no links lead from %s to %s", t.Switches[edges[0]], t.Switches[s])
		}
	}
	return nil
}

// span returns the links of a VLAN, ascending: those of its paths, and more, so that it reaches all
// switches with hosts. in counts the VLANs of each link.
func (t *Topology) span(f *forest, in []int) []int {
	var rest []int
	for l := range t.Links {
		if !f.has(l) {
			rest = append(rest, l)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(in[a], in[b]) })
	for _, l := range rest {
		f.join(l)
	}
	links := t.prune(f.members())
	for _, l := range links {
		in[l]++
	}
	return links
}

// prune returns the links of a tree without those that lead only to switches without hosts.
func (t *Topology) prune(links []int) []int {
	degree := make([]int, len(t.Switches)) // remaining links of each switch, and two more if it has a host
	last := make([]int, len(t.Switches))   // xor of the remaining links: of one, its number
	for _, h := range t.Hosts {
		degree[h.Switch] = 2
	}
	for _, l := range links {
		for _, s := range [2]int{t.Links[l].A, t.Links[l].B} {
			degree[s]++
			last[s] ^= l
		}
	}
	gone := make([]bool, len(t.Links))
	for s := range t.Switches {
		for degree[s] == 1 { // a dead end; the next switch may be one without it
			l := last[s]
			gone[l] = true
			degree[s]--
			s = t.Links[l].A + t.Links[l].B - s
			degree[s]--
			last[s] ^= l
		}
	}
	return slices.DeleteFunc(links, func(l int) bool { return gone[l] })
}
