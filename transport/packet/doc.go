// Package packet is a link over AF_PACKET through the runtime's poller: it works on every Linux kernel and interface.
//
// The socket is github.com/mdlayher/packet's. What that does not offer is added through its SyscallConn: auxiliary data,
// without which a received frame's VLAN tag is lost, and reception in batches without an allocation. Frames are sent by a
// socket of their own: one that the runtime watches would wake a thread for each frame that it has sent.
//
// Frames are copied once more than by package ring, and polling costs a system call; what it needs is the same:
// CAP_NET_RAW, which an ordinary user has inside a user namespace. What that package says of VLANs on real NICs
// holds here, too.
package packet

import "github.com/rawlane/rawlane/transport"

// Config of a link. The zero value is right for rawlane's own frames.
type Config struct {
	// EtherType of the frames to receive. Zero is transport.EtherTypeDefault; transport.EtherTypeAny is all.
	EtherType transport.EtherType
	// ReceiveBuffer is how much the kernel may keep for the link, in bytes. Zero is DefaultReceiveBuffer.
	// More than net.core.rmem_max takes CAP_NET_ADMIN; without it, the kernel gives that much.
	ReceiveBuffer int
	// Promiscuous hands out unicast frames for other stations, and frames of groups that were not joined.
	Promiscuous bool
	// NoVLANs says that tagged frames need not be received: a NIC that filters VLANs is left as it is.
	NoVLANs bool
	// BypassQdisc sends past the interface's queueing discipline, tc and traffic shaping: quicker, and frames are
	// dropped a little sooner when the NIC is full.
	BypassQdisc bool
}

// DefaultReceiveBuffer holds about 3,000 frames of 1,500 bytes: what arrives in 3 ms at most.
const DefaultReceiveBuffer = 8 << 20
