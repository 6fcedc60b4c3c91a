package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
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

// Open MPI's lines have what all lines have: nothing protects its messages. Its times are of a
// program in mpirun's place, which writes 16,843 us for each barrier.
func TestCompareMPI_JSON(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"mpicc":  "exit 0",
		"mpirun": `for last; do :; done; test "$last" = --version && echo "mpirun (Open MPI) 4.1.4" || printf '%0160d' 0 | tr 0 '\001' > "$last"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(envMPI, "")
	for _, name := range []string{"mpicc.openmpi", "mpirun.openmpi"} { // which are looked for first
		if err := os.Symlink(strings.TrimSuffix(name, ".openmpi"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, status := command(t, "bench", "barrier", "--compare-mpi", "--iters", "10", "--algo", "star", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != cli.ExitDone || errs != "" || len(lines) != 4 {
		t.Fatalf("status %d, said %s, printed %s", status, errs, out)
	}
	for i, line := range lines {
		var r barrierResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Keys != launch.Unprotected || r.MPIUS != 16843.009 || r.MPIVersion != "4.1.4" || (r.Algo == mpiAlgo) != (i < 2) {
			t.Errorf("%s", line)
		}
	}
}
