package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// maxLevels bounds the levels of a spec: names stay short.
const maxLevels = 16

// Specs describes what Parse takes.
const Specs = "flat:HOSTS, tree:LEAVESxHOSTS (more levels: tree:AxBx...xHOSTS, from the root down), " +
	"vbft:LEAVESxTOPSxHOSTS, vbft3:PODSxLEAVESxMIDSxTOPSxHOSTS (tops per middle switch), " +
	"each with @RATE or @HOSTRATE/LINKRATE behind it, as @1G/10G"

// kind is a kind of network with specs: the number of its sizes, and what they make.
type kind struct {
	least, most int
	make        func(n []int) (*Topology, error)
}

func (k kind) count() string {
	if k.least == k.most {
		return strconv.Itoa(k.least)
	}
	return fmt.Sprintf("%d to %d", k.least, k.most)
}

var kinds = map[string]kind{
	"flat": {1, 1, func(n []int) (*Topology, error) { return Flat(n[0]) }},
	"tree": {2, maxLevels, func(n []int) (*Topology, error) { return Tree(n...) }},
	"vbft": {3, 3, func(n []int) (*Topology, error) { return FatTree(n[0], n[1], n[2]) }},
	"vbft3": {5, 5, func(n []int) (*Topology, error) {
		return FatTreeOf(Level{Down: n[4], Up: 1}, Level{Down: n[1], Up: n[2]}, Level{Down: n[0], Up: n[3]})
	}},
}

// IsSpec reports whether s begins as a spec for Parse does, and is not the name of a file.
func IsSpec(s string) bool {
	name, _, found := strings.Cut(s, ":")
	_, known := kinds[name]
	return found && known
}

// Parse makes a regular network from a spec (see Specs):
//
//	flat:16             Flat(16): one switch, 16 hosts
//	tree:4x4            Tree(4, 4): 4 leaves of 4 hosts below a switch
//	vbft:4x4x4          FatTree(4, 4, 4): 4 leaves, 4 tops, 4 hosts at each leaf
//	vbft3:4x4x2x2x8     FatTreeOf({8, 1}, {4, 2}, {4, 2}): 4 pods of 4 leaves and 2 middle
//	                    switches, each of them below 2 tops of its own; 8 hosts at each leaf
//	vbft:4x4x4@1G/10G   cables of 1 Gbit/s to hosts, 10 between switches
//
// The error is ErrInvalid.
func Parse(spec string) (*Topology, error) {
	t, err := parseSpec(spec)
	if err != nil {
		return nil, fmt.Errorf("topology %q: %w (there are: %s)", spec, err, Specs)
	}
	return t, nil
}

func parseSpec(spec string) (*Topology, error) {
	name, rest, _ := strings.Cut(spec, ":")
	k, ok := kinds[name]
	if !ok {
		return nil, invalid("there is no %q", name)
	}
	sizes, rates, hasRates := strings.Cut(rest, "@")
	var numbers []int
	for word := range strings.SplitSeq(sizes, "x") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxParts {
			return nil, invalid("%q: want a number of 1 to %d", word, maxParts)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) < k.least || len(numbers) > k.most {
		return nil, invalid("%s takes %s numbers, not %d", name, k.count(), len(numbers))
	}
	t, err := k.make(numbers)
	if err != nil || !hasRates {
		return t, err
	}
	toHosts, between, two := strings.Cut(rates, "/")
	if !two {
		between = toHosts
	}
	h, err := ParseRate(toHosts)
	if err != nil {
		return nil, invalid("%w", err)
	}
	l, err := ParseRate(between)
	if err != nil {
		return nil, invalid("%w", err)
	}
	t.SetRates(h, l)
	return t, nil
}

// SetRates gives all cables to hosts one rate, and all between switches another.
func (t *Topology) SetRates(hosts, links Rate) {
	for i := range t.Hosts {
		t.Hosts[i].Rate = hosts
	}
	for i := range t.Links {
		t.Links[i].Rate = links
	}
}
