package mpi

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// mpichVersion is in the output of mpiexec --version.
var mpichVersion = regexp.MustCompile(`Version:\s+(\S+)`)

// FindMPICH finds MPICH.
func FindMPICH(ctx context.Context) (*MPI, error) {
	m := &MPI{Name: MPICH}
	var err1, err2 error
	m.Compiler, err1 = exec.LookPath("mpicc.mpich")
	m.Launcher, err2 = exec.LookPath("mpiexec.mpich")
	if errors.Join(err1, err2) != nil {
		return nil, errors.New("no mpicc.mpich and mpiexec.mpich: install MPICH (Debian: mpich and libmpich-dev)")
	}
	out, err := exec.CommandContext(ctx, m.Launcher, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", m.Launcher, err)
	}
	if v := mpichVersion.FindSubmatch(out); v != nil {
		m.Version = string(v[1])
	}
	return m, nil
}

// Layout is where ranks run: one on each host, the first of which starts the others.
type Layout struct {
	Ranks     int
	Hosts     []string // their addresses
	Interface string   // of each, for TCP
	Agent     string   // the remote shell
	Memory    bool     // all ranks on the first host, through shared memory
	Yield     bool     // ranks share cores: who waits gives its core away
}

// Command is the command line that starts ranks, up to the program. MPICH cannot be told to yield.
func (m *MPI) Command(l Layout) []string {
	hosts := strings.Join(l.Hosts, ",")
	words := []string{m.Launcher, "-n", strconv.Itoa(l.Ranks)}
	switch {
	case m.Name == MPICH && l.Memory:
		return append(words, "-genv", "UCX_TLS", "self,sysv,posix")
	case m.Name == MPICH:
		return append(words, "-genv", "UCX_TLS", "tcp", "-genv", "UCX_NET_DEVICES", l.Interface,
			"-launcher", "ssh", "-launcher-exec", l.Agent, "-hosts", hosts, "-localhost", l.Hosts[0])
	}
	yield := "0"
	if l.Yield {
		yield = "1"
	}
	words = append(words, "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "osc", "^ucx",
		"--mca", "mpi_yield_when_idle", yield)
	if l.Memory {
		return append(words, "--oversubscribe", "--mca", "btl", "vader,self")
	}
	return append(words, "--host", hosts, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", l.Interface,
		"--mca", "oob_tcp_if_include", l.Interface, "--mca", "plm_rsh_agent", l.Agent,
		"--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_num_concurrent", strconv.Itoa(l.Ranks))
}
