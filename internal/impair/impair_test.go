package impair

import (
	"math"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/prng"
)

// Each impairment comes as often as its probability says, to 5 standard deviations, and no other
// comes.
func TestModel_Rates(t *testing.T) {
	const frames, p = 100_000, .03
	for name, x := range map[string]struct {
		model Model
		has   func(Impairments) bool
		only  Impairments
	}{
		"loss":      {Model{Loss: p}, func(i Impairments) bool { return i.Lost }, Impairments{Lost: true}},
		"duplicate": {Model{Duplicate: p}, func(i Impairments) bool { return i.Duplicated }, Impairments{Duplicated: true}},
		"truncate":  {Model{Truncate: p}, func(i Impairments) bool { return i.Truncated }, Impairments{Truncated: true}},
		"corrupt":   {Model{Corrupt: p}, func(i Impairments) bool { return i.Corrupted }, Impairments{Corrupted: true}},
		"delay":     {Model{Delay: p}, func(i Impairments) bool { return i.Delayed }, Impairments{Delayed: true}},
		"reorder":   {Model{Reorder: p}, func(i Impairments) bool { return i.Reordered }, Impairments{Reordered: true}},
	} {
		rng, hits := prng.Source(7), 0
		for range frames {
			i := x.model.Draw(&rng)
			if x.has(i) {
				hits++
			}
			if i != (Impairments{}) && i != x.only {
				t.Fatalf("%s: %+v", name, i)
			}
		}
		if off := math.Abs(float64(hits) - frames*p); off > 5*math.Sqrt(frames*p*(1-p)) {
			t.Errorf("%s: %d of %d frames, want about %v", name, hits, frames, frames*p)
		}
	}
}

func TestModel_NeverAndAlways(t *testing.T) {
	rng := prng.Source(1)
	var none Model
	if i := none.Draw(&rng); i != (Impairments{}) || rng != 1 || !none.IsZero() {
		t.Errorf("no probability: %+v, and the generator is at %d", i, rng)
	}
	all := Model{Loss: 1, Duplicate: 1, Truncate: 1, Corrupt: 1, Delay: 1, Reorder: 1}
	if i := all.Draw(&rng); i != (Impairments{Lost: true}) {
		t.Errorf("a lost frame: %+v", i)
	}
	all.Loss = 0
	if i := all.Draw(&rng); i != (Impairments{Duplicated: true, Truncated: true, Corrupted: true, Delayed: true}) {
		t.Errorf("a delayed frame: %+v", i)
	}
}

func TestModel_Validate(t *testing.T) {
	for _, p := range []float64{-.1, 1.1, math.NaN(), math.Inf(1)} {
		m := Model{Corrupt: p}
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "Corrupt") {
			t.Errorf("%v: %v", p, err)
		}
	}
	if err := (&Model{Loss: 1, Delay: .5}).Validate(); err != nil {
		t.Error(err)
	}
}
