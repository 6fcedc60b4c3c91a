package mcd

import (
	"sync"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/race"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// outbox is where a port puts headers before payloads, for a batch of frames. What each message
// wants stands before the batch, side by side: a system call leaves little of it in the processor's
// caches.
type outbox struct {
	mu       sync.Mutex // guards all of it; taken inside sendQueue.mu
	memory   []byte     // of the frames that are copied, side by side; as much as a batch ever took
	used     int        // of it
	size     int        // of the longest frame
	linkRoom int        // of Endpoint.Headroom, what is before mcd's header
	envelope envelope   // of the next messages
	tx       traffic
	scratch  auth.Scratch
	counts   [sendBatch]*vlan.Count // of the frames' routes; nil: not counted
	frames   [sendBatch]transport.Frame
}

// envelope is what a message travels in.
type envelope struct {
	header wire.Header
	frame  transport.Frame
	count  *vlan.Count
	auth   *authLink    // nil: no keys
	sealer *auth.Sealer // its present one
}

func (o *outbox) init(e *Endpoint) {
	o.size = transport.MaxHeaderLen + e.headerLen + e.maxPayload + wire.TagLen
	o.linkRoom = e.linkRoom
}

// awaitSenders returns when the sends that have been admitted are over.
func (o *outbox) awaitSenders() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

// room returns memory for the i-th frame of a batch, just behind the one before: the kernel takes
// frames that lie side by side as one.
func (o *outbox) room(i int) []byte {
	if i == 0 {
		o.used = 0
	}
	if len(o.memory)-o.used < o.size {
		o.memory, o.used = make([]byte, max(2*len(o.memory), o.size)), 0
	}
	return o.memory[o.used:]
}

// copyIn makes a message the i-th frame, in the present envelope.
func (o *outbox) copyIn(i int, b []byte) {
	v, f, room := &o.envelope, &o.frames[i], o.room(i)
	*f = v.frame
	o.counts[i] = v.count
	n := f.HeaderLen()
	if i > 0 && o.linkRoom == 0 {
		n = 0 // the payloads of a train lie side by side
	}
	f.Headroom, f.Payload = room[:n], room[n:]
	switch {
	case v.auth == nil:
		f.Payload = f.Payload[:wire.Put(f.Payload, &v.header, b)]
	case v.sealer.Encrypts():
		v.auth.encrypt(v.sealer, &o.scratch, f, &v.header, b)
	default:
		f.Payload = f.Payload[:AuthHeaderLen+copy(f.Payload[AuthHeaderLen:], b)]
		v.auth.seal(v.sealer, &o.scratch, f, &v.header)
	}
	o.used += n + len(f.Payload)
}

// put makes the message that is in b, behind Endpoint.Headroom bytes, the i-th frame, in the
// present envelope.
func (o *outbox) put(i int, b []byte) {
	v, f := &o.envelope, &o.frames[i]
	if v.auth != nil && v.sealer.Encrypts() {
		o.copyIn(i, b[o.linkRoom+AuthHeaderLen:]) // b is the caller's, and stays as it is
		return
	}
	*f = v.frame
	o.counts[i] = v.count
	f.Headroom, f.Payload = b[:o.linkRoom], b[o.linkRoom:]
	if v.auth == nil {
		wire.Seal(f.Payload, &v.header)
		return
	}
	v.auth.seal(v.sealer, &o.scratch, f, &v.header)
}

// address makes the outbox's envelope one for messages to a destination: to a neighbour, or to many
// if n is nil. The caller holds the outbox's lock.
func (p *Port) address(nic int, to Dest, n *neighbour) {
	e, v := p.e, &p.out.envelope
	var dst transport.MAC
	var tag transport.OptionalTag
	if n != nil {
		dst = n.mac
		tag, v.count = e.router.toNeighbour(n)
		if e.auth != nil && !n.met.Load() {
			e.auth.meet(nic, n)
		}
	} else {
		dst = e.manyMAC(to)
		tag, v.count = e.router.toMany(dst)
	}
	v.frame = e.frame(nic, dst, tag)
	if v.auth = e.nics[nic].auth; v.auth != nil {
		v.sealer = v.auth.sealer.Load()
	}
	v.header = wire.Header{
		Kind:       to.kind,
		Tagged:     tag.Tagged,
		HeaderOnly: e.nics[nic].coverage.sent() == ChecksumHeader,
		TCI:        tag.TCI(),
		DstPort:    uint8(to.port),
		SrcPort:    uint8(p.id),
		From:       uint16(e.cfg.Node),
		To:         to.to,
		Cluster:    uint32(e.cfg.Cluster),
	}
}

// frame returns the frame of a message, without its payload.
func (e *Endpoint) frame(nic int, dst transport.MAC, tag transport.OptionalTag) transport.Frame {
	return transport.Frame{Dst: dst, Src: e.nics[nic].mac, EtherType: e.cfg.EtherType, OptionalTag: tag}
}

// manyMAC returns the Ethernet address of a destination that is a group or all nodes.
func (e *Endpoint) manyMAC(to Dest) transport.MAC {
	if to.kind == wire.Multicast {
		return GroupMAC(e.cfg.Cluster, GroupID(to.to))
	}
	return transport.Broadcast
}

// checkpoint is authLink.checkpoint, before a batch of frames.
func (p *Port) checkpoint(nic int) {
	if l := p.e.nics[nic].auth; l != nil {
		l.checkpoint(clock.Now())
	}
}

// transmit gives the first n frames of the outbox to the link, and returns how many it took. The
// caller holds the outbox's lock.
func (p *Port) transmit(nic, n int) (int, error) {
	if l := p.out.envelope.auth; l != nil && l.counter.Load() > auth.LastCounter {
		return 0, errExhausted
	}
	race.Release(p.e) // for who answers, and writes to memory that was read before
	sent, err := p.e.nics[nic].link.Send(p.out.frames[:n])
	if sent == n {
		err = nil // of no frame
	}
	size := 0
	for i := range sent {
		f := &p.out.frames[i]
		size += len(f.Payload) - p.e.headerLen
		if c := p.out.counts[i]; c != nil {
			c.Add(1, f.WireLen())
		}
	}
	p.out.tx.add(sent, size)
	return sent, err
}
