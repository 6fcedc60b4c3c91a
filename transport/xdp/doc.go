// Package xdp is a link over AF_XDP: the fastest on one host's kernel, and the one that keeps up
// with a NIC whose driver has AF_XDP.
//
// A program in the kernel (XDP) looks at each frame that comes to the interface, before the
// kernel's own network stack does. Frames of the link's EtherType, for this station, a group or
// all, tagged or not, go to the link's memory; all others go on to the kernel as if there were no
// link. TCP/IP on the same interface is not disturbed.
//
//	NIC --> XDP program --+--> memory of the link:  Poll hands out views
//	                      +--> the kernel's stack:  IP, ARP and the rest
//
// Send builds frames in that memory, which costs one copy, and calls the kernel once for a batch.
// There is no cgo, and no allocation per frame.
//
// # Modes
//
//	ZeroCopy  the NIC reads and writes the link's memory itself
//	Native    the program runs in the driver, and the kernel copies frames
//	Generic   the program runs behind the driver, on any interface, and the kernel copies frames
//
// ModeAuto takes the first that the interface has. Link.Mode says which, and Link.Fallback why it
// is not a better one. On veth it takes Generic, which is quicker there.
//
// # What it needs
//
// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, outside of any user namespace: in practice root, or
// "setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep PROGRAM". CAP_IPC_LOCK is for NICs with
// several receive queues, each of which has locked memory of its own (Config.Slots pages or half
// pages; ulimit -l bounds that of a user without it). Other users' programs have links by the
// service of package grant, where its rules say so. Linux 5.9 or later; by a grant 6.4 or later. An
// interface runs one XDP program, so it has one link of this package, for one EtherType, and a
// second Open says who has it. Programs of a host that share an interface all use package ring:
// beside a link of this package, one of ring or packet receives nothing of the same EtherType.
//
// What the link changes on the system (the program, group membership, promiscuous mode) the kernel
// undoes when the process ends, however it ends. One setting is undone by Close alone: NICs that
// take VLAN tags off (rx-vlan-offload in ethtool -k) would take them off before the program sees
// them, so that is off while the link is open. A killed process leaves it off, and so does Close
// once the interface was moved to another namespace, which costs the kernel a little work for
// tagged frames and changes nothing else. A veth hands on what a Linux bridge or an 8021q device at
// its other end sends with the tag beside the bytes, and the link gets it without: there
// tx-vlan-offload has to be off.
//
// Frames of the link do not reach tcpdump and other packet sockets on the same interface. Package
// capture records them. The MTU is bounded by the memory's chunks, which are a page at most, and
// more so for ZeroCopy: Open says so. Open it anew where the interface's MTU is lowered: the kernel
// lets longer frames of the link pass, which the next switch or NIC drops. All frames are sent by
// one transmit queue, and so keep their order; all receive queues are received from that the
// interface has when the link is opened. Open it anew where there are more (ethtool -L): frames of
// those are lost, and counted as dropped.
//
// Source: MCD §2.3 (one copy between the ring and the user's buffer); the kernel's
// Documentation/networking/af_xdp.rst.
package xdp

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// Config of a link. The zero value is right for rawlane's own frames.
type Config struct {
	// EtherType of the frames to receive. 0 means transport.EtherTypeDefault. It cannot be
	// transport.EtherTypeAny, which would take all frames from the kernel.
	EtherType transport.EtherType
	// Mode is how the link gets its frames. ModeAuto is the best that the interface has; another
	// one is that one, or Open fails.
	Mode Mode
	// Slots is how many received frames the link holds for each receive queue, rounded up to a
	// power of two. 0 means DefaultSlots.
	Slots int
	// Promiscuous receives unicast frames for other stations, and frames of groups not joined.
	Promiscuous bool
	// NoVLANs says that tagged frames need not be received: a NIC that filters VLANs or takes tags
	// off is left as it is.
	NoVLANs bool
	// Grant is sockets that a service has opened for this program. Without one, Open asks for it by
	// itself where the system refuses; a grant may say more of what is wanted. Open takes it in any
	// case, and Close gives it back. The other fields are then the grant's.
	Grant *grant.Grant
}

// Limits of Config.Slots.
const (
	DefaultSlots = afpacket.DefaultSlots
	MaxSlots     = afpacket.MaxSlots
)

// Mode is how a link gets its frames from the NIC, and gives them to it.
type Mode int

// The modes, in the order in which they are tried.
const (
	ModeAuto Mode = Mode(xsk.ModeAuto)
	ZeroCopy Mode = Mode(xsk.ZeroCopy)
	Native   Mode = Mode(xsk.Native)
	Generic  Mode = Mode(xsk.Generic)
)

// ParseMode returns the mode of a name that String gives.
func ParseMode(name string) (Mode, error) {
	m, err := xsk.ParseMode(name)
	return Mode(m), err
}

// String names the mode as users do: auto, zero-copy, native or generic.
func (m Mode) String() string { return xsk.Mode(m).String() }
