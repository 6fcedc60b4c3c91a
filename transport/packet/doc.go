// Package packet is a link over AF_PACKET through the runtime's poller. It works on every Linux
// kernel and interface.
//
// The socket is github.com/mdlayher/packet's. Two things are added through its SyscallConn: the
// auxiliary data, which carries the VLAN tag of a received frame, and reception in batches without
// allocation. Frames are sent by a socket of their own: one that the runtime watches would wake a
// thread for each frame that it has sent.
//
// Package ring copies each frame once less and polls without a system call. Both need CAP_NET_RAW,
// which an ordinary user has inside a user namespace, or the service of package grant; what ring
// says of VLANs and of transmit queues on real NICs holds here too.
package packet

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// Config of a link. The zero value is right for rawlane's own frames.
type Config struct {
	// EtherType of the frames to receive. 0 means transport.EtherTypeDefault;
	// transport.EtherTypeAny means all.
	EtherType transport.EtherType
	// ReceiveBuffer is how much the kernel may keep for the link, in bytes. 0 means
	// DefaultReceiveBuffer. Without CAP_NET_ADMIN the kernel gives net.core.rmem_max at most.
	ReceiveBuffer int
	// Promiscuous receives unicast frames for other stations, and frames of groups not joined.
	Promiscuous bool
	// NoVLANs says that tagged frames need not be received: a NIC that filters VLANs is left as it
	// is.
	NoVLANs bool
	// BypassQdisc sends past the interface's queueing discipline, tc and traffic shaping. That is
	// quicker, and drops frames a little sooner when the NIC is full. It has no effect on a NIC
	// with several transmit queues, where frames would lose their order.
	BypassQdisc bool
	// NoTrains sends and receives each frame as a packet, as granted sockets and links for IPv4 or
	// transport.EtherTypeAny do anyway: see package ring. As long as the link is open, no program
	// that shares the interface is sent trains; those that were on their way before, for up to
	// 0.9 s, are lost to this link.
	NoTrains bool
	// Grant is sockets that a service has opened for this program. Without one, Open asks for it by
	// itself where the system refuses a socket. The link takes it: it is closed with the link, and
	// if Open fails. EtherType is the grant's.
	Grant *grant.Grant
}

// DefaultReceiveBuffer holds about 3,000 frames of 1,500 bytes: at most 3 ms of traffic.
const DefaultReceiveBuffer = 8 << 20
