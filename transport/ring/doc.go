// Package ring is a link over AF_PACKET with a receive ring in shared memory (TPACKET_V2): the fast one.
//
// The kernel writes each frame into a slot of the ring and marks it; Poll looks at the mark and hands out a view.
// A program that polls makes no system call and no copy to receive; one that waits sleeps in the runtime's
// poller. Sending is one system call for a frame, or for a batch.
//
//	kernel  --> | slot | slot | slot | slot |   head: the next one to look at
//	program <--    views until the next Poll
//
// The package is useful on its own, as a Go receive and transmit ring with exact VLAN metadata. VID, PCP and DEI
// of each frame are in transport.Frame, and its TPID comes from Link.TPID; a priority tag (VID 0) is told
// from no tag. Of stacked tags the outer one is the frame's, and the inner one is still in the payload, behind
// EtherType 0x8100; to receive those, open the link for transport.EtherTypeAny. No cgo, no copies,
// nothing allocated per frame.
//
// It needs CAP_NET_RAW, which an ordinary user has inside a user namespace. Nothing that it changes on the NIC
// (group membership, promiscuous mode) outlives it: the kernel undoes it when the socket goes.
//
// # VLANs on real NICs
//
// All VIDs are received. Drivers with a VLAN filter (ethtool -k: rx-vlan-filter, as virtio-net, vmxnet3 and many
// server NICs have) drop those that nobody registered. On such a NIC the link is promiscuous: see Config.NoVLANs
// and Link.Promiscuous. TCP/IP on the same NIC is not disturbed either way.
//
// Source: MCD §2.3 (one copy from the ring to the user's buffer); Linux Documentation/networking/packet_mmap.rst.
package ring

import "github.com/rawlane/rawlane/transport"

// Config of a link. The zero value is right for rawlane's own frames.
type Config struct {
	// EtherType of the frames to receive. Zero is transport.EtherTypeDefault; transport.EtherTypeAny is all.
	EtherType transport.EtherType
	// Slots is how many received frames the ring holds. Zero is DefaultSlots. It is rounded up to a power of two.
	Slots int
	// Promiscuous hands out unicast frames for other stations, and frames of groups that were not joined.
	Promiscuous bool
	// NoVLANs says that tagged frames need not be received: a NIC that filters VLANs is left as it is.
	NoVLANs bool
	// Qdisc sends through the interface's queueing discipline, and so past tc and traffic shaping. Otherwise it
	// is bypassed, which is quicker and drops frames a little sooner when the NIC is full.
	Qdisc bool
}

// Limits of Config.Slots. The default holds what arrives within a millisecond at a million frames a second; a
// slot takes the MTU's next power of two: 2 KiB for Ethernet's 1500 bytes.
const (
	DefaultSlots = 1024
	MaxSlots     = 1 << 16
)
