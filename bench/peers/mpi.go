//go:build linux

// Package peers runs what a user would pick instead of rawlane: Open MPI and MPICH with a rank in
// each namespace of a bed, and the tools of UCX and libfabric.
package peers

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/internal/testbed"
)

//go:embed c/pair.c
var pairSource []byte

// patience is how long a peer may take: several times what the slowest does.
const patience = 2 * time.Minute

// leaving is how long a launcher may take to end once all is measured. Some never do. A rank in
// MPI_Finalize of MPICH 4.0.2, over UCX 1.13, waits until its peers have acknowledged that it
// closes its connections, and then sleeps in a barrier of the launcher's, where it acknowledges
// nothing. Who reads a peer's closing together with its last message acknowledges that before it
// closes its own side, and then waits for a peer that sleeps: in one run of 25 to 200, by what
// else the machine does. No setting of either changes that. Later versions of MPICH have the
// barrier first.
const leaving = 5 * time.Second

// MPI is an installation of MPI, and the program of ours that it runs.
type MPI struct {
	*mpi.MPI
	program string
	leaving time.Duration
}

// OpenMPI and MPICH build the program into a folder. The error says that there is no such MPI, and
// how to install it.
func OpenMPI(ctx context.Context, dir string) (*MPI, error) { return build(ctx, dir, mpi.Find) }

// MPICH is OpenMPI's other.
func MPICH(ctx context.Context, dir string) (*MPI, error) { return build(ctx, dir, mpi.FindMPICH) }

func build(ctx context.Context, dir string, find func(context.Context) (*mpi.MPI, error)) (*MPI, error) {
	found, err := find(ctx)
	if err != nil {
		return nil, err
	}
	source := filepath.Join(dir, "pair.c")
	m := &MPI{found, filepath.Join(dir, "pair."+strings.ReplaceAll(found.Name, " ", "")), leaving}
	if err := os.WriteFile(source, pairSource, 0o644); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, found.Compiler, "-O2", "-o", m.program, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(found.Compiler), err, out)
	}
	return m, nil
}

// Hosts is the namespaces of a bed, as the launchers of MPI see them: machines that a remote shell
// reaches.
type Hosts struct {
	bed     *testbed.Bed
	agent   string
	cores   []int              // of the ranks; nil where they share cores, and yield
	holders []*harness.Program // one in each namespace, whose process names it
}

// NewHosts makes the remote shell of a bed's first n nodes, a program in a folder. With cores, a
// node's ranks run on its own.
func NewHosts(ctx context.Context, bed *testbed.Bed, n int, cores []int, dir string) (*Hosts, error) {
	own, err := os.MkdirTemp(dir, "hosts-")
	if err != nil {
		return nil, err
	}
	h := &Hosts{bed: bed, agent: filepath.Join(own, "shell"), cores: cores}
	var cases strings.Builder
	for k := range n {
		holder, err := harness.Start(ctx, bed, k, nil, "cat")
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		h.holders = append(h.holders, holder)
		on := ""
		if cores != nil {
			on = fmt.Sprintf("taskset -c %d", cores[k])
		}
		fmt.Fprintf(&cases, "%v) name=%s pid=%d on=%q ;;\n", testbed.IP(k, 0), hostName(k), holder.PID(), on)
	}
	return h, os.WriteFile(h.agent, fmt.Appendf(nil, remoteShell, cases.String()), 0o755)
}

// hostName names a node as a machine. There is no dot in it: Open MPI's daemons take what stands
// before the first for the host's name, and keep their files in a folder of that name. Daemons of
// two hosts that share one take each other's away, and the launcher waits for them for ever.
func hostName(k int) string { return "host-" + strings.ReplaceAll(testbed.IP(k, 0).String(), ".", "-") }

// remoteShell runs a command in the namespace of an address, which is a host of its own name there.
const remoteShell = `#!/bin/sh
# shell [OPTION...] ADDRESS COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
address=$1
case $address in
%s*) echo "no host $address" >&2; exit 1 ;;
esac
shift
exec $on nsenter --net=/proc/$pid/ns/net unshare --uts sh -c "hostname $name; $*"
`

// Close ends the processes in the namespaces.
func (h *Hosts) Close() (err error) {
	for _, holder := range h.holders {
		holder.Begin()
		_, ended := holder.Text()
		err = errors.Join(err, ended)
	}
	return err
}

// Among has f run the program among so many ranks, between namespaces on a bridge, on cores if each
// has one. MPICH's ranks spin, and on shared cores wait for the scheduler: there f is not called.
func (m *MPI) Among(ctx context.Context, ranks int, dir string, f func(h *Hosts, cores []int) error) (err error) {
	cores := harness.Cores(ranks)
	if cores == nil && m.Name == mpi.MPICH {
		return nil
	}
	bed, err := testbed.New(testbed.Config{Nodes: ranks})
	if err != nil {
		return err
	}
	defer func() { _ = bed.Close() }() // what was measured counts
	h, err := NewHosts(ctx, bed, ranks, cores, dir)
	if err != nil {
		return err
	}
	defer func() {
		if closed := h.Close(); err == nil {
			err = closed
		}
	}()
	return f(h, cores)
}

// Pairs are sizes, or numbers of ranks, and results.
type Pairs map[int]float64

// Over names the transport of an MPI.
type Over int

// Transports.
const (
	TCP    Over = iota // between the namespaces
	Memory             // all ranks in the first namespace
)

// Run runs the program with a rank on each host: what and its arguments are in c/pair.c.
func (m *MPI) Run(ctx context.Context, h *Hosts, over Over, what string, numbers ...int) (Pairs, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	words := []string{"unshare", "--uts", "sh", "-c", `hostname "$0"; exec "$@"`, hostName(0),
		"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	words = append(words, m.Command(h.layout(over))...)
	words = append(words, m.program, what)
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	cores := h.cores // of the first rank, which the launcher starts where it runs itself
	if over == Memory {
		cores = nil
	}
	p, err := harness.Start(ctx, h.bed, 0, cores, words...)
	if err != nil {
		return nil, err
	}
	out, err := untilEnd(p)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(m.leaving, cancel)
	_, err = p.Text()
	if told := !late.Stop(); told {
		fmt.Fprintf(os.Stderr, "peers: %s has measured %s and not ended in %v: told to\n", m.Name, what, m.leaving)
	} else if err != nil {
		return nil, err
	}
	return parsePairs(out)
}

// untilEnd returns what the program prints until it says that all is measured.
func untilEnd(p *harness.Program) (string, error) {
	var out strings.Builder
	for {
		line, err := p.Line()
		if err != nil || line == "end" {
			return out.String(), err
		}
		out.WriteString(line + "\n")
	}
}

// layout describes the hosts to MPI's launcher.
func (h *Hosts) layout(over Over) mpi.Layout {
	l := mpi.Layout{
		Ranks: len(h.holders), Interface: testbed.Interface(0), Agent: h.agent,
		Memory: over == Memory, Yield: h.cores == nil,
	}
	for k := range h.holders {
		l.Hosts = append(l.Hosts, testbed.IP(k, 0).String())
	}
	return l
}

// parsePairs reads lines of a number and a result. What else a launcher prints does not count.
func parsePairs(out string) (Pairs, error) {
	all := Pairs{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		n, err1 := strconv.Atoi(fields[0])
		value, err2 := strconv.ParseFloat(fields[1], 64)
		if err1 == nil && err2 == nil {
			all[n] = value
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("unexpected output %q", out)
	}
	return all, nil
}
