package afxdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

// stripping are the features of NICs that take a frame's tag off, of 802.1Q and of 802.1ad
// (rx-vlan-offload and rx-vlan-stag-hw-parse in ethtool -k). What they take off, an XDP program
// does not see.
var stripping = []string{"rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"}

// nic is the settings of the interface's NIC.
type nic struct {
	tool    *room.Ethtool // nil when closed
	socket  int           // in the interface's namespace, as the tool's own is
	index   int
	ifname  string
	driver  string          // "" if it does not say
	stopped map[string]bool // features that were on, and are off until restore
}

// open asks for the settings.
func (n *nic) open(index int, ifname string) (err error) {
	if n.socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		if n.tool, err = room.NewEthtool(); err != nil {
			_ = unix.Close(n.socket) // the first error counts
		}
	}
	if err != nil {
		return fmt.Errorf("ask the driver for its features: %w", err)
	}
	n.index, n.ifname = index, ifname
	_ = n.findName() // DriverName fails, too
	n.driver, _ = n.tool.DriverName(n.ifname)
	return nil
}

// keepTags makes the NIC leave tags in the frames, until restore.
func (n *nic) keepTags() error {
	features, _ := n.features() // a driver that has none takes nothing off
	off, on := map[string]bool{}, map[string]bool{}
	for _, name := range stripping {
		if features[name] {
			off[name], on[name] = false, true
		}
	}
	if len(off) == 0 {
		return nil
	}
	n.stopped = on
	err := n.change(off)
	if err == nil {
		features, err = n.features()
	}
	for name := range off {
		if err == nil && features[name] {
			err = errors.New("the driver keeps it on")
		}
	}
	if err != nil {
		return fmt.Errorf("have the NIC leave VLAN tags in the frames (ethtool -K %s rx-vlan-offload off): %w: %w "+
			"(set Config.NoVLANs if no tags are used, or use link ring)", n.ifname, transport.ErrNotSupported, err)
	}
	return nil
}

// hasCarrier reports whether frames can leave the NIC; true if the driver does not say, or the
// interface is gone.
func (n *nic) hasCarrier() bool {
	if n.tool == nil || n.findName() != nil {
		return true
	}
	up, err := n.tool.LinkState(n.ifname)
	return err != nil || up != 0
}

// findName asks for the interface's present name: it may have got another one. The calls of ethtool
// go by names alone, so each is made just behind this.
func (n *nic) findName() error {
	var request unix.Ifreq
	request.SetUint32(uint32(n.index))
	err := unix.IoctlIfreq(n.socket, unix.SIOCGIFNAME, &request)
	if err == nil {
		n.ifname = request.Name()
	}
	return err
}

func (n *nic) awaitCarrier() { awaitCarrier(n.hasCarrier) }

// restore undoes keepTags. An interface that is gone needs nothing undone; one that was moved to
// another namespace is out of reach, and keeps the change.
func (n *nic) restore() error {
	if n.stopped == nil {
		return nil
	}
	err := n.change(n.stopped)
	n.stopped = nil
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("switch rx-vlan-offload of %s on again: %w", n.ifname, err)
	}
	return nil
}

// features returns the NIC's features, and which are on.
func (n *nic) features() (map[string]bool, error) {
	if err := n.findName(); err != nil {
		return nil, err
	}
	return n.tool.Features(n.ifname)
}

// change switches features on or off.
func (n *nic) change(features map[string]bool) error {
	if err := n.findName(); err != nil {
		return err
	}
	return n.tool.Change(n.ifname, features)
}

func (n *nic) close() error {
	if n.tool == nil {
		return nil
	}
	n.tool.Close()
	n.tool = nil
	return unix.Close(n.socket)
}
