//go:build linux

package main

import (
	"fmt"
	"io"
)

// What this project wants to reach. A limit is for so many processes.
var (
	mpiLimits = map[int]float64{2: 0.4, 4: 0.6, 8: 0.6, 32: 0.25}
	floorsAt  = map[int]bool{2: true, 8: true, 32: true}
)

const (
	concurrentLimit = 1.3  // over the floor in C: the faster of the ways to wait for a socket
	bestLimit       = 1.1  // likewise
	autoLimit       = 1.15 // over the best of the others
)

func verdicts(out io.Writer, all []*field) {
	for _, f := range all {
		best, mpi := f.best(ours, ""), f.find(openMPI)
		if limit, ok := mpiLimits[f.nodes]; ok && mpi != nil {
			verdict(out, f, fmt.Sprintf("best at most %.2f x Open MPI", limit), best.over(mpi), limit)
		}
		if floorsAt[f.nodes] {
			againstFloor(out, f, best, "C", f.faster(cBlocking, cSpinning))
		}
		verdict(out, f, "auto at most 1.15 x the best", f.find(ours+"auto").over(f.best(ours, ours+"auto")), autoLimit)
	}
}

func againstFloor(out io.Writer, f *field, best *contestant, name string, bare *contestant) {
	if bare == nil {
		return
	}
	verdict(out, f, "concurrent at most 1.3 x "+name, f.find(ours+"concurrent").over(bare), concurrentLimit)
	verdict(out, f, "best at most 1.1 x "+name, best.over(bare), bestLimit)
}

func verdict(out io.Writer, f *field, what string, got, limit float64) {
	word := "met"
	if got > limit {
		word = "NOT met"
	}
	fmt.Fprintf(out, "%2d processes: %-35s %-8s (%.2f, limit %.2f)\n", f.nodes, what, word, got, limit)
}
