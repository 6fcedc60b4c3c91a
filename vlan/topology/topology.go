package topology

import (
	"fmt"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// Topology is a network: switches, the cables between them, the cables to hosts, and the cables of
// each VLAN. It is data.
type Topology struct {
	Switches []string // names; a switch's number is its place
	Hosts    []Host   // a host's number is its place, and that of the node in a plan
	Links    []Link   // between switches
	VLANs    []VLAN   // sorted by VID
}

// Host is a station and its cable. It is in all VLANs.
type Host struct {
	Name   string
	Switch int
	Rate   Rate
}

// Link is a cable between two switches. Two switches may have several.
type Link struct {
	A, B int // switches
	Rate Rate
}

// VLAN is the part of the network for frames of one VID: a tree that reaches every switch with
// hosts.
type VLAN struct {
	VID   transport.VID
	Links []int // of Topology.Links, ascending
}

// Hop is a cable between switches in one of its directions: from A to B, or back.
type Hop struct {
	Link int  // of Topology.Links
	Back bool // from Links[Link].B to Links[Link].A
}

// Index numbers hops: the directions of a link are 2*Link and 2*Link+1. It is an index for slices.
func (h Hop) Index() int {
	if h.Back {
		return 2*h.Link + 1
	}
	return 2 * h.Link
}

// HopAt returns the hop with that Index.
func HopAt(index int) Hop { return Hop{Link: index / 2, Back: index%2 == 1} }

// Reverse returns the other direction.
func (h Hop) Reverse() Hop { return Hop{Link: h.Link, Back: !h.Back} }

// End returns the switch that a hop leads to.
func (t *Topology) End(h Hop) int {
	if h.Back {
		return t.Links[h.Link].A
	}
	return t.Links[h.Link].B
}

// VIDs returns the VIDs of the VLANs, ascending.
func (t *Topology) VIDs() []transport.VID {
	var vids []transport.VID
	for _, v := range t.VLANs {
		vids = append(vids, v.VID)
	}
	return vids
}

// LinkVIDs returns the VIDs of each link, ascending.
func (t *Topology) LinkVIDs() [][]transport.VID {
	vids := make([][]transport.VID, len(t.Links))
	for _, v := range t.VLANs {
		for _, l := range v.Links {
			vids[l] = append(vids[l], v.VID)
		}
	}
	return vids
}

// FormatVIDs formats ascending VIDs as switches take them: 1-4,7.
func FormatVIDs(vids []transport.VID) string {
	if len(vids) == 0 {
		return "none"
	}
	return strings.Join(runs(vids), ",")
}

// runs formats ascending VIDs as runs: 1-4 and 7.
func runs(vids []transport.VID) (runs []string) {
	for i := 0; i < len(vids); {
		end := i
		for end+1 < len(vids) && vids[end+1] == vids[end]+1 {
			end++
		}
		run := fmt.Sprint(vids[i])
		if end > i {
			run += fmt.Sprintf("-%d", vids[end])
		}
		runs = append(runs, run)
		i = end + 1
	}
	return runs
}

// LinkName returns the name of link i in files and messages: leaf0-top1, or leaf0-top1#2 for the
// second link between these two, whichever of them is its A.
func (t *Topology) LinkName(i int) string { return t.LinkNames()[i] }

// LinkNames returns the names of all links.
func (t *Topology) LinkNames() []string {
	names := make([]string, len(t.Links))
	same := make(map[[2]int][]int, len(t.Links)) // the links between two switches
	for i, l := range t.Links {
		ends := [2]int{min(l.A, l.B), max(l.A, l.B)}
		same[ends] = append(same[ends], i)
		first := t.Links[same[ends][0]]
		names[i] = t.Switches[first.A] + "-" + t.Switches[first.B]
		if n := len(same[ends]); n > 1 {
			names[i] += fmt.Sprintf("#%d", n)
		}
	}
	return names
}

// HopName returns the name of a hop in messages: leaf0>top1.
func (t *Topology) HopName(h Hop) string { return t.PathName([]Hop{h}) }

// PathName returns the name of a path in messages: leaf0>top1>leaf2. A path without hops has none.
func (t *Topology) PathName(path []Hop) string {
	var b strings.Builder
	for i, h := range path {
		if i == 0 {
			b.WriteString(t.Switches[t.End(h.Reverse())])
		}
		b.WriteString(">" + t.Switches[t.End(h)])
	}
	return b.String()
}
