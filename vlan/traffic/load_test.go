package traffic_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func TestLoadNamesThePair(t *testing.T) {
	net := vlantest.Must(topology.FatTree(2, 2, 2))
	_, err := traffic.Matrix{{3, 1, topology.Gbps}}.Load(net, func(_, _ int) transport.VID { return 9 })
	if !errors.Is(err, topology.ErrNoPath) || err.Error() != "load: no path: pair 3-1: VID 9 is not in the topology (it has 1-2)" {
		t.Error(err)
	}
	if _, err := (traffic.Matrix{{3, 3, topology.Gbps}}).Load(net, nil); !errors.Is(err, traffic.ErrInvalid) {
		t.Error(err)
	}
}

// A fast cable between switches carries the most, a slow one is the fullest.
func TestMaxLinkIsInProportion(t *testing.T) {
	net := vlantest.Must(topology.FatTree(2, 2, 2))
	net.Links[1].Rate = 100 * topology.Mbps // leaf0-top1
	vid := func(a, b int) transport.VID { return transport.VID(min(a, b) + 1) }
	load := vlantest.Must(traffic.Matrix{{0, 2, topology.Gbps}, {1, 3, 200 * topology.Mbps}}.Load(net, vid))
	if hop, u := load.MaxLink(); net.HopName(hop) != "leaf0>top1" || u != 2 {
		t.Errorf("%s is the fullest, with %v", net.HopName(hop), u)
	}
}

func ExampleMatrix_Load() {
	net, err := topology.FatTree(4, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	demand, err := traffic.Pattern("shift:8", 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	load, err := demand.Load(net, func(_, _ int) transport.VID { return 1 })
	if err != nil {
		fmt.Println(err)
		return
	}
	hop, utilisation := load.MaxLink()
	fmt.Println(net.HopName(hop), utilisation)
	// Output: leaf0>top0 4
}
