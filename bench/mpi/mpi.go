// Package mpi is the comparison with Open MPI: barriers among processes on this machine, over
// TCP or through shared memory.
package mpi

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/cpuset"
	"github.com/rawlane/rawlane/internal/procgroup"
)

//go:embed c/barrier.c
var source []byte

// Transports of Open MPI's messages.
const (
	TCP = "tcp" // over the loopback
	SHM = "shm" // through shared memory
)

// options start the processes on this machine and choose the transport. Where each process can have
// a core, or else a hardware thread, it is bound to it and spins, as Open MPI does by default: it
// refuses more processes than cores, unless it is told that threads are to count. Where there are
// more, a waiting process gives its core away between polls; otherwise the others on that core
// would wait for the scheduler.
func options(transport string, nodes, cores, threads int) []string {
	words := []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"}
	if transport == SHM {
		words = []string{"--mca", "pml", "ob1", "--mca", "btl", "vader,self"}
	}
	if nodes <= cores {
		return append(words, "--bind-to", "core", "--mca", "mpi_yield_when_idle", "0")
	}
	if nodes <= threads {
		return append(words, "--use-hwthread-cpus", "--bind-to", "hwthread", "--mca", "mpi_yield_when_idle", "0")
	}
	return append(words, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
}

// MPI is an installation of Open MPI, or of MPICH.
type MPI struct {
	Name               string // OpenMPI or MPICH
	Compiler, Launcher string // paths of its programs
	Version            string
}

// Names.
const (
	OpenMPI = "Open MPI"
	MPICH   = "MPICH"
)

// version is in the output of mpirun --version; under its other name the program is OpenRTE.
var version = regexp.MustCompile(`\((?:Open MPI|OpenRTE)\) (\S+)`)

// Find finds Open MPI. Debian installs its programs under names of their own, beside other MPIs.
func Find(ctx context.Context) (*MPI, error) {
	m := &MPI{Name: OpenMPI}
	for _, suffix := range []string{".openmpi", ""} {
		compiler, err1 := exec.LookPath("mpicc" + suffix)
		launcher, err2 := exec.LookPath("mpirun" + suffix)
		if err1 == nil && err2 == nil {
			m.Compiler, m.Launcher = compiler, launcher
			break
		}
	}
	if m.Launcher == "" {
		return nil, errors.New("no mpicc and mpirun of Open MPI: " +
			"install it (Debian: openmpi-bin and libopenmpi-dev)")
	}
	out, err := exec.CommandContext(ctx, m.Launcher, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", m.Launcher, err)
	}
	v := version.FindSubmatch(out)
	if v == nil {
		return nil, fmt.Errorf("%s is not Open MPI's: it says %q", m.Launcher, out)
	}
	m.Version = string(v[1])
	return m, nil
}

// Barriers is a measurement: in a first loop with work between the barriers, in a second without.
type Barriers struct {
	Transport          string // TCP or SHM
	Nodes, Warm, Iters int
	Work               time.Duration
}

const loops = 2

// Run returns the time of each barrier in ns: for each loop, for each rank.
func (m *MPI) Run(ctx context.Context, b Barriers) (samples [][][]uint32, err error) {
	raw, err := m.measure(ctx, source, b.Transport, b.Nodes,
		strconv.Itoa(b.Iters), strconv.Itoa(b.Warm), strconv.FormatInt(b.Work.Nanoseconds(), 10))
	if err != nil {
		return nil, err
	}
	return b.split(raw)
}

// measure compiles a program, runs it with the arguments and the name of a file, and returns what
// is in the file then.
func (m *MPI) measure(
	ctx context.Context, source []byte, transport string, nodes int, args ...string,
) (samples []byte, err error) {
	dir, err := os.MkdirTemp("", "rawlane-mpi-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, program, out := filepath.Join(dir, "program.c"), filepath.Join(dir, "program"), filepath.Join(dir, "samples")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return nil, err
	}
	if err := runProgram(ctx, nil, m.Compiler, "-O2", "-o", program, file); err != nil {
		return nil, err
	}
	cores := cmp.Or(cpuset.Physical(), runtime.NumCPU())
	words := append([]string{"-n", strconv.Itoa(nodes)}, options(transport, nodes, cores, runtime.NumCPU())...)
	words = append(append(append(words, program), args...), out)
	var env []string
	if os.Geteuid() == 0 {
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	if err := runProgram(ctx, env, m.Launcher, words...); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// split separates the samples of each loop and rank.
func (b Barriers) split(raw []byte) (samples [][][]uint32, err error) {
	all := make([]uint32, loops*b.Nodes*b.Iters)
	if len(raw) != binary.Size(all) {
		return nil, fmt.Errorf("mpirun left %d bytes of samples, want %d", len(raw), binary.Size(all))
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, all); err != nil {
		return nil, err
	}
	samples = make([][][]uint32, loops)
	for loop := range samples {
		for range b.Nodes {
			samples[loop] = append(samples[loop], all[:b.Iters:b.Iters])
			all = all[b.Iters:]
		}
	}
	return samples, nil
}

// endTimeout is how long a program may take to end after SIGTERM.
const endTimeout = 2 * time.Second

// runProgram runs a program until ctx ends, and then ends its process group. The output is part of
// the error if the program fails.
func runProgram(ctx context.Context, env []string, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.Env = append(os.Environ(), env...)
	procgroup.Own(c)
	c.Cancel = func() error { procgroup.End(c, false); return nil }
	c.WaitDelay = endTimeout
	err := c.Run()
	if ctx.Err() != nil {
		procgroup.End(c, true)
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(said.String()))
	}
	return nil
}
