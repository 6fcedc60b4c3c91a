package mpi

import (
	"strings"
	"testing"
)

// Each MPI is told where its ranks run, by what, and whether they share cores.
func TestCommand(t *testing.T) {
	l := Layout{Ranks: 2, Hosts: []string{"10.0.0.1", "10.0.0.2"}, Interface: "eth0", Agent: "/tmp/shell", Yield: true}
	memory := l
	memory.Memory, memory.Yield = true, false
	for _, c := range []struct {
		name, want, not string
		l               Layout
	}{
		{OpenMPI, "--host 10.0.0.1,10.0.0.2 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca plm_rsh_agent /tmp/shell", "vader", l},
		{OpenMPI, "--mca mpi_yield_when_idle 1", "--oversubscribe", l},
		{OpenMPI, "--mca mpi_yield_when_idle 0 --oversubscribe --mca btl vader,self", "tcp", memory},
		{MPICH, "-genv UCX_TLS tcp -genv UCX_NET_DEVICES eth0 -launcher ssh -launcher-exec /tmp/shell -hosts 10.0.0.1,10.0.0.2 -localhost 10.0.0.1", "--mca", l},
		{MPICH, "-genv UCX_TLS self,sysv,posix", "tcp", memory},
	} {
		m := &MPI{Name: c.name, Launcher: "launch"}
		got := strings.Join(m.Command(c.l), " ")
		if !strings.HasPrefix(got, "launch -n 2 ") || !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %s; want %q and no %q", c.name, got, c.want, c.not)
		}
	}
}
