package mbcf

import (
	"math"
	"testing"
)

// The fitted model is within the tolerance of each experiment, whatever the seed.
func TestMBCF_2_3_Tables1And2(t *testing.T) {
	m := Fitted()
	for _, e := range Experiments() {
		for seed := range uint64(10) {
			for _, r := range e.Run(&m, seed) {
				if seed == 1 {
					t.Logf("%s, %d bytes: %.2f, the paper %.2f: %+.1f %%", e.Title, r.Bytes, r.Model, r.Paper, 100*r.Deviation())
				}
				if math.Abs(r.Deviation()) > e.Tolerance {
					t.Errorf("%s, %d bytes, seed %d: %.2f, the paper %.2f: %+.1f %%",
						e.Title, r.Bytes, seed, r.Model, r.Paper, 100*r.Deviation())
				}
			}
		}
	}
}
