package mpi

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A program that ends with its context takes its children along.
func TestRunProgram_EndsWithItsContext(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	ended := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, ended)
	defer cancel()
	begun := time.Now()
	if err := runProgram(ctx, nil, sh, "-c", "sleep 60 & sleep 60"); !errors.Is(err, ended) {
		t.Errorf("ended with %v, want the context's cause", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %v: what the program had started went on", took)
	}
}

// Processes with a core each are bound and spin, as the program that they are compared with, and so
// do those that have a thread of one each; more than that yield. Open MPI refuses more than cores
// unless threads count, or it is told of more than there are.
func TestOptions_LikeWithLike(t *testing.T) {
	const (
		spins  = "--mca mpi_yield_when_idle 0"
		shares = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
	)
	for _, c := range []struct {
		transport             string
		nodes, cores, threads int
		want, not             string
	}{
		{TCP, 2, 2, 2, "--bind-to core " + spins, "--oversubscribe"},
		{TCP, 4, 4, 8, "--bind-to core " + spins, "hwthread"},
		{TCP, 8, 4, 8, "--use-hwthread-cpus --bind-to hwthread " + spins, "--oversubscribe"},
		{TCP, 5, 4, 8, "--use-hwthread-cpus --bind-to hwthread " + spins, "--bind-to core"},
		{TCP, 9, 4, 8, shares, "hwthread"},
		{TCP, 4, 2, 2, shares, "--bind-to core"},
		{SHM, 2, 2, 2, "btl vader,self --bind-to core", "tcp"},
		{TCP, 4, 2, 2, "btl tcp,self --mca btl_tcp_if_include lo", "vader"},
	} {
		got := strings.Join(options(c.transport, c.nodes, c.cores, c.threads), " ")
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s, %d processes on %d cores of %d threads: %s", c.transport, c.nodes, c.cores, c.threads, got)
		}
	}
}
