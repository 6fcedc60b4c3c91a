package timestamping

import (
	"golang.org/x/sys/unix"
)

// NIC is a network interface whose hardware stamps frames while it is asked to.
type NIC struct {
	name   string
	calls  calls
	before *unix.HwTstampConfig // nil: nothing was changed
}

// calls are the system's, on a socket in the NIC's network namespace.
type calls struct {
	info func(fd int, name string) (*unix.EthtoolTsInfo, error)
	get  func(fd int, name string) (*unix.HwTstampConfig, error)
	set  func(fd int, name string, cfg *unix.HwTstampConfig) error
}

var system = calls{unix.IoctlGetEthtoolTsInfo, unix.IoctlGetHwTstamp, unix.IoctlSetHwTstamp}

// ask has the NIC stamp all frames in hardware, where it does so and this process may ask: fd is a
// socket in its network namespace. Other programs that want stamps of some frames get those of all.
func ask(c calls, fd int, name string) *NIC {
	n := &NIC{name: name, calls: c}
	info, err := c.info(fd, name)
	const both = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE
	if err != nil || info.So_timestamping&both != both {
		return n
	}
	before, err := c.get(fd, name)
	if err != nil {
		before = &unix.HwTstampConfig{} // drivers that do not tell stamp nothing unless they are asked
	}
	want := &unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_ALL}
	if c.set(fd, name, want) == nil {
		n.before = before
	}
	return n
}

// Restore undoes ask.
func (n *NIC) Restore(fd int) {
	if n != nil && n.before != nil {
		_ = n.calls.set(fd, n.name, n.before) // it may be gone
		n.before = nil
	}
}
