package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// driverOf returns the driver of a network interface; "" if it is unknown.
func driverOf(nic string) string {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ""
	}
	defer e.Close()
	driver, _ := e.DriverName(nic)
	return driver
}

// unknownSpeed is the speed that drivers report without a carrier.
const unknownSpeed = 1<<32 - 1

// AskDriver asks the driver of a NIC for its settings. Drivers answer only some of the requests.
func AskDriver(nic string) (f NICFacts) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return f
	}
	defer e.Close()
	f.Driver, _ = e.DriverName(nic)
	if speed, err := e.CmdGet(&ethtool.EthtoolCmd{}, nic); err == nil && speed != unknownSpeed {
		f.SpeedMbps = int(speed)
	}
	if c, err := e.GetChannels(nic); err == nil {
		f.Queues = int(max(c.CombinedCount, c.RxCount))
	}
	if c, err := e.GetCoalesce(nic); err == nil {
		f.RxCoalesceUsec, f.AdaptiveRx = int(c.RxCoalesceUsecs), c.UseAdaptiveRxCoalesce != 0
	}
	if features, err := e.Features(nic); err == nil {
		f.VLANFilter, f.VLANStrip = features["rx-vlan-filter"], features["rx-vlan-hw-parse"]
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
