package topology_test

import (
	"math"
	"testing"

	"github.com/rawlane/rawlane/vlan/topology"
)

func TestRateText(t *testing.T) {
	for text, want := range map[string]topology.Rate{
		"1G": topology.Gbps, "2.5G": 2.5 * topology.Gbps, "100M": 100 * topology.Mbps, "1T": 1e12, "9600": 9600, "56K": 56000, "0.5": 0.5,
	} {
		got, err := topology.ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, float64(got), err, float64(want))
		}
	}
	for _, text := range []string{"", "G", "0G", "-1G", "1g", "1GB", "1e3", "NaN", "Inf", "0x1G", "1 G", "1.2.3M", "+1"} {
		if got, err := topology.ParseRate(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestRateComesBackFromItsText(t *testing.T) {
	for _, r := range []topology.Rate{1, 0.1, 999, 1000, 1234, 1e9 / 3, 1e9 / 15, 2.5e9, 4e11, 1e12, 123456789012345, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		got, err := topology.ParseRate(r.String())
		if err != nil || got != r {
			t.Errorf("%v: text %s, back %v, %v", float64(r), r, float64(got), err)
		}
	}
	for r, want := range map[topology.Rate]string{1e9: "1G", 2.5e9: "2.5G", 1e8: "100M", 0: "0", 1e12: "1T", 1500: "1.5K"} {
		if r.String() != want {
			t.Errorf("%v: %s, want %s", float64(r), r, want)
		}
	}
}
