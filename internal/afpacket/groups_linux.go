package afpacket

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Groups is the group membership of one socket. The kernel's own (and the NIC's) is a help and no filter: they
// may pass more, as veth passes everything. So each received group frame is looked up here.
type Groups struct {
	mu     sync.Mutex // serialises changes
	joined atomic.Pointer[map[transport.MAC]int]
	// change does PACKET_ADD_MEMBERSHIP or PACKET_DROP_MEMBERSHIP on the socket.
	change func(option int, request *unix.PacketMreq) error
	index  int
}

// NewGroups makes the membership of a socket bound to the interface of that index.
func NewGroups(index int, change func(option int, request *unix.PacketMreq) error) *Groups {
	g := &Groups{change: change, index: index}
	g.joined.Store(&map[transport.MAC]int{})
	return g
}

// Has reports whether frames for a group address are wanted; broadcasts always are.
func (g *Groups) Has(group transport.MAC) bool {
	return group == transport.Broadcast || (*g.joined.Load())[group] > 0
}

// Join adds the group, once more. At the first time the NIC is told.
func (g *Groups) Join(group transport.MAC) error { return g.add(group, 1, unix.PACKET_ADD_MEMBERSHIP) }

// Leave undoes one Join.
func (g *Groups) Leave(group transport.MAC) error {
	return g.add(group, -1, unix.PACKET_DROP_MEMBERSHIP)
}

func (g *Groups) add(group transport.MAC, n, option int) error {
	if !group.IsMulticast() {
		return fmt.Errorf("%v is not a group address", group)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := *g.joined.Load()
	now := old[group] + n
	if now < 0 {
		return fmt.Errorf("group %v was not joined", group)
	}
	if now+old[group] == 1 { // from 0 to 1 or back
		request := &unix.PacketMreq{Ifindex: int32(g.index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(group))}
		copy(request.Address[:], group[:])
		if err := g.change(option, request); err != nil {
			return Explain(err)
		}
	}
	joined := maps.Clone(old)
	joined[group] = now
	if now == 0 {
		delete(joined, group)
	}
	g.joined.Store(&joined)
	return nil
}

// Promiscuous has the NIC called name pass everything until the socket is closed, if that was asked for, or if tagged
// frames are wanted that it would drop. It returns why, or "" if it need not.
func (g *Groups) Promiscuous(name string, asked, vlans bool) (why string, err error) {
	if asked {
		why = "asked for"
	} else if vlans {
		filters, err := FiltersVLANs(name)
		if err != nil {
			return "", err
		}
		if filters {
			why = "the NIC filters VLANs (rx-vlan-filter), and would drop tagged frames of VIDs that nobody registered"
		}
	}
	if why == "" {
		return "", nil
	}
	return why, g.change(unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(g.index), Type: unix.PACKET_MR_PROMISC})
}
