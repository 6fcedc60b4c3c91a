package ether

import (
	"github.com/rawlane/rawlane/transport"
)

// host is a station with one cable. It sends with the tag that its table has for the destination.
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

// transmit sends a frame to another host, or to itself through its switch, after the delay of its
// processor.
func (h *host) transmit(to *host, f *frame) {
	n := h.net
	f.dst, f.src, f.vid = to.mac, h.mac, h.vids[to.number]
	n.count.Sent++
	at := n.queue.Now()
	if !n.config.Exact {
		at = at.Add(n.rng.UpTo(jitter))
	}
	n.send(h.line, at, f)
}

// receive takes a frame for this host, of any VID: a host that receives all VIDs understands its
// peers whatever their tables say. Source: VFREC §4.3.
func (h *host) receive(f *frame) {
	if f.dst != h.mac {
		h.net.count.NotAddressed++
		return
	}
	h.net.count.Delivered++
	h.net.flows[f.flow].receive(f)
}
