package failover

import (
	"bytes"
	"errors"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// maxProbes bounds the received probes that wait for the driver's goroutine: those of 100 ms, at
// some tens of thousands a second. Further ones are dropped, as on the wire.
const maxProbes = 4096

// onProbe takes in a probe or an answer. The endpoint calls it while it polls.
func (d *Driver) onProbe(p *mcd.Probe) {
	if p.NIC != d.cfg.NIC || len(p.Body) == 0 || !p.SentTag.Tagged {
		return
	}
	own := *p
	own.Body = bytes.Clone(p.Body)
	d.queue(&own)
}

// queue passes a probe on to the driver's goroutine, or with nil wakes it.
func (d *Driver) queue(p *mcd.Probe) {
	select {
	case d.probes <- p:
	default: // it has enough to do
	}
}

// take hands a received probe to the core. The caller holds mu.
func (d *Driver) take(p *mcd.Probe) {
	switch now := clock.Now(); {
	case p == nil:
	case p.Reply:
		d.do(d.core.Answered(now, p.Src, p.SentTag.Tag.VID, p.Body, nil))
	default:
		d.do(d.core.Heard(now, p.Src, p.Incarnation, p.Body, nil))
	}
}

// probe sends a probe, and notes in links whether the interface is down. A probe that cannot be
// sent is missed. The caller holds mu.
func (d *Driver) probe(node mcd.NodeID, vid transport.VID, body []byte, links map[transport.VID]bool) {
	tag := transport.Tagged(transport.Tag{VID: vid, PCP: d.cfg.PCP})
	_, err := d.ep.TryProbe(mcd.Path{Node: node, NIC: d.cfg.NIC, OptionalTag: tag}, mcd.ProbeOptions{Body: body})
	links[vid] = errors.Is(err, transport.ErrInterfaceDown)
}

// updateLinks tells the core of interfaces that went down or up. The caller holds mu.
func (d *Driver) updateLinks(links map[transport.VID]bool) {
	for vid, down := range links {
		if down != d.linkDown[vid] {
			d.linkDown[vid] = down
			d.do(d.core.SetLink(clock.Now(), !down, nil, vid))
		}
	}
}

// probeDeadLinks finds out whether interfaces that were down still are, by a probe to any one node.
// The caller holds mu.
func (d *Driver) probeDeadLinks() {
	links := make(map[transport.VID]bool)
	for vid, down := range d.linkDown {
		for _, p := range d.peers {
			if down {
				d.probe(p.node, vid, nil, links)
			}
			break
		}
	}
	d.updateLinks(links)
}
