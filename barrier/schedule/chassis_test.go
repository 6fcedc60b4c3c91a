package schedule

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The formula has no gap. It is an upper estimate up to a gap of six messages, and no longer one at
// seven.
func TestSCMD_5_2_TheFormulaIsForShortGaps(t *testing.T) {
	over := func(p LogP, gap float64, ranks, between int) bool {
		tsr := p.Os + p.L + p.Or
		p.Gap = time.Duration(gap * float64(tsr))
		formula := time.Duration(4+3*between)*Star().Cost(3, p) + time.Duration(3*(between+1))*tsr
		return ChassisRepeated().Cost(ranks, p) > formula
	}
	machines := []LogP{DefaultLogP, mcd, {Os: us}, {L: us}, {Or: us}, {Os: us, L: us}, {L: us, Or: us}, {Os: us, Or: us}}
	rng := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		part := func() time.Duration { return time.Duration(1 + rng.IntN(20_000)) }
		machines = append(machines, LogP{Os: part(), L: part(), Or: part()})
	}
	some := false
	for _, p := range machines {
		for gap := 0.; gap <= 6; gap += .5 {
			if over(p, gap, 12, 0) {
				t.Errorf("%+v with a gap of %v messages: 12 ranks cost more than the formula has", p, gap)
			}
		}
		some = some || over(p, 7, 12, 0)
	}
	if !some {
		t.Error("12 ranks never cost more than the formula has with a gap of seven messages: docs/papers/scmd.md says so")
	}
	for _, p := range machines[:8] {
		for _, gap := range []float64{1, 3, 6} {
			if over(p, gap, 30, 1) || over(p, gap, 66, 2) {
				t.Errorf("%+v with a gap of %v messages: 30 or 66 ranks cost more than the formula has", p, gap)
			}
		}
	}
}
