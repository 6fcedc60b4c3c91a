package bench

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// Beside rawlane's barriers, those of Open MPI: as many processes on this machine, over TCP, in the
// same two loops. They run before the nodes start, and the nodes' processes get the results in
// their environment.

//go:embed mpi/barrier.c
var mpiSource []byte

// envMPI holds Open MPI's results, as JSON: a barrierResult for each loop.
const envMPI = "RAWLANE_BENCH_MPI"

// mpiAlgo is what Open MPI's lines call the algorithm.
const mpiAlgo = "openmpi"

// mpiOptions are how mpirun starts the processes: on this machine, more than cores, talking by TCP.
// One that waits gives its core away between looks, or those that share it would wait for the
// scheduler.
var mpiOptions = []string{
	"--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
	"--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1",
}

// openMPI is what is installed here.
type openMPI struct{ compiler, launcher, version string }

// mpiVersion is in what Open MPI's mpirun says of itself; by its other name it calls itself
// OpenRTE.
var mpiVersion = regexp.MustCompile(`\((?:Open MPI|OpenRTE)\) (\S+)`)

// findMPI finds Open MPI. Debian has its programs under names of their own, beside those of other
// MPIs.
func findMPI(ctx context.Context) (*openMPI, error) {
	m := &openMPI{}
	for _, suffix := range []string{".openmpi", ""} {
		compiler, err1 := exec.LookPath("mpicc" + suffix)
		launcher, err2 := exec.LookPath("mpirun" + suffix)
		if err1 == nil && err2 == nil {
			m.compiler, m.launcher = compiler, launcher
			break
		}
	}
	if m.launcher == "" {
		return nil, errors.New("--compare-mpi needs mpicc and mpirun of Open MPI: install it (Debian: openmpi-bin and libopenmpi-dev)")
	}
	out, err := exec.CommandContext(ctx, m.launcher, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("--compare-mpi: %s --version: %w", m.launcher, err)
	}
	version := mpiVersion.FindSubmatch(out)
	if version == nil {
		return nil, fmt.Errorf("--compare-mpi: %s is not Open MPI's: it says %q", m.launcher, out)
	}
	m.version = string(version[1])
	return m, nil
}

// compareMPI measures Open MPI's barrier, unless a process that started this one has, and keeps the
// results for the table.
func (b *barrierBench) compareMPI(ctx context.Context, cmd *cobra.Command) error {
	text := os.Getenv(envMPI)
	if text == "" {
		m, err := findMPI(ctx)
		if err != nil {
			return err
		}
		note := cli.NewProgress(cmd.ErrOrStderr())
		note.Say("Open MPI ...")
		lines, err := m.measure(ctx, b)
		note.Clear()
		if err != nil {
			return fmt.Errorf("--compare-mpi: %w", err)
		}
		marshaled, err := json.Marshal(lines)
		if err != nil {
			return err
		}
		text = string(marshaled)
		if err := os.Setenv(envMPI, text); err != nil {
			return err
		}
	}
	return json.Unmarshal([]byte(text), &b.beside)
}

// measure runs both loops.
func (m *openMPI) measure(ctx context.Context, b *barrierBench) (lines []*barrierResult, err error) {
	dir, err := os.MkdirTemp("", "rawlane-mpi-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source, program, samples := filepath.Join(dir, "barrier.c"), filepath.Join(dir, "barrier"), filepath.Join(dir, "samples")
	if err := os.WriteFile(source, mpiSource, 0o644); err != nil {
		return nil, err
	}
	if err := runProgram(ctx, nil, m.compiler, "-O2", "-o", program, source); err != nil {
		return nil, err
	}
	args := append([]string{"-n", strconv.Itoa(b.cluster.Nodes)}, mpiOptions...)
	args = append(args, program, strconv.Itoa(b.iters), strconv.Itoa(warmUpOf(b.iters)), strconv.FormatInt(b.work.Nanoseconds(), 10), samples)
	var env []string
	if os.Geteuid() == 0 {
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	if err := runProgram(ctx, env, m.launcher, args...); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(samples)
	if err != nil {
		return nil, err
	}
	return m.results(b, raw)
}

// results takes the samples apart: of each loop, those of each rank.
func (m *openMPI) results(b *barrierBench, raw []byte) (lines []*barrierResult, err error) {
	all := make([]uint32, len(barrierLoops)*b.cluster.Nodes*b.iters)
	if len(raw) != binary.Size(all) {
		return nil, fmt.Errorf("mpirun left %d bytes of samples, want %d", len(raw), binary.Size(all))
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, all); err != nil {
		return nil, err
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	for _, loop := range barrierLoops {
		r := &barrierResult{
			benchResult: benchResult{Schema: benchSchema, Bench: "barrier", Host: launch.ThisHost(lo.Name, lo.MTU),
				benchParameters: benchParameters{Link: "tcp", Nodes: b.cluster.Nodes, NICs: 1, Algo: mpiAlgo, Iters: b.iters, Pin: notPinned}},
			Mode: launch.ModeProcesses, Loop: loop, Chosen: mpiAlgo, MPIVersion: m.version,
		}
		if loop == "work" {
			r.WorkUS = cli.Micros(b.work)
		}
		ranks := make([][]uint32, b.cluster.Nodes)
		for k := range ranks {
			ranks[k], all = all[:b.iters], all[b.iters:]
		}
		r.fill(ranks)
		r.MPIUS, r.ToMPI = r.MeanUS, 1
		lines = append(lines, r)
	}
	return lines, nil
}

// runProgram runs a program in a process group of its own, which a context that ends ends. What it
// says counts if it fails.
func runProgram(ctx context.Context, env []string, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.Env = append(os.Environ(), env...)
	launch.OwnGroup(c)
	c.Cancel = func() error { launch.EndGroup(c, false); return nil }
	c.WaitDelay = launch.EndTimeout
	err := c.Run()
	if ctx.Err() != nil {
		launch.EndGroup(c, true)
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// compare adds to a line how it compares with Open MPI's of the same loop.
func (r *barrierResult) compare(beside []*barrierResult) {
	for _, m := range beside {
		if m.Loop == r.Loop {
			r.MPIUS, r.ToMPI, r.MPIVersion = m.MeanUS, r.MeanUS/m.MeanUS, m.MPIVersion
		}
	}
}
