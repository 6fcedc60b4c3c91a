package vlan_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rawlane/rawlane/vlan"
)

func TestTrafficValidate(t *testing.T) {
	for _, c := range []struct {
		what  string
		flows vlan.Traffic
		want  string
	}{
		{"beyond the nodes", vlan.Traffic{{0, 4, 1}}, "bad traffic: flow 0>4: want nodes 0 to 3"},
		{"below the nodes", vlan.Traffic{{-1, 2, 1}}, "bad traffic: flow -1>2: want nodes 0 to 3"},
		{"to itself", vlan.Traffic{{2, 2, 1}}, "bad traffic: flow 2>2: a node's own messages need no cable"},
		{"no rate", vlan.Traffic{{0, 1, 0}}, "bad traffic: flow 0>1: rate 0 (want more than 0)"},
		{"not a rate", vlan.Traffic{{0, 1, vlan.Rate(math.NaN())}}, "bad traffic: flow 0>1: rate NaN (want more than 0)"},
		{"endless", vlan.Traffic{{0, 1, vlan.Rate(math.Inf(1))}}, "bad traffic: flow 0>1: rate +Inf (want more than 0)"},
		{"twice", vlan.Traffic{{0, 1, 1}, {0, 1, 2}}, "bad traffic: flow 0>1 comes after 0>1 (want each once, sorted)"},
		{"not sorted", vlan.Traffic{{1, 0, 1}, {0, 1, 2}}, "bad traffic: flow 0>1 comes after 1>0 (want each once, sorted)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if err := c.flows.Validate(4); !errors.Is(err, vlan.ErrBadTraffic) || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
	if err := (vlan.Traffic{{0, 1, 1}, {1, 0, 1}, {1, 3, 2}}).Validate(4); err != nil {
		t.Error(err)
	}
}

func ExampleTraffic_Normalise() {
	measured := vlan.Traffic{{3, 0, 100 * vlan.Mbps}, {0, 1, vlan.Gbps}, {3, 0, 150 * vlan.Mbps}, {2, 1, 0}}
	fmt.Println(measured.Normalise())
	// Output: [{0 1 1G} {3 0 250M}]
}

func TestMatrixThereAndBack(t *testing.T) {
	all := must(vlan.Pattern("all", 6))
	m := all.Matrix(6)
	if m[2][5] != all[0].Rate || m[3][3] != 0 {
		t.Errorf("matrix %v", m)
	}
	if got := vlan.TrafficOf(m); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("%v\nwant %v", got, all)
	}
}
