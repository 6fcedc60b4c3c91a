package launch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// Faults are losses and damage that a verb injects at each node.
type Faults struct {
	Loss      float64 `json:"loss"`
	Duplicate float64 `json:"duplicate"`
	Reorder   float64 `json:"reorder"`
	Corrupt   float64 `json:"corrupt"`
	Seed      uint64  `json:"seed"`
}

// FaultFlags defines the flags of verbs that survive faults.
func (c *ClusterFlags) FaultFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Float64Var(&c.Faults.Loss, "loss", 0, "share of received frames to lose")
	f.Float64Var(&c.Faults.Duplicate, "duplicate", 0, "share of received frames to double")
	f.Float64Var(&c.Faults.Reorder, "reorder", 0, "share of received frames that others overtake")
	f.Float64Var(&c.Faults.Corrupt, "corrupt", 0, "share of received frames with a bit flipped")
	f.Uint64Var(&c.Faults.Seed, "seed", 1, "seed of the faults: the same frames suffer the same")
}

// faultShare is the share of frames with one kind of fault, and its flag.
type faultShare struct {
	name  string
	share float64
}

func (f *Faults) shares() []faultShare {
	return []faultShare{{"loss", f.Loss}, {"duplicate", f.Duplicate}, {"reorder", f.Reorder}, {"corrupt", f.Corrupt}}
}

func (f *Faults) none() bool {
	return !slices.ContainsFunc(f.shares(), func(s faultShare) bool { return s.share != 0 })
}

// String is the faults in the heading of a table: "loss 0.01, reorder 0.05, seed 1", or "".
func (f *Faults) String() string {
	var words []string
	for _, s := range f.shares() {
		if s.share != 0 {
			words = append(words, fmt.Sprintf("%s %v", s.name, s.share))
		}
	}
	if len(words) > 0 {
		words = append(words, fmt.Sprintf("seed %d", f.Seed))
	}
	return strings.Join(words, ", ")
}

func (f *Faults) validate() error {
	for _, s := range f.shares() {
		if !(s.share >= 0 && s.share < 1) {
			return cli.Misuse("--%s %v: want 0 to less than 1", s.name, s.share)
		}
	}
	return nil
}

// wrapAll puts the faults around a node's links, if there are any.
func (f *Faults) wrapAll(links []transport.Link, node int) error {
	if f.none() {
		return nil
	}
	cfg := fault.Config{Loss: f.Loss, Duplicate: f.Duplicate, Reorder: f.Reorder, Corrupt: f.Corrupt}
	for i, l := range links {
		faulty, err := fault.New(l, rand.New(rand.NewPCG(f.Seed, uint64(node))), cfg)
		if err != nil {
			return err
		}
		links[i] = faulty
	}
	return nil
}
