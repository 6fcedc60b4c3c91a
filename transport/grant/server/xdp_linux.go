package server

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/xdpprog"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Link xdp. The program on the interface, the NIC's settings and the sockets are made here, and a
// client cannot change them: a socket that is bound takes no other memory, and no further rings.
//
// An interface has one such link. When its client hangs up the program goes, and the NIC gets its
// settings back; when the service ends both stay, as the client has the program's attachment.

// openXDP makes the sockets of a link xdp, fixed to scopes.
func (a *attachment) openXDP(r *protocol.Request, scopes []rules.Scope) (_ *sockets, err error) {
	programs, err := programScopes(scopes)
	if err != nil {
		return nil, err
	}
	mode, chunk, err := a.modeAndChunk(r)
	if err != nil {
		return nil, err
	}
	s := &sockets{receive: -1, send: -1}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.openMonitor(a.Index, r.EtherType); err != nil {
		return nil, err
	}
	s.xdp, err = afxdp.Open(a.Interface, chunk, afxdp.Config{
		EtherType: r.EtherType, MAC: a.MAC, Mode: mode, Slots: slotsXDP(r), NoVLANs: r.NoVLANs,
		Scopes: programs, Shared: true,
	})
	return s, err
}

// openMonitor makes the socket that tells of the interface, and receives nothing.
func (s *sockets) openMonitor(index int, etherType transport.EtherType) (err error) {
	if s.receive, err = afpacket.OpenSocket(); err != nil {
		return afpacket.Explain("make the socket", err)
	}
	if err := afpacket.BindMonitor(s.receive, index, etherType); err != nil {
		return err
	}
	if err := s.fixMemory(s.receive, oneSlot); err != nil {
		return afpacket.Explain("make the ring", err)
	}
	if err := lockFilter(s.receive); err != nil {
		return err
	}
	return s.readInodes()
}

// modeAndChunk are the mode that is asked for, and the size of its chunks.
func (a *attachment) modeAndChunk(r *protocol.Request) (mode xsk.Mode, chunk int, err error) {
	if mode, err = xsk.ParseMode(cmp.Or(r.Mode, xsk.ModeAuto.String())); err == nil {
		chunk, err = afxdp.ChunkFor(a.Interface, mode)
	}
	return mode, chunk, err
}

// slotsXDP is how many frames each socket can receive into: a power of two.
func slotsXDP(r *protocol.Request) int {
	return 1 << bits.Len(uint(cmp.Or(r.Slots, afpacket.DefaultSlots)-1))
}

// programScopes are scopes as the program on the interface looks at them.
func programScopes(scopes []rules.Scope) (programs []xdpprog.Scope, err error) {
	if len(scopes) > xdpprog.MaxScopes {
		return nil, fmt.Errorf("the rules for this user list %d ranges of clusters, and link xdp takes %d "+
			"(ask for one cluster, or use link ring)", len(scopes), xdpprog.MaxScopes)
	}
	for _, s := range scopes {
		p := xdpprog.Scope{First: s.Cluster.First, Last: s.Cluster.Last}
		for _, r := range s.Ports {
			for port := int(r.First); port <= int(r.Last); port++ {
				p.Ports[port/8] |= 1 << (port % 8)
			}
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// bytes returns how much memory the sockets of a request take.
func (a *attachment) bytes(r *protocol.Request) (int64, error) {
	if !r.XDP {
		layout := a.layout(r)
		return int64(layout.Bytes()), nil
	}
	if a.Driver.RxQueues > protocol.MaxQueues {
		return 0, fmt.Errorf("the NIC has %d receive queues, and link xdp by a grant takes %d "+
			"(ethtool -L %s combined %d; or use link ring)",
			a.Driver.RxQueues, protocol.MaxQueues, a.Name, protocol.MaxQueues)
	}
	_, chunk, err := a.modeAndChunk(r)
	return int64(afxdp.Bytes(a.Driver.RxQueues, chunk, slotsXDP(r))), err
}

// opened is what a client is told of its link.
func (a *attachment) opened(r *protocol.Request, s *sockets) *protocol.Opened {
	o := &protocol.Opened{
		Interface: a.Name, Index: a.Index, MTU: a.MTU, MAC: a.MAC, EtherType: r.EtherType,
		FiltersVLANs: a.Driver.FiltersVLANs, TxQueues: a.Driver.TxQueues, Namespace: a.Namespace,
	}
	if s.xdp == nil {
		layout := a.layout(r)
		o.SlotSize, o.Slots = layout.SlotSize, layout.Slots
		return o
	}
	o.XDP = &protocol.OpenedXDP{
		Mode: s.xdp.Mode.String(), Fallback: s.xdp.Fallback, Chunk: s.xdp.Chunk(), Slots: slotsXDP(r),
		Queues: s.xdp.Queues(),
	}
	return o
}

// detach takes a link's program off the interface, or leaves it to the client.
func (s *sockets) detach(leave bool) error {
	if s.xdp == nil {
		return nil
	}
	if leave {
		return s.xdp.Leave()
	}
	return s.xdp.Detach()
}

// hasXDP reports whether a client still has sockets of AF_XDP, after detach. If nobody can tell, it
// has.
func (s *sockets) hasXDP() bool {
	if s.xdp == nil {
		return false
	}
	has, err := s.xdp.HasSockets()
	return has || err != nil
}

// occupy books an interface for a connection's link xdp. It waits for one whose client has hung up.
func (s *Server) occupy(c *conn, index int) *protocol.RefusalError {
	for {
		s.mu.Lock()
		holder := s.xdp[index]
		if holder == nil {
			c.vacated = make(chan struct{})
			s.xdp[index] = c
		}
		wait := holder != nil && holder.hungUp
		s.mu.Unlock()
		switch {
		case holder == nil:
			return nil
		case !wait:
			return occupied(&xsk.OccupiedError{Program: xsk.ProgramName, PID: holder.who.pid})
		}
		<-holder.vacated
	}
}

// vacate undoes occupy.
func (s *Server) vacate(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for index, holder := range s.xdp {
		if holder == c {
			delete(s.xdp, index)
			close(c.vacated)
		}
	}
}

func occupied(e *xsk.OccupiedError) *protocol.RefusalError {
	return &protocol.RefusalError{Cause: protocol.Occupied, Text: e.Error(), PID: e.PID, Program: e.Program}
}
