package topology_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/topology"
)

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		what   string
		damage func(*topology.Topology)
		want   string
	}{
		{"a loop", func(t *topology.Topology) { t.VLANs[1].Links = []int{0, 1, 2, 3, 5} }, "VLAN 2: loop top1-leaf0-top0-leaf1-top1"},
		{"two cables side by side", func(t *topology.Topology) {
			t.Links = append(t.Links, topology.Link{A: 0, B: 3, Rate: 1})
			t.VLANs[0].Links = append(t.VLANs[0].Links, 6)
		}, "VLAN 1: loop leaf0-top0-leaf0"},
		{"a leaf that is cut off", func(t *topology.Topology) { t.VLANs[1].Links = []int{1, 5} }, "VLAN 2: leaf1, where host node2 is, is cut off from leaf0"},
		{"a piece of its own", func(t *topology.Topology) {
			t.Switches = append(t.Switches, "x", "y")
			t.Links = append(t.Links, topology.Link{A: 5, B: 6, Rate: 1})
			t.VLANs[0].Links = append(t.VLANs[0].Links, 6)
		}, "VLAN 1: link x-y is cut off from leaf0"},
		{"no switch", func(t *topology.Topology) { t.Switches = nil }, "no switch (want one at least)"},
		{"VID 0", func(t *topology.Topology) { t.VLANs[0].VID = 0 }, "VLAN 0: want a VID of 1 to 4094"},
		{"VID 4095", func(t *topology.Topology) { t.VLANs[1].VID = 4095 }, "VLAN 4095: want a VID of 1 to 4094"},
		{"one VID twice", func(t *topology.Topology) { t.VLANs[1].VID = 1 }, "VLAN 1 comes after VLAN 1 (want each once, sorted)"},
		{"VIDs not sorted", func(t *topology.Topology) { t.VLANs[0].VID = 3 }, "VLAN 2 comes after VLAN 3 (want each once, sorted)"},
		{"a link that is not there", func(t *topology.Topology) { t.VLANs[0].Links[2] = 6 }, "VLAN 1: link 6 (want 0 to 5)"},
		{"links not sorted", func(t *topology.Topology) { t.VLANs[0].Links[2] = 0 }, "VLAN 1: link 0 comes after link 2 (want each once, sorted)"},
		{"a link twice", func(t *topology.Topology) { t.VLANs[0].Links = []int{0, 2, 2, 4} }, "VLAN 1: link 2 comes after link 2 (want each once, sorted)"},
		{"a link to nowhere", func(t *topology.Topology) { t.Links[3].B = 5 }, "link 3: switches 1 and 5 (want 0 to 4)"},
		{"a link to itself", func(t *topology.Topology) { t.Links[3].B = 1 }, "link 3: both ends are leaf1"},
		{"a link without a rate", func(t *topology.Topology) { t.Links[3].Rate = 0 }, "link leaf1-top1: rate 0 (want more than 0)"},
		{"a rate that is none", func(t *topology.Topology) { t.Links[3].Rate = topology.Rate(math.NaN()) }, "link leaf1-top1: rate NaN (want more than 0)"},
		{"a host nowhere", func(t *topology.Topology) { t.Hosts[1].Switch = -1 }, "host node1: switch -1 (want 0 to 4)"},
		{"a host without a rate", func(t *topology.Topology) { t.Hosts[1].Rate = -1 }, "host node1: rate -1 (want more than 0)"},
		{"no name", func(t *topology.Topology) { t.Hosts[1].Name = "" }, "a host without a name"},
		{"a name with a space", func(t *topology.Topology) { t.Switches[1] = "leaf 1" }, `switch "leaf 1": a name with spaces or what cannot be printed`},
		{"a name that is not text", func(t *topology.Topology) { t.Switches[1] = "leaf\xff" }, `switch "leaf\xff": a name with spaces or what cannot be printed`},
		{"one name for two links", func(t *topology.Topology) {
			t.Switches = []string{"a", "a-b", "b-c", "c", "d"}
			t.Links[0], t.Links[1] = topology.Link{A: 0, B: 2, Rate: 1}, topology.Link{A: 1, B: 3, Rate: 1}
		}, "link a-b-c: the name is taken already (call a switch otherwise)"},
		{"one name twice", func(t *topology.Topology) { t.Hosts[1].Name = "leaf0" }, "host leaf0: the name is taken already"},
	} {
		t.Run(c.what, func(t *testing.T) {
			net := vlantest.Must(topology.FatTree(3, 2, 2))
			c.damage(net)
			err := net.Validate()
			if !errors.Is(err, topology.ErrInvalid) || err.Error() != "bad topology: "+c.want {
				t.Errorf("%v\nwant bad topology: %s", err, c.want)
			}
		})
	}
}

func TestATopologyWithoutVLANsIsValid(t *testing.T) {
	net := vlantest.Must(topology.FatTree(3, 2, 2))
	net.VLANs = nil
	if err := net.Validate(); err != nil {
		t.Error(err)
	}
}

// Paths has memory for each switch and VLAN: a topology of too many of both, which takes a file of
// a few megabytes, is refused before any is taken.
func TestATopologyOfManySwitchesAndVLANsIsBounded(t *testing.T) {
	net := &topology.Topology{}
	for i := range 1 << 16 {
		net.Switches = append(net.Switches, fmt.Sprint("s", i))
	}
	for vid := range transport.VID(1<<10 + 1) {
		net.VLANs = append(net.VLANs, topology.VLAN{VID: vid + 1})
	}
	want := "bad topology: too large: more than 67108864 switches, each counted once for each VLAN"
	if err := net.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v, want %s", err, want)
	}
	if _, err := topology.NewPaths(net); err == nil || err.Error() != want {
		t.Errorf("NewPaths: %v, want %s", err, want)
	}
	if _, err := net.Path(0, 0, 1); errors.Is(err, topology.ErrInvalid) {
		t.Errorf("a path in one VLAN: %v", err)
	}
}

func TestSecondCableHasANameOfItsOwn(t *testing.T) {
	net := vlantest.Must(topology.FatTree(3, 2, 2))
	net.Links = append(net.Links, net.Links[1])
	if first, second := net.LinkName(1), net.LinkName(6); first != "leaf0-top1" || second != "leaf0-top1#2" {
		t.Errorf("%s, %s", first, second)
	}
	net.Links[6].A, net.Links[6].B = net.Links[6].B, net.Links[6].A
	if first, second := net.LinkName(1), net.LinkName(6); first != "leaf0-top1" || second != "leaf0-top1#2" {
		t.Errorf("written the other way round: %s, %s", first, second)
	}
}
