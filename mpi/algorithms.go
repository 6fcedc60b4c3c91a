package mpi

import (
	"fmt"
	"slices"
)

// Algorithm says from how many processes and bytes on a collective operation has an algorithm. All
// processes choose by what they all know: an algorithm is one that all have. A multicast is for
// what fits a frame: 1,024 bytes in all.
type Algorithm struct {
	Operation string // such as allreduce
	Processes int    // of the communicator
	From      int    // bytes that a process has; of an alltoall, that it has for each one
	Crowded   bool   // only where a host has more of the processes than cores
	Name      string
	Source    string
}

// Fits reports whether an operation with so many bytes of each process may have the algorithm.
func (a *Algorithm) Fits(operation string, processes, bytes int, crowded bool) bool {
	return a.Operation == operation && a.isFor(processes, crowded) && a.takes(bytes, processes)
}

// isFor reports whether so many processes may have the algorithm.
func (a *Algorithm) isFor(processes int, crowded bool) bool {
	return processes >= a.Processes && (crowded || !a.Crowded)
}

// takes reports whether the algorithm is for so many bytes of each process.
func (a *Algorithm) takes(bytes, processes int) bool {
	frame := bytes
	if a.Operation == "allgather" && a.Name == byMulticast {
		frame *= processes
	}
	return bytes >= a.From && (frame <= maxMulticast || !a.multicasts())
}

func (a *Algorithm) multicasts() bool { return a.Name == byMulticast || a.Name == byEach }

// Sources.
const (
	thakur  = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)"
	hoefler = "Hoefler, Siebert, Rehm, IPDPS 2007"
)

// Names of algorithms.
const (
	doubling     = "recursive doubling"
	rabenseifner = "halving and doubling"
	bruck        = "dissemination"
	ring         = "ring"
	binomial     = "binomial tree"
	byMulticast  = "multicast"
	byEach       = "multicast by each"
	scattered    = "scattered"
	forwarding   = "store and forward"
)

// algorithms are in the order in which they are looked for: the last one that is for an operation
// counts. From its length on one is the quicker on kernel links: "go run ./bench/algorithms". Among
// few it is the one of fewest steps; in a crowd that of fewest messages, as each waits for
// somebody's turn.
var algorithms = []Algorithm{
	{"allreduce", 0, 0, false, doubling, thakur + ", §4.5"},
	{"allreduce", 2, 0, false, byEach, hoefler},
	{"allreduce", 9, 0, false, doubling, thakur + ", §4.5"},
	{"allreduce", 8, 0, true, byMulticast, hoefler},
	{"allreduce", 0, 32 << 10, false, rabenseifner, thakur + ", §4.5"},
	{"allgather", 0, 0, false, bruck, thakur + ", §4.1"},
	{"allgather", 2, 0, false, byEach, hoefler},
	{"allgather", 9, 0, false, bruck, thakur + ", §4.1"},
	{"allgather", 8, 0, true, byMulticast, hoefler},
	{"allgather", 0, 4 << 10, false, ring, thakur + ", §4.1"},
	{"bcast", 0, 0, false, binomial, thakur + ", §4.2"},
	{"bcast", 2, 0, false, byMulticast, hoefler},
	{"alltoall", 0, 0, false, scattered, thakur + ", §4.3"},
	{"alltoall", 8, 0, false, forwarding, thakur + ", §4.3"},
	{"alltoall", 0, 256, false, scattered, thakur + ", §4.3"},
}

// Algorithms returns the table by which collective operations choose, where there is a choice.
func Algorithms() []Algorithm { return slices.Clone(algorithms) }

// checkAlgorithms checks a table of a user's.
func checkAlgorithms(table []Algorithm) error {
	for _, a := range table {
		known := slices.ContainsFunc(algorithms, func(b Algorithm) bool {
			return a.Operation == b.Operation && a.Name == b.Name
		})
		if !known {
			return fmt.Errorf("Config.Algorithms: %s has no algorithm %q (see mpi.Algorithms)", a.Operation, a.Name)
		}
	}
	return nil
}

// Choose returns the algorithm of a table that an operation has: the last one that fits, or a zero
// Algorithm.
func Choose(table []Algorithm, operation string, processes, bytes int, crowded bool) Algorithm {
	for k := len(table) - 1; k >= 0; k-- {
		if table[k].Fits(operation, processes, bytes, crowded) {
			return table[k]
		}
	}
	return Algorithm{}
}

// choices are the algorithms of a table that processes may have: by operation, the last one first.
func choices(table []Algorithm, processes int, crowded bool) map[string][]Algorithm {
	of := make(map[string][]Algorithm)
	for k := len(table) - 1; k >= 0; k-- {
		if a := table[k]; a.isFor(processes, crowded) {
			of[a.Operation] = append(of[a.Operation], a)
		}
	}
	return of
}

// algorithm is Choose for an operation of the communicator, with so many bytes of each process.
func (o collective) algorithm(operation string, bytes int) string {
	all := o.choices[operation]
	for k := range all {
		if a := &all[k]; a.takes(bytes, o.Size()) {
			return a.Name
		}
	}
	return ""
}
