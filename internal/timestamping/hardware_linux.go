package timestamping

import (
	"errors"

	"golang.org/x/sys/unix"
)

// NIC is a network interface whose hardware stamps frames while it is asked to.
type NIC struct {
	index  int // and no name, which may be another one by the time of Restore
	calls  calls
	before *unix.HwTstampConfig // nil: nothing was changed
	asked  unix.HwTstampConfig  // what the driver made of it
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

// ask has the NIC stamp all frames in hardware, where its driver offers that and this process may
// ask: fd is a socket in its network namespace. Programs that have asked for stamps of some frames,
// as ptp4l has, get those of all meanwhile. A NIC whose driver does not tell its setting is left
// alone, as that could not be put back.
func ask(c calls, fd, index int) *NIC {
	n := &NIC{index: index, calls: c}
	name, err := c.name(fd, index)
	if err != nil {
		return n
	}
	info, err := c.info(fd, name)
	if err != nil || !stampsAll(info) {
		return n
	}
	before, err := c.get(fd, name)
	if err != nil {
		return n
	}
	want := &unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_ALL}
	if before.Tx_type == want.Tx_type && before.Rx_filter == want.Rx_filter {
		return n // as another link or program has asked: that one undoes it, also under this one
	}
	switch err := c.set(fd, name, want); {
	case err == nil:
		n.before, n.asked = before, *want
	case !errors.Is(err, unix.EPERM): // some drivers refuse, and have the old setting off by then
		_ = c.set(fd, name, before)
	}
	return n
}

// stampsAll reports whether a driver offers stamps of all frames, both ways.
func stampsAll(info *unix.EthtoolTsInfo) bool {
	const both = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE
	return info.So_timestamping&both == both &&
		info.Tx_types&(1<<unix.HWTSTAMP_TX_ON) != 0 && info.Rx_filters&(1<<unix.HWTSTAMP_FILTER_ALL) != 0
}

// Restore undoes ask, unless another program has changed the setting since.
func (n *NIC) Restore(fd int) {
	if n == nil || n.before == nil {
		return
	}
	if name, err := n.calls.name(fd, n.index); err == nil { // else it is gone
		has, err := n.calls.get(fd, name)
		if err == nil && has.Tx_type == n.asked.Tx_type && has.Rx_filter == n.asked.Rx_filter {
			_ = n.calls.set(fd, name, n.before) // or it is by now
		}
	}
	n.before = nil
}
