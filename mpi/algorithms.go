package mpi

import (
	"fmt"
	"slices"
)

// Algorithm says from how many processes and bytes on a collective operation has an algorithm. All
// processes choose by what they all know: an algorithm is one that all have.
type Algorithm struct {
	Operation string // such as allreduce
	Processes int    // of the communicator
	From      int    // bytes that a process has
	Name      string
	Source    string
}

const thakur = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)"

// Names of algorithms.
const (
	doubling     = "recursive doubling"
	rabenseifner = "halving and doubling"
	bruck        = "dissemination"
	ring         = "ring"
	binomial     = "binomial tree"
	byMulticast  = "multicast"
)

// algorithms are in the order in which they are looked for: the last one that is for an operation
// counts. From its length on one is the quicker on kernel links: "go run ./bench/algorithms".
var algorithms = []Algorithm{
	{"allreduce", 0, 0, doubling, thakur + ", §4.5"},
	{"allreduce", 0, 32 << 10, rabenseifner, thakur + ", §4.5"},
	{"allgather", 0, 0, bruck, thakur + ", §4.1"},
	{"allgather", 0, 4 << 10, ring, thakur + ", §4.1"},
	{"bcast", 0, 0, binomial, thakur + ", §4.2"},
	{"bcast", 4, 0, byMulticast, "Hoefler, Siebert, Rehm, IPDPS 2007"},
	{"bcast", 0, maxMulticast + 1, binomial, thakur + ", §4.2"},
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

// algorithm returns the one for an operation of a length: the last in the table that is for it.
func (o collective) algorithm(operation string, bytes int) (name string) {
	for _, a := range o.w.cfg.Algorithms {
		if a.Operation == operation && o.Size() >= a.Processes && bytes >= a.From {
			name = a.Name
		}
	}
	return name
}
