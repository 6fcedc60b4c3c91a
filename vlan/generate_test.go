package vlan_test

import (
	"testing"

	"github.com/rawlane/rawlane/vlan"
)

func TestVFREC_2_2_FatTree_OneVIDPerTopSwitch(t *testing.T) {
	for leaves := 1; leaves <= 7; leaves++ {
		for tops := 1; tops <= 5; tops++ {
			net := must(vlan.FatTree(leaves, tops, 3))
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
