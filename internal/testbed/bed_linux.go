package testbed

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

// Bed is a cluster of network namespaces.
type Bed struct {
	cfg   Config
	nodes []*Node
	sw    *Node // where the bridges are; nil without
	ends  []end
	close sync.Once
}

// end is one end of a veth pair.
type end struct {
	node   *Node
	ifname string
}

// New makes a bed whose interfaces are up and ready to carry frames. It needs CAP_SYS_ADMIN and
// CAP_NET_ADMIN in the present user namespace: see Available.
func New(cfg Config) (*Bed, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b := &Bed{cfg: cfg}
	if err := b.build(); err != nil {
		_ = b.Close() // the first error is the one to report
		return nil, fmt.Errorf("testbed: %w", err)
	}
	return b, nil
}

func (b *Bed) build() error {
	for k := range b.cfg.Nodes {
		n, err := newNode(k)
		if err != nil {
			return err
		}
		b.nodes = append(b.nodes, n)
	}
	if b.cfg.Bridge {
		n, err := newNode(-1)
		if err != nil {
			return err
		}
		b.sw = n
	}
	for nic := range b.cfg.NICs {
		if err := b.join(nic); err != nil {
			return err
		}
	}
	for _, n := range b.nodes {
		for nic := range b.cfg.NICs {
			if err := n.configure(nic); err != nil {
				return err
			}
		}
	}
	for _, e := range b.ends { // either end of a pair may be late
		if err := e.node.awaitUp(e.ifname); err != nil {
			return err
		}
	}
	return nil
}

// join makes network nic: a pair, or a bridge with a port per node.
func (b *Bed) join(nic int) error {
	name := Interface(nic)
	if !b.cfg.Bridge {
		return b.pair(b.nodes[0], name, b.nodes[1], name, nic)
	}
	off := false
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br-" + name, MTU: b.cfg.MTU}, MulticastSnooping: &off}
	if err := b.sw.nl.LinkAdd(bridge); err != nil {
		return fmt.Errorf("add bridge %s: %w", bridge.Name, err)
	}
	for k, n := range b.nodes {
		port := fmt.Sprintf("port%d-%d", k, nic)
		if err := b.pair(n, name, b.sw, port, nic); err != nil {
			return err
		}
		l, err := b.sw.nl.LinkByName(port)
		if err != nil {
			return fmt.Errorf("find %s: %w", port, err)
		}
		err = errors.Join(b.sw.nl.LinkSetMaster(l, bridge), b.sw.leaveTags(port), b.sw.nl.LinkSetUp(l))
		if err != nil {
			return fmt.Errorf("add %s to %s: %w", port, bridge.Name, err)
		}
	}
	if err := b.sw.nl.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set %s up: %w", bridge.Name, err)
	}
	return nil
}

// leaveTags has an interface put tags into the bytes of what it sends. A bridge takes them out, and
// a veth hands them on beside the bytes: no XDP program at the other end sees them there.
func (n *Node) leaveTags(ifname string) error {
	return n.change(ifname, map[string]bool{"tx-vlan-hw-insert": false, "tx-vlan-stag-hw-insert": false})
}

// change switches an interface's features on or off.
func (n *Node) change(ifname string, features map[string]bool) error {
	return n.Do(func() error {
		tool, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		return tool.Change(ifname, features)
	})
}

// pair joins an interface of n and one of peer.
func (b *Bed) pair(n *Node, name string, peer *Node, peerName string, nic int) error {
	veth := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name, MTU: b.cfg.MTU, HardwareAddr: MAC(n.number, nic).HardwareAddr()},
		PeerName:      peerName,
		PeerNamespace: netlink.NsFd(peer.ns),
	}
	if peer != b.sw {
		veth.PeerHardwareAddr = MAC(peer.number, nic).HardwareAddr()
	}
	if err := n.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth pair %s - %s: %w", name, peerName, err)
	}
	b.ends = append(b.ends, end{n, name}, end{peer, peerName})
	return nil
}

// Node returns the k-th node.
func (b *Bed) Node(k int) *Node { return b.nodes[k] }

// Nodes returns the number of nodes.
func (b *Bed) Nodes() int { return len(b.nodes) }

// Close removes the bed and ends the processes that were started in it. Further calls do nothing.
func (b *Bed) Close() error {
	b.close.Do(func() {
		for _, n := range append(b.nodes, b.sw) {
			if n != nil {
				n.close()
			}
		}
	})
	return nil
}

// configure gives the NIC its IP address and sets it up.
func (n *Node) configure(nic int) error {
	if err := n.AddIP(nic, IP(n.number, nic)); err != nil {
		return err
	}
	return n.SetUp(nic, true)
}

// AddIP gives the node's NIC one more IPv4 address, of a network of 24 bits.
func (n *Node) AddIP(nic int, ip net.IP) error {
	err := n.edit(nic, func(l netlink.Link) error { return n.nl.AddrAdd(l, addr24(ip)) })
	if err != nil {
		return fmt.Errorf("add address %v: %w", ip, err)
	}
	return nil
}

// RemoveIP takes an address from the node's NIC.
func (n *Node) RemoveIP(nic int, ip net.IP) error {
	err := n.edit(nic, func(l netlink.Link) error { return n.nl.AddrDel(l, addr24(ip)) })
	if err != nil {
		return fmt.Errorf("remove address %v: %w", ip, err)
	}
	return nil
}

func addr24(ip net.IP) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(24, 32)}}
}

// edit changes one of the node's NICs.
func (n *Node) edit(nic int, change func(netlink.Link) error) error {
	if err := n.with(Interface(nic), change); err != nil {
		return fmt.Errorf("node %d: %w", n.number, err)
	}
	return nil
}

// with calls f with an interface in the namespace, as long as the bed is open: a handle of package
// netlink that is closed works in the caller's own namespace.
func (n *Node) with(ifname string, f func(netlink.Link) error) error {
	n.editing.RLock()
	defer n.editing.RUnlock()
	if n.left {
		return fmt.Errorf("%s: the bed: %w", ifname, transport.ErrClosed)
	}
	l, err := n.nl.LinkByName(ifname)
	if err == nil {
		err = f(l)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ifname, err)
	}
	return nil
}

// SetUp sets the node's NIC up or down.
func (n *Node) SetUp(nic int, up bool) error {
	if up {
		return n.edit(nic, n.nl.LinkSetUp)
	}
	return n.edit(nic, n.nl.LinkSetDown)
}

// SetMTU changes the MTU of the node's NIC.
func (n *Node) SetMTU(nic, mtu int) error {
	return n.edit(nic, func(l netlink.Link) error { return n.nl.LinkSetMTU(l, mtu) })
}

// Move gives one of the node's NICs to another node, which must not have it, and sets it up there.
func (n *Node) Move(nic int, to *Node) error {
	err := n.edit(nic, func(l netlink.Link) error { return n.nl.LinkSetNsFd(l, int(to.ns)) })
	if err != nil {
		return fmt.Errorf("node %d: move %s: %w", n.number, Interface(nic), err)
	}
	return to.SetUp(nic, true)
}

// Remove removes one of the node's NICs.
func (n *Node) Remove(nic int) error { return n.edit(nic, n.nl.LinkDel) }

// SetLearning says whether the bridge learns where addresses are from what a node's NIC sends.
// Where it does, a node that sends with another's address gets that one's frames.
func (b *Bed) SetLearning(node, nic int, learn bool) error {
	err := b.withPort(node, nic, func(l netlink.Link) error { return b.sw.nl.LinkSetLearning(l, learn) })
	if err != nil {
		return fmt.Errorf("learning of node %d: %w", node, err)
	}
	return nil
}

// SumBeforePort has the kernel write checksums that a sender has left to the hardware before frames
// go to a node, as it does for a NIC that cannot.
func (b *Bed) SumBeforePort(node, nic int) error {
	err := b.withPort(node, nic, func(l netlink.Link) error {
		return b.sw.change(l.Attrs().Name, map[string]bool{"tx-checksum-ip-generic": false})
	})
	if err != nil {
		return fmt.Errorf("checksums to node %d: %w", node, err)
	}
	return nil
}

// withPort calls f with the bridge's port to a node's NIC.
func (b *Bed) withPort(node, nic int, f func(netlink.Link) error) error {
	if b.sw == nil {
		return errors.New("there is no bridge (want Config.Bridge)")
	}
	return b.sw.with(fmt.Sprintf("port%d-%d", node, nic), f)
}

// upTimeout is far longer than the kernel takes to notice that both ends of a pair are up.
const upTimeout = 5 * time.Second

// awaitUp waits until an interface can carry frames. The kernel starts its queue, and its port of a
// bridge, a moment after both ends are up.
func (n *Node) awaitUp(ifname string) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		l, err := n.nl.LinkByName(ifname)
		if err != nil {
			return fmt.Errorf("node %d: %s: %w", n.number, ifname, err)
		}
		if l.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Since(start) > upTimeout {
			return fmt.Errorf("node %d: %s: still %v after %v: %w",
				n.number, ifname, l.Attrs().OperState, upTimeout, transport.ErrInterfaceDown)
		}
	}
}
