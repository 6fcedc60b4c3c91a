package launch

import (
	"fmt"
	"math/rand/v2"
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

// faultKind is one kind of fault: its flag and the share of frames that suffer it.
type faultKind struct {
	name, usage string
	share       *float64
}

func (f *Faults) kinds() []faultKind {
	return []faultKind{
		{"loss", "share of received frames to lose", &f.Loss},
		{"duplicate", "share of received frames to double", &f.Duplicate},
		{"reorder", "share of received frames that others overtake", &f.Reorder},
		{"corrupt", "share of received frames with a bit flipped", &f.Corrupt},
	}
}

// FaultFlags defines the flags of verbs that survive faults.
func (c *ClusterFlags) FaultFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	for _, k := range c.Faults.kinds() {
		f.Float64Var(k.share, k.name, 0, k.usage)
	}
	f.Uint64Var(&c.Faults.Seed, "seed", 1, "seed of the faults: the same frames suffer the same")
}

// String is the faults in the heading of a table: "loss 0.01, reorder 0.05, seed 1", or "".
func (f *Faults) String() string {
	var words []string
	for _, k := range f.kinds() {
		if *k.share != 0 {
			words = append(words, fmt.Sprintf("%s %v", k.name, *k.share))
		}
	}
	if len(words) > 0 {
		words = append(words, fmt.Sprintf("seed %d", f.Seed))
	}
	return strings.Join(words, ", ")
}

func (f *Faults) validate() error {
	for _, k := range f.kinds() {
		if !(*k.share >= 0 && *k.share < 1) {
			return cli.Misuse("--%s %v: want 0 to less than 1", k.name, *k.share)
		}
	}
	return nil
}

// wrapAll puts the faults around a node's links, if there are any.
func (f *Faults) wrapAll(links []transport.Link, node int) error {
	if f.String() == "" {
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
