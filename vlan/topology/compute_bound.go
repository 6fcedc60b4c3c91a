package topology

// leastVLANs bounds from below in how many VLANs all paths can be.
func (t *Topology) leastVLANs(paths []SwitchPath) int {
	return max(1, t.leastForLinks(paths), t.leastForPaths(paths))
}

// leastForLinks counts the trees that have as many links as are in use: each has fewer links than there are switches.
func (t *Topology) leastForLinks(paths []SwitchPath) int {
	all := 0
	used := make([]bool, len(t.Links))
	for _, p := range paths {
		for _, h := range p.Hops {
			if !used[h.Link] {
				used[h.Link] = true
				all++
			}
		}
	}
	tree := max(1, len(t.Switches)-1)
	return (all + tree - 1) / tree
}

// leastForPaths collects paths of which any two close a loop, the longest first: each needs a VLAN of its own. To find the
// most of them is NP-hard, too.
func (t *Topology) leastForPaths(paths []SwitchPath) int {
	var apart []*forest // each has one path
next:
	for _, i := range longestFirst(paths) {
		for _, f := range apart {
			if f.add(paths[i].Hops) {
				f.undo()
				continue next
			}
		}
		f := newForest(t)
		f.add(paths[i].Hops)
		apart = append(apart, f)
	}
	return len(apart)
}
