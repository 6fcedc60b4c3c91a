package ether

import (
	"github.com/rawlane/rawlane/transport"
)

// host is a station: what its programs send leaves by one cable, with the tag that its table has
// for the destination.
type host struct {
	net    *Network
	number int
	mac    transport.MAC
	vids   []transport.VID // by destination
	line   *line           // to its switch
}

// Address returns host i's address: a locally administered one.
func Address(i int) transport.MAC {
	return transport.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

// transmit sends a frame to another host, or to itself by way of its switch, as soon as its
// processor gets to it.
func (h *host) transmit(to *host, f *frame) {
	n := h.net
	f.dst, f.src, f.vid = to.mac, h.mac, h.vids[to.number]
	n.count.Sent++
	at := n.queue.Now()
	if !n.config.Exact {
		at = at.Add(n.chance.UpTo(jitter))
	}
	n.send(h.line, at, f)
}

// receive takes in a frame of any VID, if it is for this host: who receives all VIDs understands
// the other end whatever its table says. Source: VFREC §4.3.
func (h *host) receive(f *frame) {
	if f.dst != h.mac {
		h.net.count.NotAddressed++
		return
	}
	h.net.count.Delivered++
	h.net.flows[f.flow].receive(f)
}
