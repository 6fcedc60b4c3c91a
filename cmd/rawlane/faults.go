package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// faults are what frames suffer on purpose, at each node.
type faults struct {
	Loss      float64 `json:"loss"`
	Duplicate float64 `json:"duplicate"`
	Reorder   float64 `json:"reorder"`
	Corrupt   float64 `json:"corrupt"`
	Seed      uint64  `json:"seed"`
}

// faultFlags are for verbs that survive faults.
func (p *place) faultFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Float64Var(&p.faults.Loss, "loss", 0, "share of received frames to lose")
	f.Float64Var(&p.faults.Duplicate, "duplicate", 0, "share of received frames to double")
	f.Float64Var(&p.faults.Reorder, "reorder", 0, "share of received frames that others overtake")
	f.Float64Var(&p.faults.Corrupt, "corrupt", 0, "share of received frames with a bit flipped")
	f.Uint64Var(&p.faults.Seed, "seed", 1, "seed of the faults: the same frames suffer the same")
}

func (f *faults) none() bool {
	return f.Loss == 0 && f.Duplicate == 0 && f.Reorder == 0 && f.Corrupt == 0
}

func (f *faults) validate() error {
	for name, share := range map[string]float64{"loss": f.Loss, "duplicate": f.Duplicate, "reorder": f.Reorder, "corrupt": f.Corrupt} {
		if !(share >= 0 && share < 1) {
			return misuse("--%s %v: want 0 to less than 1", name, share)
		}
	}
	return nil
}

// wrap puts faults around a node's link, if there are any.
func (f *faults) wrap(l transport.Link, node int) (transport.Link, error) {
	if f.none() {
		return l, nil
	}
	return fault.New(l, rand.New(rand.NewPCG(f.Seed, uint64(node))), fault.Config{Loss: f.Loss, Duplicate: f.Duplicate, Reorder: f.Reorder, Corrupt: f.Corrupt})
}

func encodeLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
