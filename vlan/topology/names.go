package topology

import (
	"fmt"
	"strings"
)

// LinkName returns what link i of Links is called in files and messages: leaf0-top1, or leaf0-top1#2 for the second one with
// the same A and B.
func (t *Topology) LinkName(i int) string {
	same := 1
	for _, other := range t.Links[:i] {
		if other.A == t.Links[i].A && other.B == t.Links[i].B {
			same++
		}
	}
	return t.linkName(i, same)
}

// LinkNames returns the names of all links, in less time than LinkName for each.
func (t *Topology) LinkNames() []string {
	names := make([]string, len(t.Links))
	same := make(map[[2]int]int, len(t.Links))
	for i, l := range t.Links {
		ends := [2]int{l.A, l.B}
		same[ends]++
		names[i] = t.linkName(i, same[ends])
	}
	return names
}

func (t *Topology) linkName(i, same int) string {
	name := t.Switches[t.Links[i].A] + "-" + t.Switches[t.Links[i].B]
	if same > 1 {
		name += fmt.Sprintf("#%d", same)
	}
	return name
}

// HopName returns what a hop is called in messages: leaf0>top1.
func (t *Topology) HopName(h Hop) string { return t.PathName([]Hop{h}) }

// PathName returns what a path is called in messages: leaf0>top1>leaf2. No hops have no name.
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
