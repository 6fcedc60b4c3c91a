package start

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cluster/start/internal/pmi/pmitest"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The launchers that are on this machine start a program of two nodes, which meet.
func TestMain_UnderLaunchers(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"mpirun.mpich":   {"-n", "2", program},
		"mpirun.openmpi": {"--oversubscribe", "--allow-run-as-root", "-n", "2", program},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skip(name + " is not installed")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Env = append(os.Environ(), envProgram+"=1", "RAWLANE_SHM_DIR="+testbed.SocketDir(t))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "hello, node 0\n") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// A node that fails ends the others, wherever they are: its launcher hears of it.
func TestMain_OneFailsUnderMPICH(t *testing.T) {
	path, err := exec.LookPath("mpirun.mpich")
	if err != nil {
		t.Skip("mpirun.mpich is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-n", "2", program)
	cmd.Env = append(os.Environ(), envProgram+"=fail", "RAWLANE_SHM_DIR="+testbed.SocketDir(t))
	if out, err := cmd.CombinedOutput(); err == nil || ctx.Err() != nil || !strings.Contains(string(out), "node 1 fails") {
		t.Errorf("%v: %s", err, out)
	}
}

// A node that gives up on others says why, and then its launcher ends them.
func TestMain_GivesUpUnderMPICH(t *testing.T) {
	path, err := exec.LookPath("mpirun.mpich")
	if err != nil {
		t.Skip("mpirun.mpich is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-n", "2", "sh", "-c", `test $PMI_RANK = 1 && exec sleep 300; exec "$0"`, program)
	cmd.Env = append(os.Environ(), envProgram+"=impatient", "RAWLANE_SHM_DIR="+testbed.SocketDir(t))
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "not all of the 2 processes have come within") {
		t.Errorf("%v: %s", err, out)
	}
}

// Processes that a launcher without a store has started on several hosts find each other by their
// interfaces: the only ones that there are.
func TestMain_OneProcessToAHost(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 2})
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var cmds [2]*exec.Cmd
	var out [2]strings.Builder
	for node := range cmds {
		cmds[node] = exec.Command(program)
		cmds[node].Env = append(os.Environ(), envProgram+"=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=2",
			"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID="+string(rune('0'+node)))
		cmds[node].Stdout, cmds[node].Stderr = &out[node], &out[node]
		if err := bed.Node(node).Start(cmds[node]); err != nil {
			t.Fatal(err)
		}
	}
	for node, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("node %d: %v: %s", node, err, &out[node])
		}
	}
	if !strings.HasSuffix(out[0].String(), "hello, node 0\n") {
		t.Errorf("node 0 printed %q", &out[0])
	}
}

// Of three processes two share a host's interface: each has a UDP port of its own, and they tell
// each other which by their launcher, whether they are asked to or not.
func TestMain_SomeShareAHost(t *testing.T) {
	t.Run("asked for UDP", func(t *testing.T) { // in folders of their own: they do not meet in memory
		shareAHost(t, testbed.ForTest(t, testbed.Config{Nodes: 2}), "udp", [3]string{testbed.SocketDir(t), testbed.SocketDir(t), testbed.SocketDir(t)})
	})
	t.Run("asked for nothing", func(t *testing.T) {
		first, second := testbed.SocketDir(t), testbed.SocketDir(t)
		shareAHost(t, testbed.ForTest(t, testbed.Config{Nodes: 2}), "", [3]string{first, first, second})
	})
}

// shareAHost runs a program's three processes on a bed of two hosts, with folders for shared memory.
func shareAHost(t *testing.T, bed *testbed.Bed, link string, dirs [3]string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := pmitest.New(3, false)
	var cmds [3]*exec.Cmd
	var out [3]strings.Builder
	for rank := range cmds {
		cmd := underPMI(t, server, rank, 3, exec.Command(program))
		cmd.Env = append(cmd.Env, envProgram+"=exchange", EnvLink+"="+link, "RAWLANE_SHM_DIR="+dirs[rank])
		cmd.Stdout, cmd.Stderr = &out[rank], &out[rank]
		if err := bed.Node(rank / 2).Start(cmd); err != nil {
			t.Fatal(err)
		}
		_ = cmd.ExtraFiles[0].Close()
		cmds[rank] = cmd
	}
	for rank, cmd := range cmds {
		want := fmt.Sprintf("node %d of 3 by PMI-1: 0 1 2\n", rank)
		if err := cmd.Wait(); err != nil || out[rank].String() != want {
			t.Errorf("rank %d: %v: %q, want %q", rank, err, &out[rank], want)
		}
	}
	if server.Final() != 3 {
		t.Errorf("%d have said that they end", server.Final())
	}
}

// underPMI makes a command one of a server's processes, which inherits a socket.
func underPMI(t *testing.T, server *pmitest.Server, rank, size int, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "ours")
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	go server.Serve(conn, rank)
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[1]), "theirs")}
	cmd.Env = append(os.Environ(), fmt.Sprintf("PMI_RANK=%d", rank), fmt.Sprintf("PMI_SIZE=%d", size), "PMI_FD=3")
	return cmd
}

// A node that panics does not tell its launcher, before it dies, that it ends as it should: the
// launcher would let the others wait for it.
func TestRun_PanicIsNoGoodEnd(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := pmitest.New(2, false)
	dir := testbed.SocketDir(t)
	var cmds [2]*exec.Cmd
	var out [2]strings.Builder
	for rank := range cmds {
		cmd := underPMI(t, server, rank, 2, exec.Command(program))
		cmd.Env = append(cmd.Env, envProgram+"=panic", "RAWLANE_SHM_DIR="+dir)
		cmd.Stdout, cmd.Stderr = &out[rank], &out[rank]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.ExtraFiles[0].Close()
		cmds[rank] = cmd
	}
	for rank, cmd := range cmds {
		if err := cmd.Wait(); (err != nil) != (rank == 1) || strings.Contains(out[rank].String(), "node 1 panics") != (rank == 1) {
			t.Errorf("rank %d: %v: %s", rank, err, &out[rank])
		}
	}
	if n := server.Final(); n != 1 {
		t.Errorf("%d have said that they end as they should, want the one that has not panicked", n)
	}
}
