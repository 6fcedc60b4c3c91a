package timestamping

import (
	"golang.org/x/sys/unix"
)

// NIC is a network interface whose hardware stamps frames while it is asked to.
type NIC struct {
	index  int // and no name, which may be another one by the time of Restore
	calls  calls
	before *unix.HwTstampConfig // nil: nothing was changed
}

// calls are the system's, on a socket in the NIC's network namespace.
type calls struct {
	name func(fd, index int) (string, error)
	info func(fd int, name string) (*unix.EthtoolTsInfo, error)
	get  func(fd int, name string) (*unix.HwTstampConfig, error)
	set  func(fd int, name string, cfg *unix.HwTstampConfig) error
}

var system = calls{interfaceName, unix.IoctlGetEthtoolTsInfo, unix.IoctlGetHwTstamp, unix.IoctlSetHwTstamp}

// interfaceName returns an interface's present name.
func interfaceName(fd, index int) (string, error) {
	var request unix.Ifreq
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, &request); err != nil {
		return "", err
	}
	return request.Name(), nil
}

// ask has the NIC stamp all frames in hardware, where it does so and this process may ask: fd is a
// socket in its network namespace. Other programs that want stamps of some frames get those of all.
func ask(c calls, fd, index int) *NIC {
	n := &NIC{index: index, calls: c}
	name, err := c.name(fd, index)
	if err != nil {
		return n
	}
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
	if before.Tx_type == want.Tx_type && before.Rx_filter == want.Rx_filter {
		return n // as another link or program has asked: that one undoes it, also under this one
	}
	if c.set(fd, name, want) == nil {
		n.before = before
	}
	return n
}

// Restore undoes ask.
func (n *NIC) Restore(fd int) {
	if n == nil || n.before == nil {
		return
	}
	if name, err := n.calls.name(fd, n.index); err == nil { // else it is gone
		_ = n.calls.set(fd, name, n.before) // or by now
	}
	n.before = nil
}
