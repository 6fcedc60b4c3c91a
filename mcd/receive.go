package mcd

import (
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Message is a received message, as a handler sees it.
type Message struct {
	From    Addr
	To      Dest          // whom it was sent to: this node's port, a group or all
	NIC     int           // the link that it came by
	Src     transport.MAC // the address that it came from
	Tagged  bool          // the sender put a VLAN tag on it
	Tag     transport.Tag // the tag as sent, even where a switch or NIC has stripped it
	Payload []byte        // a view of the link's memory, valid until the handler returns
}

// receive takes one frame apart, and delivers its message or counts why not. The caller leads.
func (e *Endpoint) receive(nic int, f *transport.Frame) {
	if f.EtherType != e.cfg.EtherType {
		e.dropped[dropType].add(1)
		return
	}
	h := &e.header
	if fault := wire.Parse(f.Payload, h); fault != wire.OK {
		e.dropped[faultDrops[fault]].add(1)
		if fault == wire.BadVersion {
			e.noteForeign(f.Src, wire.VersionOf(f.Payload))
		}
		return
	}
	if h.Kind >= wire.Probe {
		e.visit(nil)
		e.receiveProbe(nic, f, h)
		return
	}
	p, cause := e.owner(nic, f, h)
	if p == nil {
		e.dropped[cause].add(1)
		return
	}
	m := &e.message
	m.From = Addr{NodeID(h.From), PortID(h.SrcPort)}
	m.To = Dest{h.Kind, h.To, PortID(h.DstPort)}
	m.NIC = nic
	m.Src = f.Src
	m.Tagged, m.Tag = h.Tagged, transport.Tag{}
	if h.Tagged {
		m.Tag = transport.TagFromTCI(h.TCI)
	}
	m.Payload = h.Payload
	p.deliver(m)
}

// faultDrops names the counter of each fault.
var faultDrops = [...]drop{
	wire.TooShort:    dropShort,
	wire.BadVersion:  dropVersion,
	wire.BadLength:   dropLength,
	wire.BadChecksum: dropChecksum,
	wire.BadKind:     dropKind,
}

// owner returns the port that a well-formed message is for, or nil and the cause for which it is dropped.
func (e *Endpoint) owner(nic int, f *transport.Frame, h *wire.Header) (*Port, drop) {
	if ClusterID(h.Cluster) != e.cfg.Cluster {
		return nil, dropCluster
	}
	switch h.Kind {
	case wire.Unicast:
		if NodeID(h.To) != e.cfg.Node {
			return nil, dropNode
		}
	case wire.Multicast:
		if (*e.groups.Load())[GroupID(h.To)] == 0 {
			return nil, dropGroup
		}
	}
	p := e.ports[h.DstPort].Load()
	if p == nil {
		return nil, dropNoPort
	}
	if !p.opts.Strangers && !e.genuine(nic, f.Src, NodeID(h.From)) {
		return nil, dropSource
	}
	return p, 0
}

// genuine reports whether a message that claims to be from a node came from that node's address. Nodes that
// the table does not know are believed, except for one who claims to be us.
func (e *Endpoint) genuine(nic int, src transport.MAC, from NodeID) bool {
	if from == e.cfg.Node {
		return false
	}
	p := e.table.Load().lookup(from)
	return p == nil || p.macs[nic] == src
}
