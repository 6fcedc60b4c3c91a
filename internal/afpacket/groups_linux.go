package afpacket

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// groups is the set of multicast groups that a link has joined. The NIC is told of each. That it
// filters is not certain (veth passes everything), so each received multicast frame is checked
// here.
type groups struct {
	socket Socket
	index  int // of the interface

	mu    sync.Mutex // serialises changes
	joins atomic.Pointer[map[transport.MAC]int]
}

func newGroups(index int, s Socket) *groups {
	g := &groups{socket: s, index: index}
	g.joins.Store(&map[transport.MAC]int{})
	return g
}

// has reports whether frames for a group address are wanted; broadcasts always are.
func (g *groups) has(group transport.MAC) bool {
	return group == transport.Broadcast || (*g.joins.Load())[group] > 0
}

func (g *groups) join(group transport.MAC) error { return g.add(group, 1) }

func (g *groups) leave(group transport.MAC) error { return g.add(group, -1) }

// add counts a join or leave. The kernel is told of a group's first join and last leave.
func (g *groups) add(group transport.MAC, n int) error {
	if !group.IsMulticast() {
		return fmt.Errorf("%v is not a group address", group)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := *g.joins.Load()
	before, now := old[group], old[group]+n
	if now < 0 {
		return fmt.Errorf("group %v was not joined", group)
	}
	joins := maps.Clone(old)
	joins[group] = now
	var err error
	switch {
	case before == 0:
		err = g.membership(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_MULTICAST, group)
	case now == 0:
		delete(joins, group)
		err = g.membership(unix.PACKET_DROP_MEMBERSHIP, unix.PACKET_MR_MULTICAST, group)
	}
	if err == nil {
		g.joins.Store(&joins)
	}
	return err
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
