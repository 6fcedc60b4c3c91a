package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// inside is set in the environment of a process that Reexec started: it does not do so again.
const inside = "RAWLANE_USER_NAMESPACE"

// Available returns nil if New works in this process, and otherwise the reason and the cure.
func Available() error {
	n, err := newNode(0)
	if err != nil {
		return err
	}
	n.close()
	return nil
}

// Reexec runs this program again, as root of a new user namespace, if beds are not available to the
// present one. It passes on the arguments, and ends the process with the exit status of that run.
// It returns nil if beds are available as it is, and an error if user namespaces are switched off.
func Reexec() error {
	if os.Getenv(inside) != "" {
		loopback.Do(setLoopbackUp)
	}
	reason := Available()
	if reason == nil || os.Getenv(inside) != "" {
		return reason
	}
	runtime.LockOSThread() // the child dies with this thread, which must not go before
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	if !signal.Ignored(unix.SIGHUP) { // else as under nohup, also for the child
		signal.Notify(signals, unix.SIGHUP)
	}
	if err := cmd.Start(); err != nil {
		signal.Stop(signals)
		return fmt.Errorf("make a user namespace: %w (%w; run as root, or allow them: "+
			"sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "+
			"kernel.apparmor_restrict_unprivileged_userns)", err, transport.ErrPermission)
	}
	go func() { // until the process ends
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may be gone already
		}
	}()
	os.Exit(ExitStatus(cmd.Wait()))
	return nil
}

// loopback is set up once, in a network namespace that Reexec has made.
var loopback sync.Once

// setLoopbackUp lets the program reach itself by IP, as it could outside. What needs it and has it
// not says so.
func setLoopbackUp() {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		_ = netlink.LinkSetUp(lo)
	}
}

// Open is New for a program, of an ordinary user too: Reexec comes first.
func Open(cfg Config) (*Bed, error) {
	if err := Reexec(); err != nil {
		return nil, err
	}
	return New(cfg)
}

// Main runs the tests of a package that needs beds, in a user namespace if the user is not root. If
// that cannot be had, the tests run all the same, and Need skips those that need it.
func Main(m *testing.M) int {
	_ = Reexec() // Need gives the reason
	return m.Run()
}

// Need skips the test, with the reason, if beds are not available; as root it fails the test.
func Need(t testing.TB) {
	t.Helper()
	err := Available()
	if err == nil {
		return
	}
	if os.Geteuid() == 0 && os.Getenv(inside) == "" {
		t.Fatalf("no namespaces, though we are root: %v", err)
	}
	t.Skip(err)
}
