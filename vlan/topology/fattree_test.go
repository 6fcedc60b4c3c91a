package topology_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/topology"
)

func TestVFREC_2_2_FatTree_OneVIDPerTopSwitch(t *testing.T) {
	for leaves := 1; leaves <= 7; leaves++ {
		for tops := 1; tops <= 5; tops++ {
			net := vlantest.Must(topology.FatTree(leaves, tops, 3))
			if err := net.Validate(); err != nil {
				t.Fatal(err)
			}
			if len(net.VLANs) != tops || len(net.Links) != leaves*tops || len(net.Hosts) != 3*leaves || len(net.Switches) != leaves+tops {
				t.Errorf("%dx%d: %d VLANs, %d links, %d hosts, %d switches", leaves, tops, len(net.VLANs), len(net.Links), len(net.Hosts), len(net.Switches))
			}
			for i, v := range net.VLANs {
				if int(v.VID) != i+1 || len(v.Links) != leaves {
					t.Errorf("%dx%d: VLAN %d is VID %d with %d links", leaves, tops, i, v.VID, len(v.Links))
				}
				for _, l := range v.Links {
					if net.Links[l].B != leaves+i {
						t.Errorf("%dx%d: VID %d has link %s", leaves, tops, v.VID, net.LinkName(l))
					}
				}
			}
		}
	}
}

func TestTree(t *testing.T) {
	for _, c := range []struct {
		branches                        []int
		switches, links, hosts, longest int
	}{
		{[]int{16}, 1, 0, 16, 0},
		{[]int{4, 4}, 5, 4, 16, 2},
		{[]int{2, 3, 4}, 9, 8, 24, 4},
		{[]int{2, 2, 2, 1}, 15, 14, 8, 6},
	} {
		net := vlantest.Must(topology.Tree(c.branches...))
		if err := net.Validate(); err != nil {
			t.Errorf("%v: %v", c.branches, err)
		}
		if len(net.Switches) != c.switches || len(net.Links) != c.links || len(net.Hosts) != c.hosts || len(net.VLANs) != 1 {
			t.Errorf("%v: %d switches, %d links, %d hosts, %d VLANs", c.branches, len(net.Switches), len(net.Links), len(net.Hosts), len(net.VLANs))
		}
		if path := vlantest.Must(net.Path(0, c.hosts-1, 1)); len(path) != c.longest {
			t.Errorf("%v: %s, want %d hops", c.branches, net.PathName(path), c.longest)
		}
	}
}

// Pods of leaves of hosts: a path climbs as far as it must, on every VID, and every cable is in a
// VLAN.
func TestFatTreeOfThreeLevels(t *testing.T) {
	for _, c := range []struct{ pods, leaves, mids, tops, hosts int }{{2, 2, 2, 2, 2}, {4, 3, 2, 1, 2}, {3, 1, 4, 2, 3}, {1, 4, 2, 3, 1}, {5, 2, 1, 3, 2}} {
		net := vlantest.Must(topology.FatTreeOf(topology.Level{Down: c.hosts, Up: 1}, topology.Level{Down: c.leaves, Up: c.mids}, topology.Level{Down: c.pods, Up: c.tops}))
		if err := net.Validate(); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		switches := c.pods*c.leaves + c.pods*c.mids + c.mids*c.tops
		links := c.pods*c.leaves*c.mids + c.pods*c.mids*c.tops
		if len(net.VLANs) != c.mids*c.tops || len(net.Switches) != switches || len(net.Links) != links {
			t.Errorf("%v: %d VLANs, %d switches, %d links", c, len(net.VLANs), len(net.Switches), len(net.Links))
		}
		used := make([]bool, links)
		for _, v := range net.VLANs {
			for _, l := range v.Links {
				used[l] = true
			}
		}
		for l, is := range used {
			if !is {
				t.Errorf("%v: link %s is in no VLAN", c, net.LinkName(l))
			}
		}
		p := vlantest.Must(topology.NewPaths(net))
		for a := range net.Hosts {
			for b := range net.Hosts {
				want := 0
				switch leafA, leafB := a/c.hosts, b/c.hosts; {
				case leafA/c.leaves != leafB/c.leaves:
					want = 4
				case leafA != leafB:
					want = 2
				}
				for _, v := range net.VLANs {
					if path := vlantest.Must(p.Append(nil, a, b, v.VID)); len(path) != want {
						t.Errorf("%v: %d to %d on VID %d: %s, want %d hops", c, a, b, v.VID, net.PathName(path), want)
					}
				}
			}
		}
	}
}

func TestGeneratorsRefuseNothing(t *testing.T) {
	for what, err := range map[string]error{
		"no level":          errorOf(topology.FatTreeOf()),
		"no host":           errorOf(topology.Flat(0)),
		"no leaf":           errorOf(topology.FatTree(0, 2, 2)),
		"no top":            errorOf(topology.FatTree(2, 0, 2)),
		"hosts of 2 cables": errorOf(topology.FatTreeOf(topology.Level{Down: 2, Up: 2})),
	} {
		if !errors.Is(err, topology.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func ExampleFatTree() {
	net, err := topology.FatTree(4, 2, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range net.VLANs {
		fmt.Print("VID ", v.VID, ":")
		for _, l := range v.Links {
			fmt.Print(" ", net.LinkName(l))
		}
		fmt.Println()
	}
	// Output:
	// VID 1: leaf0-top0 leaf1-top0 leaf2-top0 leaf3-top0
	// VID 2: leaf0-top1 leaf1-top1 leaf2-top1 leaf3-top1
}
