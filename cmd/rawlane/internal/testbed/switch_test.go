package testbed

import (
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// A trunk takes the VIDs as route vlans prints them, ranges among them.
func TestParsePort_TrunkRanges(t *testing.T) {
	p, err := parsePort("leaf0.1:trunk=1-3,7,4093-4094")
	if err != nil {
		t.Fatal(err)
	}
	if want := []transport.VID{1, 2, 3, 7, 4093, 4094}; !slices.Equal(p.kind.VIDs, want) || !p.kind.TaggedOnly {
		t.Errorf("a trunk of %v, tagged alone %v; want %v", p.kind.VIDs, p.kind.TaggedOnly, want)
	}
}
