// Package ring is a link over AF_PACKET with a receive ring in shared memory (TPACKET_V2): the fast
// one.
//
// The kernel writes each frame into a slot of the ring and marks the slot; Poll looks at the mark
// and hands out a view. A program that polls receives without a system call or a copy; one that
// waits sleeps in the runtime's poller. Sending is one system call for a frame, or for a batch.
//
//	kernel  --> | slot | slot | slot | slot |   head: the next one to look at
//	program <--    views until the next Poll
//
// The package is useful on its own, as a receive ring and sender for Go with exact VLAN metadata.
// VID, PCP and DEI of each frame are in transport.Frame, its TPID comes from Link.TPID, and a
// priority tag (VID 0) is told from no tag. Of stacked tags the outer one is the frame's; the inner
// one stays in the payload, behind EtherType 0x8100: to receive such frames, open the link for
// transport.EtherTypeAny. There is no cgo, and no allocation per frame.
//
// The link needs CAP_NET_RAW, which an ordinary user has inside a user namespace, or a service that
// has it and hands out sockets: see package grant. What it changes on the NIC (group membership,
// promiscuous mode) the kernel undoes when the socket is closed.
//
// # Order on NICs with several transmit queues
//
// Frames keep their order as long as they take one queue. Past the queueing discipline the kernel
// chooses the queue by the processor that sends, so the link goes past it only on NICs with one.
// Through it the kernel chooses by what it makes of the frame's headers: always the same queue for
// one link. But where transmit packet steering (XPS) is on, as some drivers leave it, the processor
// decides again, and frames overtake each other when the sender is moved to another one. Turn it
// off ("echo 0" into each of /sys/class/net/eth0/queues/tx-*/xps_cpus), or leave the NIC one queue
// ("ethtool -L eth0 combined 1").
//
// # VLANs on real NICs
//
// All VIDs are received. Drivers with a VLAN filter (rx-vlan-filter in ethtool -k: virtio-net,
// vmxnet3 and many server NICs) drop VIDs that nobody registered. On such a NIC the link turns
// promiscuous mode on: see Config.NoVLANs and Link.Promiscuous. TCP/IP on the same NIC is not
// disturbed either way.
//
// # Trains
//
// Frames that one Send is given for one station, four at least and equal in length but the last, go
// through the kernel as one packet, behind an IPv4 and a UDP header each, and come out of Poll as
// frames again: a train costs the kernel little more than a frame does. The longest frame that can
// be part of one is TrainMTU. A station is sent trains only while it says that they arrive: others
// get frames as they are. A train and a frame that goes alone are of two flows, which may overtake
// each other: on NICs with several queues, through queueing disciplines other than a FIFO
// (fq_codel), and where the receiver steers flows (RPS) or joins datagrams. The links look for
// these when they open, and frames that go alone then have a train's headers, too. Frames longer
// than TrainMTU have no room for these, and keep no order with others there: who needs that sends
// none, or sets NoTrains.
//
// docs/decisions/013-trains.md has the reasons and the limits: beside a virtual machine that is not
// trusted, set NoTrains.
//
// Source: MCD §2.3 (one copy from the ring to the user's buffer); the kernel's
// Documentation/networking/packet_mmap.rst.
package ring

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// Config of a link. The zero value is right for rawlane's own frames.
type Config struct {
	// EtherType of the frames to receive. 0 means transport.EtherTypeDefault;
	// transport.EtherTypeAny means all.
	EtherType transport.EtherType
	// Slots is how many received frames the ring holds, rounded up to a power of two, and to 64 KiB
	// of slots: 32 at least for Ethernet's 1,500 bytes. 0 means DefaultSlots, or as many as 16 MiB
	// hold: fewer where the MTU is over 16,000 bytes.
	Slots int
	// Promiscuous receives unicast frames for other stations, and frames of groups not joined.
	Promiscuous bool
	// NoVLANs says that tagged frames need not be received: a NIC that filters VLANs is left as it
	// is.
	NoVLANs bool
	// Qdisc sends through the interface's queueing discipline, so that tc and traffic shaping
	// apply. Bypassing it, as by default, is quicker and drops frames a little sooner when the NIC
	// is full. It is never bypassed on a NIC with several transmit queues, where frames would lose
	// their order.
	Qdisc bool
	// NoTrains sends and receives each frame as a packet, as granted sockets and links for IPv4 or
	// transport.EtherTypeAny do anyway: see the package's documentation. As long as the link is
	// open, no program that shares the interface is sent trains; those that were on their way
	// before, for up to 0.9 s, are lost to this link.
	NoTrains bool
	// Grant is sockets that a service has opened for this program. Without one, Open asks for it by
	// itself where the system refuses a socket. The link takes it: it is closed with the link, and
	// if Open fails. EtherType and Slots are the grant's.
	Grant *grant.Grant
}

// Limits of Config.Slots. The default holds one millisecond of a million frames a second. A slot
// takes the next power of two above the MTU: 2 KiB for Ethernet's 1,500 bytes.
const (
	DefaultSlots = afpacket.DefaultSlots
	MaxSlots     = afpacket.MaxSlots
)
