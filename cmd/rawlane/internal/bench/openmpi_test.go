package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompareMPI_SaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", "")
	stdout, stderr, status := command(t, "bench", "barrier", "--compare-mpi", "--iters", "10")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "install it (Debian: openmpi-bin and libopenmpi-dev)") {
		t.Errorf("status %d, printed %q, said %q; want status 1, nothing printed, and what to install", status, stdout, stderr)
	}
}

func TestCompareMPI_RefusesAnotherMPI(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mpicc", "mpirun"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho HYDRA build details\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	if _, stderr, status := command(t, "bench", "barrier", "--compare-mpi"); status != 1 || !strings.Contains(stderr, "is not Open MPI's") {
		t.Errorf("status %d, said %q; want status 1 and that this is not Open MPI", status, stderr)
	}
}

func TestCompareMPI_IsForOneMachine(t *testing.T) {
	_, stderr, status := command(t, "bench", "barrier", "--compare-mpi", "--interface", "eth0", "--node", "0")
	if status != 2 || !strings.Contains(stderr, "--compare-mpi is for nodes on this machine") {
		t.Errorf("status %d, said %q; want status 2 and the reason", status, stderr)
	}
}
