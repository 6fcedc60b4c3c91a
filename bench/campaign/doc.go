//go:build linux

// Campaign runs what docs/reliability.md promises, at full size: simulations of the cores in
// virtual time, searches of all states, mutants that the tests must catch, fuzzing, and clusters of
// real sockets under faults.
//
//	go run ./bench/campaign --commit                       what .ci/run runs, some minutes
//	go run ./bench/campaign --nightly --hours 8            what takes a night
//	go run ./bench/campaign --release --layer L1,L3        the full size of two layers
//
// It works in small pieces, in turns, and keeps in a state file what is done: a run that is stopped
// goes on where it was, at another commit, too, with the units whose package's tests are the same
// there, to the byte. A violation is printed with one line that repeats it, and the exit status
// is 1.
//
// # How it is built
//
//	layers.go     the table: each unit of each layer, with its goals
//	unit.go       what a unit is, and the result of a piece of its work
//	run.go        turns, progress, the end
//	state.go      the file
//	report.go     the table of figures, and its JSON
//	testbin.go    units that are tests of a package, run with seeds
//	scripts.go    the unit of frame scripts
//	attack.go     units that are attacks of a hostile station
//	soak.go       the unit that looks at memory for a long time
//	mutants.go    units that are mutants; the list is testdata/mutants.txt
package main
