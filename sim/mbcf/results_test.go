package mbcf

import (
	"math"
	"testing"
	"time"
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

// What docs/papers/mbcf.md says of how free the fit is. Acknowledgements: 12 us keep table 2 within
// its tolerance, and neither half nor twice of it does. The window: from 3 on table 2 is the same,
// and with 2 hardly worse; of 2 to 6 all are within 5 % of what MBCF itself has, 8 is not.
func TestMBCF_2_3_HowFreeTheFitIs(t *testing.T) {
	table := HalfDuplexStreams()
	own := Experiments()[5]
	worst := func(e Experiment, window int, delay time.Duration) (w float64) {
		m := Fitted()
		m.Window, m.AckDelay = window, delay
		for _, r := range e.Run(&m, 1) {
			w = max(w, math.Abs(r.Deviation()))
		}
		return w
	}
	const fitted = 12 * time.Microsecond
	for _, delay := range []time.Duration{fitted / 2, 2 * fitted} {
		if w := worst(table, 4, delay); w < .25 {
			t.Errorf("acknowledgements after %v: within %.1f %%, want a quarter", delay, 100*w)
		}
	}
	for window, want := range map[int]float64{2: .184, 3: .161, 4: .161, 6: .161, 16: .161} {
		if w := worst(table, window, fitted); math.Abs(w-want) > .001 {
			t.Errorf("window %d: table 2 within %.1f %%, want %.1f", window, 100*w, 100*want)
		}
	}
	for window, want := range map[int]float64{2: .011, 3: .018, 4: .019, 6: .031, 8: .076} {
		if w := worst(own, window, fitted); math.Abs(w-want) > .001 {
			t.Errorf("window %d: %s within %.1f %%, want %.1f", window, own.Title, 100*w, 100*want)
		}
	}
}

// A row whose number went into the model is no test of it: its parameter moves it alike.
func TestMBCF_2_1_PeaksAreInputs(t *testing.T) {
	m := Fitted()
	inputs := 0
	for _, e := range Experiments() {
		for _, r := range e.Run(&m, 1) {
			if r.Input {
				inputs++
				if math.Abs(r.Deviation()) > .001 {
					t.Errorf("%s, %d bytes: %.3f, and the model has it of the paper's %.3f", e.Title, r.Bytes, r.Model, r.Paper)
				}
			}
		}
	}
	if inputs != 2 {
		t.Errorf("%d inputs, want the peaks of MBCF and of MPI", inputs)
	}
}
