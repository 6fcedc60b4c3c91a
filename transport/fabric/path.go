package fabric

import (
	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// path is the way of one frame through the fabric. It is planned before anything is delivered: if
// one receiver has no room, the frame is not sent. Its slices are reused from frame to frame.
type path struct {
	frame    transport.Frame
	hops     []hop
	arrivals []arrival
	egress   []l2switch.Egress
}

// hop is a frame's entry into a device, with the tag that it had on the cable.
type hop struct {
	dev     *device
	port    int
	tag     transport.OptionalTag
	verdict l2switch.Verdict
}

// arrival is a frame's end at a link, with the tag that it has there.
type arrival struct {
	link *Link
	tag  transport.OptionalTag
}

// deliver carries frame from link l to all its receivers. It delivers nothing and returns false if
// a receiver's queue is full and must not drop. The lock is held.
func (f *Fabric) deliver(now monotime.Time, l *Link, frame *transport.Frame) bool {
	p := &f.path
	p.frame = *frame
	if p.frame.Src.IsZero() {
		p.frame.Src = l.mac
	}
	if !p.plan(now, l, hop{dev: l.dev, port: l.port, tag: frame.OptionalTag}) {
		for _, a := range p.arrivals {
			a.link.queue.reserved = 0
		}
		p.forget()
		return false
	}
	for i := range p.hops {
		p.hops[i].dev.fwd.Count(p.hops[i].verdict)
	}
	for _, a := range p.arrivals {
		p.frame.OptionalTag = a.tag
		a.link.queue.push(&p.frame)
		a.link.wakeup.arrived()
	}
	p.forget()
	return true
}

// forget lets go of the frame's memory, which is the caller's again, and of the links, which may be
// closed before the next frame.
func (p *path) forget() {
	p.frame.Payload, p.frame.Headroom, p.frame.Answers, p.frame.Origin = nil, nil, nil, 0
	clear(p.arrivals)
}

// plan follows p.frame from its first hop through all devices and reserves room at each receiver.
// It ends because there are no loops: a frame enters a device at most once per VID.
func (p *path) plan(now monotime.Time, from *Link, first hop) bool {
	p.hops, p.arrivals = append(p.hops[:0], first), p.arrivals[:0]
	for i := 0; i < len(p.hops); i++ {
		h := &p.hops[i]
		dev := h.dev
		p.frame.OptionalTag = h.tag
		p.egress, h.verdict = dev.fwd.Decide(now, h.port, &p.frame, p.egress[:0])
		for _, e := range p.egress {
			end := &dev.ends[e.Port]
			switch l := end.link; {
			case end.to != nil:
				p.hops = append(p.hops, hop{dev: end.to, port: end.port, tag: e.OptionalTag})
			case l == nil || l == from || !l.wants(p.frame.Dst): // unplugged, or filtered by the station
			case l.queue.reserve():
				p.arrivals = append(p.arrivals, arrival{l, e.OptionalTag})
			case l.fabric.cfg.DropWhenFull:
				l.dropped++
			default:
				return false
			}
		}
	}
	return true
}
