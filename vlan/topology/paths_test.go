package topology_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

func TestPathNamesPairAndVID(t *testing.T) {
	net := vlantest.Must(topology.FatTree(4, 4, 4))
	cut := *net
	cut.VLANs = []topology.VLAN{{VID: 1, Links: []int{0, 4, 8}}} // leaf3 is not on top0
	for _, c := range []struct {
		what string
		net  *topology.Topology
		a, b int
		vid  transport.VID
		want string
	}{
		{"a VID that is not there", net, 1, 9, 7, "no path: pair 1-9: VID 7 is not in the topology (it has 1-4)"},
		{"a VID beyond all", net, 1, 9, 4095, "no path: pair 1-9: VID 4095 is not in the topology (it has 1-4)"},
		{"a node that is not there", net, 1, 16, 1, "no path: nodes 1 and 16 (want 0 to 15)"},
		{"a leaf that is cut off", &cut, 1, 15, 1, "no path: pair 1-15: VLAN 1 does not connect leaf0 and leaf3"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := c.net.Path(c.a, c.b, c.vid)
			if !errors.Is(err, topology.ErrNoPath) || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	p := vlantest.Must(topology.NewPaths(vlantest.Must(topology.FatTree(8, 4, 4))))
	path := make([]topology.Hop, 0, 8)
	if n := testing.AllocsPerRun(100, func() { path, _ = p.Append(path[:0], 0, 31, 3) }); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

func ExampleTopology_Path() {
	net, err := topology.FatTree(4, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, vid := range []transport.VID{1, 2} {
		path, _ := net.Path(2, 8, vid)
		fmt.Println(vid, net.PathName(path))
	}
	// Output:
	// 1 leaf0>top0>leaf2
	// 2 leaf0>top1>leaf2
}
