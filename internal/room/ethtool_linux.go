package room

import (
	"runtime"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Ethtool is package ethtool's, whose calls hand the kernel memory of their stack by a number. If
// the stack grew after that, or the collector shrank it, it would be elsewhere, and the kernel
// would write into what may be another goroutine's by then: so each call has a stack that stays.
type Ethtool struct {
	tool   *ethtool.Ethtool
	socket int // of the calls that are not package ethtool's
}

// NewEthtool opens the sockets of the calls: these ask for interfaces of the network namespace that
// the caller is in now.
func NewEthtool() (*Ethtool, error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tool.Close()
		return nil, err
	}
	return &Ethtool{tool, socket}, nil
}

// Close closes the sockets.
func (e *Ethtool) Close() {
	e.tool.Close()
	_ = unix.Close(e.socket)
}

// DriverName returns the name of an interface's driver.
func (e *Ethtool) DriverName(ifname string) (name string, err error) {
	onSteadyStack(func() { name, err = e.tool.DriverName(ifname) })
	return name, err
}

// Speed returns the speed of an interface in Mbit/s; 0 if its driver does not know, as without a
// carrier.
func (e *Ethtool) Speed(ifname string) int {
	const unknown = 1<<32 - 1
	var speed uint32
	var err error
	onSteadyStack(func() { speed, err = e.tool.CmdGet(&ethtool.EthtoolCmd{}, ifname) })
	if err != nil || speed == unknown {
		return 0
	}
	return int(speed)
}

// LinkState returns whether an interface has a carrier: 0 if not.
func (e *Ethtool) LinkState(ifname string) (up uint32, err error) {
	onSteadyStack(func() { up, err = e.tool.LinkState(ifname) })
	return up, err
}

// Change switches features on or off.
func (e *Ethtool) Change(ifname string, features map[string]bool) (err error) {
	onSteadyStack(func() { err = e.tool.Change(ifname, features) })
	return err
}

// GetChannels returns how many queues an interface has.
func (e *Ethtool) GetChannels(ifname string) (c ethtool.Channels, err error) {
	onSteadyStack(func() { c, err = e.tool.GetChannels(ifname) })
	return c, err
}

// SetChannels sets how many queues an interface has.
func (e *Ethtool) SetChannels(ifname string, channels ethtool.Channels) (err error) {
	onSteadyStack(func() { _, err = e.tool.SetChannels(ifname, channels) })
	return err
}

// GetCoalesce returns for how long an interface's interrupts wait.
func (e *Ethtool) GetCoalesce(ifname string) (c ethtool.Coalesce, err error) {
	onSteadyStack(func() { c, err = e.tool.GetCoalesce(ifname) })
	return c, err
}

// onSteadyStack calls f on a stack that stays where it is: a new one, of 256 KiB, of which more is
// free than package ethtool needs, and more than a fourth in use, below which the collector shrinks
// it.
func onSteadyStack(f func()) {
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		withRoom(f)
	}()
	<-done
}

// withRoom calls f with 128 KiB of the stack in use and 64 KiB free.
//
//go:noinline
func withRoom(f func()) {
	var room [128 << 10]byte
	growStack()
	f()
	runtime.KeepAlive(&room)
}

// growStack has the stack grow.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
