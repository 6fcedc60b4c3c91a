package room

import (
	"runtime"

	"github.com/safchain/ethtool"
)

// Ethtool is package ethtool's, whose calls hand the kernel memory of their stack by a number. If
// the stack grew after that, it would be elsewhere, and the kernel would write into what may be
// another goroutine's by then: so it grows before each call, as it may shrink between two of them.
type Ethtool struct{ tool *ethtool.Ethtool }

// NewEthtool opens the socket of the calls.
func NewEthtool() (*Ethtool, error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	return &Ethtool{tool}, nil
}

// Close closes the socket.
func (e *Ethtool) Close() { e.tool.Close() }

// DriverName returns the name of an interface's driver.
func (e *Ethtool) DriverName(ifname string) (string, error) {
	growStack()
	return e.tool.DriverName(ifname)
}

// Speed returns the speed of an interface in Mbit/s; 0 if its driver does not know, as without a
// carrier.
func (e *Ethtool) Speed(ifname string) int {
	const unknown = 1<<32 - 1
	growStack()
	speed, err := e.tool.CmdGet(&ethtool.EthtoolCmd{}, ifname)
	if err != nil || speed == unknown {
		return 0
	}
	return int(speed)
}

// LinkState returns whether an interface has a carrier: 0 if not.
func (e *Ethtool) LinkState(ifname string) (uint32, error) {
	growStack()
	return e.tool.LinkState(ifname)
}

// Features returns an interface's features, and which are on.
func (e *Ethtool) Features(ifname string) (map[string]bool, error) {
	growStack()
	return e.tool.Features(ifname)
}

// Change switches features on or off.
func (e *Ethtool) Change(ifname string, features map[string]bool) error {
	growStack()
	return e.tool.Change(ifname, features)
}

// GetChannels returns how many queues an interface has.
func (e *Ethtool) GetChannels(ifname string) (ethtool.Channels, error) {
	growStack()
	return e.tool.GetChannels(ifname)
}

// SetChannels sets how many queues an interface has.
func (e *Ethtool) SetChannels(ifname string, channels ethtool.Channels) error {
	growStack()
	_, err := e.tool.SetChannels(ifname, channels)
	return err
}

// GetCoalesce returns for how long an interface's interrupts wait.
func (e *Ethtool) GetCoalesce(ifname string) (ethtool.Coalesce, error) {
	growStack()
	return e.tool.GetCoalesce(ifname)
}

// growStack has the stack grow by more than package ethtool needs of it.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
