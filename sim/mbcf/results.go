package mbcf

import (
	"slices"
	"time"
)

// Experiment is what the paper measured between two workstations.
type Experiment struct {
	Title     string
	Source    string // in the paper
	Unit      string
	Tolerance float64 // of the model's deviation, a share
	Paper     []Value
	Inputs    []int // sizes whose values a parameter of the model is derived from: they test nothing

	run func(m *Model, bytes int, seed uint64) float64
}

// Value is what was measured of messages of a size.
type Value struct {
	Bytes int
	Value float64
}

// RoundTrips returns table 1.
func RoundTrips() Experiment {
	return Experiment{
		Title: "MPI: round trip", Source: "§2.3, table 1", Unit: "us", Tolerance: .05,
		Paper: []Value{{0, 71}, {4, 85}, {16, 85}, {64, 106}, {256, 168}, {1024, 438}, {4096, 1026}},
		run:   func(m *Model, bytes int, _ uint64) float64 { return micros(m.RoundTrip(bytes)) },
	}
}

// FullDuplexStreams returns the row of table 2 of a network with a switch: one stream, one way.
func FullDuplexStreams() Experiment {
	return Experiment{
		Title: "MPI: bandwidth, full duplex", Source: "§2.3, table 2", Unit: "MB/s", Tolerance: .1,
		Paper: []Value{
			{4, .14}, {16, .57}, {64, 1.90}, {256, 5.33}, {1024, 10.22}, {4096, 11.68}, {16384, 11.77},
			{65536, 11.85}, {262144, 11.85}, {1048576, 11.86},
		},
		Inputs: []int{1048576},
		run:    func(m *Model, bytes int, _ uint64) float64 { return m.FullDuplex(&m.MPI, bytes) },
	}
}

// HalfDuplexStreams returns the row of table 2 of a network with a hub: one stream, one way.
func HalfDuplexStreams() Experiment {
	return Experiment{
		Title: "MPI: bandwidth, half duplex", Source: "§2.3, table 2", Unit: "MB/s", Tolerance: .2,
		Paper: []Value{
			{4, .14}, {16, .53}, {64, 1.82}, {256, 4.72}, {1024, 8.08}, {4096, 9.72}, {16384, 10.15},
			{65536, 9.78}, {262144, 9.96}, {1048576, 10},
		},
		run: func(m *Model, bytes int, seed uint64) float64 { return m.HalfDuplex(&m.MPI, bytes, seed) },
	}
}

// Experiments returns all that the model has: of MPI, and of MBCF itself.
func Experiments() []Experiment {
	return []Experiment{
		RoundTrips(), FullDuplexStreams(), HalfDuplexStreams(),
		{
			Title: "MBCF: latency one way", Source: "§2.1", Unit: "us", Tolerance: .05, Paper: []Value{{4, 24.5}},
			run: func(m *Model, bytes int, _ uint64) float64 { return micros(m.Latency(&m.MBCF, bytes)) },
		},
		{
			Title: "MBCF: bandwidth, full duplex", Source: "§2.1", Unit: "MB/s", Tolerance: .05,
			Paper: []Value{{1408, 11.93}}, Inputs: []int{1408},
			run: func(m *Model, bytes int, _ uint64) float64 { return m.FullDuplex(&m.MBCF, bytes) },
		},
		{
			Title: "MBCF: bandwidth, half duplex", Source: "§2.1", Unit: "MB/s", Tolerance: .05,
			Paper: []Value{{1408, 11.48}},
			run:   func(m *Model, bytes int, seed uint64) float64 { return m.HalfDuplex(&m.MBCF, bytes, seed) },
		},
	}
}

// Result is what the paper has and the model has of messages of a size.
type Result struct {
	Bytes        int
	Paper, Model float64
	Input        bool // of the model: see Experiment.Inputs
}

// Deviation is how much more the model has, a share of what the paper has.
func (r Result) Deviation() float64 { return r.Model/r.Paper - 1 }

// Run returns the results of all sizes. The seed is of what is left to chance: backoffs.
func (e Experiment) Run(m *Model, seed uint64) (all []Result) {
	for _, v := range e.Paper {
		all = append(all, Result{
			Bytes: v.Bytes, Paper: v.Value, Model: e.run(m, v.Bytes, seed), Input: slices.Contains(e.Inputs, v.Bytes),
		})
	}
	return all
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
