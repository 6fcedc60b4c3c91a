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
