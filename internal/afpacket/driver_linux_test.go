package afpacket_test

import (
	"errors"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
)

// What lets the frames of one flow overtake another's is asked for: queueing disciplines other than
// FIFOs, datagrams that are held back to be joined, and processors for flows.
func TestAskDriver_WhatKeepsTheOrder(t *testing.T) {
	offload := func(feature string) func() error {
		return func() error {
			tool, err := room.NewEthtool()
			if err != nil {
				return err
			}
			defer tool.Close()
			return tool.Change("eth0", map[string]bool{"rx-gro": true, feature: true})
		}
	}
	pfifo := func(a netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.GenericQdisc{QdiscAttrs: a, QdiscType: "pfifo"}
	}
	htb := func(a netlink.QdiscAttrs) netlink.Qdisc { return netlink.NewHtb(a) }
	for _, c := range []struct {
		name         string
		change       func() error
		fifo, steers bool
	}{
		{"no queue", func() error { return nil }, true, false},
		{"pfifo", func() error { return qdisc(pfifo) }, true, false},
		{"htb", func() error { return qdisc(htb) }, false, false},
		{"datagrams are joined to be forwarded", offload("rx-udp-gro-forwarding"), true, true},
		{"all are joined in a list", offload("rx-gro-list"), true, true},
		{"receive packet steering", steer, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := testbed.In(testbed.ForTest(t, testbed.Config{}).Node(0), func() (d afpacket.Driver, err error) {
				if err := c.change(); err != nil {
					return d, err
				}
				ifi, err := afpacket.FindInterface("eth0")
				if err != nil {
					return d, err
				}
				return ifi.Driver, nil
			})
			if errors.Is(err, unix.EPERM) {
				t.Skip("steering is for the machine's root to set")
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.Fifo != c.fifo || d.Steers != c.steers {
				t.Errorf("FIFO %v, steers %v; want %v, %v", d.Fifo, d.Steers, c.fifo, c.steers)
			}
		})
	}
}

// qdisc gives eth0 a queueing discipline.
func qdisc(make func(netlink.QdiscAttrs) netlink.Qdisc) error {
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	attrs := netlink.QdiscAttrs{LinkIndex: eth0.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	return netlink.QdiscAdd(make(attrs))
}

// steer has eth0's first receive queue hand packets to processors by flow, by a view of /sys of this
// thread's own network namespace.
func steer() error {
	return errors.Join(
		unix.Unshare(unix.CLONE_NEWNS),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("sys", "/sys", "sysfs", 0, ""),
		os.WriteFile("/sys/class/net/eth0/queues/rx-0/rps_cpus", []byte("1"), 0o644))
}
