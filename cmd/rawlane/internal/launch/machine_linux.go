package launch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/cpuset"
	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

// pinned is the environment variable with the core that pinSelf has moved the process to.
const pinned = "RAWLANE_PINNED"

// pinSelf moves all threads of this process to one core. The Go runtime starts threads at any time,
// so the process restarts in place (execve): new threads inherit the affinity of the first.
func pinSelf(core int) error {
	if os.Getenv(pinned) == strconv.Itoa(core) {
		return nil
	}
	runtime.LockOSThread()
	if err := MoveThread(core); err != nil {
		return err
	}
	if os.Getenv(cli.EnvLocal) != "" { // as the test bed had set for the thread that starts the process
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("end with the parent: %w", err)
		}
	}
	env := append(os.Environ(), pinned+"="+strconv.Itoa(core))
	return fmt.Errorf("start anew on core %d: %w", core, syscall.Exec("/proc/self/exe", os.Args, env))
}

// MoveThread moves the calling thread to one core.
func MoveThread(core int) error {
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("move to core %d: %w", core, err)
	}
	return nil
}

// PinThread moves the calling thread, and programs that it starts, to a share of the cores that it
// may run on: the k-th of n parts. With less than a core for each it does nothing.
func PinThread(k, n int) error {
	share := cpuset.Share(k, n)
	if share == nil {
		return nil
	}
	var set unix.CPUSet
	for _, core := range share {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("move to the %d. of %d shares of the cores: %w", k+1, n, err)
	}
	return nil
}

// thisProgram is the path of this program: one that stays right when its file has gone.
func thisProgram() (string, error) { return "/proc/self/exe", nil }

// YieldCore gives the core to another ready thread or goroutine.
func YieldCore() {
	runtime.Gosched()
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
}

// AskDriver asks the driver of a NIC for its settings. Drivers answer only some of the requests.
func AskDriver(nic string) (f NICFacts) {
	e, err := room.NewEthtool()
	if err != nil {
		return f
	}
	defer e.Close()
	f.Driver, _ = e.DriverName(nic)
	f.SpeedMbps = e.Speed(nic)
	if c, err := e.GetChannels(nic); err == nil {
		f.Queues = int(max(c.CombinedCount, c.RxCount))
	}
	if c, err := e.GetCoalesce(nic); err == nil {
		f.RxCoalesceUsec, f.AdaptiveRx = int(c.RxCoalesceUsecs), c.UseAdaptiveRxCoalesce != 0
	}
	if features, err := e.Features(nic); err == nil {
		f.VLANFilter, f.VLANStrip = features["rx-vlan-filter"], features["rx-vlan-hw-parse"]
		f.Segments = features["tx-udp-segmentation"]
		f.Joins = features["rx-gro"] && features["rx-udp-gro-forwarding"]
	}
	return f
}

// TryRawSocket reports whether this process may open raw sockets.
func TryRawSocket() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		return unix.Close(fd)
	}
	if err == unix.EPERM || err == unix.EACCES {
		return fmt.Errorf("%w (CAP_NET_RAW is missing)", transport.ErrPermission)
	}
	return fmt.Errorf("%w: %w", transport.ErrNotSupported, err)
}

// TryUserNamespace reports whether this user may make a network namespace inside a user namespace.
func TryUserNamespace() error {
	cmd := exec.Command("/proc/self/exe", "version")
	cmd.Args[0] = "rawlane" // a test binary under its own name would run its tests
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make a user namespace: %w", err)
	}
	return nil
}
