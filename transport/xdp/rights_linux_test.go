package xdp_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/xdp"
)

// openAs has another process open a link in a node, and returns what it says at first.
func openAs(t *testing.T, n *testbed.Node, attr *syscall.SysProcAttr, env ...string) string {
	t.Helper()
	cmd := exec.Command(testbed.ProgramForNobody(t, "xdp"))
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(append(os.Environ(), envHold+"=eth0"), env...), attr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = n.Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // "" if it says nothing
	_ = cmd.Process.Kill()                           // it holds the link, or has ended
	_ = cmd.Wait()
	return strings.TrimSpace(line)
}

// Who has no right to open a link hears which ones it takes, and leaves no program.
func TestOpen_WithoutRights(t *testing.T) {
	need(t)
	testbed.NeedNobody(t)
	bed := testbed.ForTest(t, testbed.Config{})
	said := openAs(t, bed.Node(0), testbed.AsNobody())
	if !strings.HasPrefix(said, "xdp eth0: open: make the packet socket: ") || !strings.Contains(said, "needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF") {
		t.Errorf("it says %q", said)
	}
	if id := program(t, bed.Node(0)); id != 0 {
		t.Errorf("program %d is on the interface", id)
	}
}

// A user with the capabilities that a link takes is not told whose the program on the interface is:
// it hears that this may be a link's.
func TestOpen_OccupiedByAnotherUser(t *testing.T) {
	bed, _, _ := pair(t, xdp.Config{})
	testbed.NeedNobody(t)
	said := openAs(t, bed.Node(0), testbed.AsNobodyWith(unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_BPF))
	const want = "already (root sees which one, by ip link show eth0: end the process that has it, perhaps by a link xdp, " +
		"beside which link ring receives nothing; where no process has it: ip link set eth0 xdpgeneric off)"
	if !strings.HasSuffix(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// Probe says what Open would of the limit on locked memory, for which one socket may be small enough.
// CAP_IPC_LOCK lifts it.
func TestProbe_LockedMemory(t *testing.T) {
	need(t)
	testbed.NeedNobody(t)
	bed := testbed.ForTest(t, testbed.Config{})
	rights := []uintptr{unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_BPF}
	const tooLow, enough = envLimit + "=1048576", envLimit + "=4194304"
	said := openAs(t, bed.Node(0), testbed.AsNobodyWith(rights...), tooLow)
	if !strings.HasPrefix(said, "xdp eth0: probe: lock 3072 KiB for the frames of 1 receive queues, of 1024 KiB: the limit on locked memory") ||
		!strings.Contains(said, "cap_ipc_lock+ep PROGRAM") {
		t.Errorf("it says %q", said)
	}
	if said := openAs(t, bed.Node(0), testbed.AsNobodyWith(rights...), enough); said != "<nil>" {
		t.Errorf("with a higher limit: %q", said)
	}
	all := append(rights, unix.CAP_IPC_LOCK)
	if said := openAs(t, bed.Node(0), testbed.AsNobodyWith(all...), tooLow); said != "<nil>" {
		t.Errorf("with CAP_IPC_LOCK: %q", said)
	}
}
