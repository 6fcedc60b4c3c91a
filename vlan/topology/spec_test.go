package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/topology"
)

func TestSpecsAreTheGenerators(t *testing.T) {
	fast := vlantest.Must(topology.FatTree(4, 4, 4))
	fast.SetRates(topology.Gbps, 10*topology.Gbps)
	slow := vlantest.Must(topology.Tree(2, 2))
	slow.SetRates(100*topology.Mbps, 100*topology.Mbps)
	for spec, want := range map[string]*topology.Topology{
		"flat:16":           vlantest.Must(topology.Flat(16)),
		"tree:4x4":          vlantest.Must(topology.Tree(4, 4)),
		"tree:2x3x4":        vlantest.Must(topology.Tree(2, 3, 4)),
		"vbft:3x2x5":        vlantest.Must(topology.FatTree(3, 2, 5)),
		"vbft3:4x3x2x5x6":   vlantest.Must(topology.FatTreeOf(topology.Level{Down: 6, Up: 1}, topology.Level{Down: 3, Up: 2}, topology.Level{Down: 4, Up: 5})),
		"vbft:4x4x4@1G/10G": fast,
		"tree:2x2@100M":     slow,
	} {
		got, err := topology.Parse(spec)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", spec, got, err)
		}
	}
}

// wrongSpecs are specs that are refused, and why.
var wrongSpecs = map[string]string{
	"mesh:4x4":               `there is no "mesh"`,
	"":                       `there is no ""`,
	"vbft:4x4":               `vbft takes 3 numbers, not 2`,
	"tree:4":                 `tree takes 2 to 16 numbers, not 1`,
	"flat:0":                 `"0": want a number of 1 to 1048576`,
	"flat:-1":                `"-1": want a number of 1 to 1048576`,
	"flat:":                  `"": want a number of 1 to 1048576`,
	"tree:4x":                `"": want a number of 1 to 1048576`,
	"vbft:4x4x4@":            `rate "": want bits per second as 100M, 1G or 2.5G`,
	"vbft:4x4x4@1G/fast":     `rate "fast": want bits per second as 100M, 1G or 2.5G`,
	"vbft:4x4095x4":          `too large: more than 4094 top switches, one for each VID`,
	"vbft3:2x2x100x100x2":    `too large: more than 4094 top switches, one for each VID`,
	"tree:1048576x2":         `too large: more than 1048576 hosts`,
	"tree:1048576x2x1":       `too large: more than 1048576 leaf switches`,
	"vbft:1048576x1x1":       `too large: more than 1048576 switches`,
	"vbft:1000x4094x1":       `too large: more than 1048576 links`,
	"vbft3:1x1x64x64x1":      `too large: more than 4094 top switches, one for each VID`,
	"vbft3:1x10000x1x4000x1": `too large: more than 16777216 links in all VLANs together`,
	"vbft3:127x1x4094x1x1":   `too large: more than 67108864 switches, each counted once for each VLAN`,
	"vbft:4x4x4@fast/1G":     `rate "fast": want bits per second as 100M, 1G or 2.5G`,
}

func TestSpecsSayWhatIsWrong(t *testing.T) {
	for spec, want := range wrongSpecs {
		_, err := topology.Parse(spec)
		full := fmt.Sprintf("topology %q: bad topology: %s (there are: %s)", spec, want, topology.Specs)
		if !errors.Is(err, topology.ErrInvalid) || err.Error() != full {
			t.Errorf("%v\nwant %s", err, full)
		}
	}
}

// All numbers of sixteen levels are allowed one by one; together they are too much.
func TestSpecsOfManyLevelsAreBounded(t *testing.T) {
	if _, err := topology.Parse("tree:" + strings.Repeat("1048576x", 15) + "1048576"); !errors.Is(err, topology.ErrInvalid) {
		t.Error(err)
	}
}

// Any text is a valid network or an error that is ErrInvalid. Networks that are large are left out:
// they are made, and take their time.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"flat:16", "tree:4x4", "tree:2x3x4", "vbft:3x2x5", "vbft3:4x3x2x5x6", "vbft:4x4x4@1G/10G", "tree:2x2@100M", "flat:1@2.5"} {
		f.Add(spec)
	}
	for _, spec := range slices.Sorted(maps.Keys(wrongSpecs)) {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		size := 1
		for _, word := range strings.FieldsFunc(spec, func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.Atoi(word); err == nil && !strings.Contains(spec, "@"+word) && !strings.Contains(spec, "/"+word) {
				size = min(size*min(max(1, n), 1<<14), 1<<16)
			}
		}
		if _, known := wrongSpecs[spec]; size > 10_000 && !known {
			return
		}
		network, err := topology.Parse(spec)
		if err != nil {
			if !errors.Is(err, topology.ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", spec, err)
			}
			return
		}
		if err := network.Validate(); err != nil || !topology.IsSpec(spec) {
			t.Errorf("%q: %v", spec, err)
		}
	})
}

func TestIsTopologySpec(t *testing.T) {
	for s, want := range map[string]bool{"vbft:4x4x4": true, "flat:nonsense": true, "net.yaml": false, "flat": false, "c:net": false} {
		if got := topology.IsSpec(s); got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
}
