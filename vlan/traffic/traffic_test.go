package traffic_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func TestTrafficValidate(t *testing.T) {
	for _, c := range []struct {
		what  string
		flows traffic.Matrix
		want  string
	}{
		{"beyond the nodes", traffic.Matrix{{0, 4, 1}}, "bad traffic: flow 0>4: want nodes 0 to 3"},
		{"below the nodes", traffic.Matrix{{-1, 2, 1}}, "bad traffic: flow -1>2: want nodes 0 to 3"},
		{"to itself", traffic.Matrix{{2, 2, 1}}, "bad traffic: flow 2>2: a node's own messages need no cable"},
		{"no rate", traffic.Matrix{{0, 1, 0}}, "bad traffic: flow 0>1: rate 0 (want more than 0)"},
		{"not a rate", traffic.Matrix{{0, 1, topology.Rate(math.NaN())}}, "bad traffic: flow 0>1: rate NaN (want more than 0)"},
		{"endless", traffic.Matrix{{0, 1, topology.Rate(math.Inf(1))}}, "bad traffic: flow 0>1: rate +Inf (want more than 0)"},
		{"twice", traffic.Matrix{{0, 1, 1}, {0, 1, 2}}, "bad traffic: flow 0>1 comes after 0>1 (want each once, sorted)"},
		{"not sorted", traffic.Matrix{{1, 0, 1}, {0, 1, 2}}, "bad traffic: flow 0>1 comes after 1>0 (want each once, sorted)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if err := c.flows.Validate(4); !errors.Is(err, traffic.ErrInvalid) || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
	if err := (traffic.Matrix{{0, 1, 1}, {1, 0, 1}, {1, 3, 2}}).Validate(4); err != nil {
		t.Error(err)
	}
}

func ExampleMatrix_Normalise() {
	measured := traffic.Matrix{{3, 0, 100 * topology.Mbps}, {0, 1, topology.Gbps}, {3, 0, 150 * topology.Mbps}, {2, 1, 0}}
	fmt.Println(measured.Normalise())
	// Output: [{0 1 1G} {3 0 250M}]
}
