package topology

import (
	"errors"
	"fmt"
	"testing"
)

// The paths of a network are bounded by their hops, too: those of a ring are long. In one of six
// switches the two paths of each of 15 pairs have six hops together.
func TestChoosePaths_BoundsHops(t *testing.T) {
	const n, hops = 6, 15 * 6
	ring := &Topology{}
	for i := range n {
		ring.Switches = append(ring.Switches, fmt.Sprintf("s%d", i))
		ring.Hosts = append(ring.Hosts, Host{Name: fmt.Sprintf("h%d", i), Switch: i, Rate: Gbps})
		ring.Links = append(ring.Links, Link{A: i, B: (i + 1) % n, Rate: Gbps})
	}
	if paths, err := ring.choosePaths(0, hops); err != nil || len(paths) != 30 {
		t.Errorf("%d paths, %v; want 30", len(paths), err)
	}
	if _, err := ring.choosePaths(0, hops-1); !errors.Is(err, ErrInvalid) {
		t.Errorf("with one hop less: %v, want %v", err, ErrInvalid)
	}
}

// Two switches may have as many long paths between them as they have cables: the search for these
// ends at the bound, too, and not only what is chosen.
func TestFind_BoundsHops(t *testing.T) {
	const cables, switches, most = 50, 100, 250
	line := &Topology{}
	for i := range switches {
		line.Switches = append(line.Switches, fmt.Sprintf("s%d", i))
		if i > 0 {
			line.Links = append(line.Links, Link{A: i - 1, B: i, Rate: Gbps})
		}
	}
	for range cables - 1 {
		line.Links = append(line.Links, Link{A: 0, B: 1, Rate: Gbps}, Link{A: switches - 2, B: switches - 1, Rate: Gbps})
	}
	f := newPathFinder(line)
	paths := f.find(0, switches-1, cables, most)
	if want := most/(switches-1) + 1; len(paths) != want {
		t.Errorf("%d paths of %d hops, want %d: the last one is beyond %d", len(paths), switches-1, want, most)
	}
}
