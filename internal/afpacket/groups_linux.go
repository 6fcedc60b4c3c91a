package afpacket

import (
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/joins"
	"github.com/rawlane/rawlane/transport"
)

// groups is the set of multicast groups that a link has joined. The NIC is told of each. That it
// filters is not certain (veth passes everything), so each received multicast frame is checked
// here.
type groups struct {
	joins.Set
	socket Socket
	index  int // of the interface
}

func newGroups(index int, s Socket) *groups { return &groups{socket: s, index: index} }

func (g *groups) join(group transport.MAC) error {
	return g.Join(group, func(member bool) error { return g.tell(group, member) })
}

func (g *groups) leave(group transport.MAC) error {
	return g.Leave(group, func(member bool) error { return g.tell(group, member) })
}

func (g *groups) tell(group transport.MAC, member bool) error {
	option := unix.PACKET_ADD_MEMBERSHIP
	if !member {
		option = unix.PACKET_DROP_MEMBERSHIP
	}
	return g.membership(option, unix.PACKET_MR_MULTICAST, group)
}

// membership changes what the NIC passes on, for as long as the socket is open.
func (g *groups) membership(option, what int, group transport.MAC) error {
	request := &unix.PacketMreq{Ifindex: int32(g.index), Type: uint16(what), Alen: uint16(len(group))}
	copy(request.Address[:], group[:])
	return g.socket.Control(func(fd int) error {
		return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, option, request)
	})
}

// promiscuous makes the NIC pass everything.
func (g *groups) promiscuous() error {
	return g.membership(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_PROMISC, transport.MAC{})
}
