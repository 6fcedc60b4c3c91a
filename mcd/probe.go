package mcd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// A probe asks the endpoint of a node for an answer. Whoever polls there answers it, whether a program waits or computes, and no
// port is needed. The answer carries the tag that the probe was sent with, and is as long: so one probe tests a path in
// both directions, at its length. It tells which tag the probe arrived with.
//
//	node 0                     switches                     node 1
//	Ping, VID 5  ---------- VID 5, 1000 bytes ---------->   sees VID 5 (or another, or none)
//	RTT          <--------- VID 5, 1000 bytes ----------    answers at once

// ProbeOptions are what a probe may have besides its path. The zero value is a short probe.
type ProbeOptions struct {
	// Size is how long the probe is, in bytes of payload, and so the answer: MinProbe to MaxPayload. 0: as long as it must be.
	Size int
	// Body goes with the probe and comes back with the answer, in the payload behind the first MinProbe bytes.
	Body []byte
	// Back, if it is not nil, is the tag of the answer, for paths that are tested in one direction alone.
	Back *transport.OptionalTag
	// Anyone has whoever gets the probe answer, though the number in it be another node's: so two nodes that have one
	// address are found out.
	Anyone bool
}

// MinProbe is the shortest payload of a probe, in bytes.
const MinProbe = wire.ProbeHeadLen

// size returns the length of the probe's payload.
func (o *ProbeOptions) size() int { return max(o.Size, MinProbe+len(o.Body)) }

// Probe is a probe or an answer that came. It is the endpoint's again when the watcher returns.
type Probe struct {
	Answer   bool
	Number   uint32                // of the probe, as TryProbe returned it to its sender
	From     NodeID                // who sent this
	NIC      int                   // the link that it came by
	Src      transport.MAC         // the address that it came from
	Instance uint32                // the life of the endpoint that sent it: another one each time that one is opened
	Sent     transport.OptionalTag // as this frame was sent
	Came     transport.OptionalTag // as this frame arrived here
	Seen     transport.OptionalTag // of an answer: as the probe arrived there
	Body     []byte                // with the zeros behind it, if the probe was made longer
}

// prober is an endpoint's part in probes.
type prober struct {
	instance uint32
	last     atomic.Uint32 // number of the last probe that was sent

	mu       sync.Mutex // guards what follows; taken inside the poll lock
	waiting  map[uint32]*ping
	watchers []*func(*Probe)
	closed   bool

	// What follows belongs to who polls.
	got    Probe
	answer []byte
	sent   [1]transport.Frame

	asked, answered, unanswered, came counter
}

func (p *prober) init() {
	p.instance = rand.Uint32()
	p.last.Store(rand.Uint32())
	p.waiting = make(map[uint32]*ping)
}

// WatchProbes has f be told of every probe and answer that comes, in whichever goroutine polls; it must be as brief as a port's
// handler, and may call TryProbe. Probes are answered all the same. stop undoes it; a call in progress may end after.
func (e *Endpoint) WatchProbes(f func(*Probe)) (stop func()) {
	p := &e.probes
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(slices.Clip(p.watchers), &f)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers = slices.DeleteFunc(slices.Clone(p.watchers), func(w *func(*Probe)) bool { return w == &f })
	}
}

// TryProbe sends a probe, and does not wait: transport.ErrBusy if the link has no room now. It returns the probe's number, which its
// answer has, too. A probe to this node itself goes to the broadcast address, and nobody answers it: if it comes back,
// the network has a loop. Other errors: ErrUnknownNode, ErrTooLarge, transport.ErrBadTag, ErrClosed.
func (e *Endpoint) TryProbe(to Path, o ProbeOptions) (number uint32, err error) {
	number = e.probes.last.Add(1)
	return number, e.sendProbe(to, o, number)
}

func (e *Endpoint) sendProbe(to Path, o ProbeOptions, number uint32) error {
	if e.closed.Load() {
		return ErrClosed
	}
	f, err := e.probeFrame(to)
	if err != nil {
		return fmt.Errorf("probe %v: %w", to, err)
	}
	if limit := e.nics[to.NIC].limit; o.size() > limit {
		return fmt.Errorf("probe %v: %w", to, &transport.SizeError{Size: o.size(), Max: limit})
	}
	head := wire.ProbeHead{Number: number, Instance: e.probes.instance}
	if o.Back != nil {
		head.Flags |= wire.ProbeDetour
		head.Back = o.Back.TCI()
		if o.Back.Tagged {
			head.Flags |= wire.ProbeBackTagged
		}
	}
	if o.Anyone {
		head.Flags |= wire.ProbeAnyone
	}
	f.Payload = make([]byte, HeaderLen+o.size())
	head.Put(f.Payload[HeaderLen:])
	copy(f.Payload[HeaderLen+MinProbe:], o.Body)
	h := e.probeHeader(wire.Probe, to.Node, to.OptionalTag)
	wire.Seal(f.Payload, &h)
	_, err = e.nics[to.NIC].link.Send([]transport.Frame{f})
	return err
}

// probeFrame returns the frame of a probe, without its payload.
func (e *Endpoint) probeFrame(to Path) (transport.Frame, error) {
	if to.NIC < 0 || to.NIC >= len(e.nics) {
		return transport.Frame{}, fmt.Errorf("NIC %d: the endpoint has %d", to.NIC, len(e.nics))
	}
	f := transport.Frame{Dst: transport.Broadcast, Src: e.nics[to.NIC].mac, EtherType: e.cfg.EtherType, OptionalTag: to.OptionalTag}
	if to.Node == e.cfg.Node {
		return f, nil
	}
	peer := e.lookup(to.Node)
	if peer == nil {
		return f, ErrUnknownNode
	}
	f.Dst = peer.neighbours[to.NIC].mac
	return f, nil
}

func (e *Endpoint) probeHeader(kind wire.Kind, to NodeID, t transport.OptionalTag) wire.Header {
	return wire.Header{Kind: kind, Tagged: t.Tagged, TCI: t.TCI(), From: uint16(e.cfg.Node), To: uint16(to), Cluster: uint32(e.cfg.Cluster)}
}

// receiveProbe answers a probe, or takes an answer to whom it is for. The caller leads.
func (e *Endpoint) receiveProbe(nic int, f *transport.Frame, h *wire.Header) {
	var head wire.ProbeHead
	if cause, ok := e.acceptProbe(f, h, &head); !ok {
		e.dropped[cause].add(1)
		return
	}
	p := &e.probes.got
	*p = Probe{
		Answer:   h.Kind == wire.Answer,
		Number:   head.Number,
		From:     NodeID(h.From),
		NIC:      nic,
		Src:      f.Src,
		Instance: head.Instance,
		Sent:     transport.OptionalTagFromTCI(h.Tagged, h.TCI),
		Came:     f.OptionalTag,
		Body:     h.Payload[MinProbe:],
	}
	if p.Answer {
		p.Seen = transport.OptionalTagFromTCI(head.Has(wire.ProbeSeenTagged), head.Seen)
		e.probes.came.add(1)
	} else {
		e.probes.asked.add(1)
		if p.From != e.cfg.Node {
			e.answerProbe(p, h.Payload, &head)
		}
	}
	e.probes.tell(p)
}

// acceptProbe reads a probe or answer, and says whether it is for us, or else the cause for which it is dropped.
func (e *Endpoint) acceptProbe(f *transport.Frame, h *wire.Header, head *wire.ProbeHead) (cause drop, ok bool) {
	own := NodeID(h.To) == e.cfg.Node
	switch {
	case ClusterID(h.Cluster) != e.cfg.Cluster:
		return dropCluster, false
	case !head.Parse(h.Payload):
		return dropProbe, false
	case NodeID(h.From) == e.cfg.Node:
		// Either our own came back, or another node has our number.
		return dropSource, h.Kind == wire.Probe && own && head.Instance == e.probes.instance
	case !own && (h.Kind == wire.Answer || !head.Has(wire.ProbeAnyone)):
		return dropNode, false
	case f.Dst.IsMulticast() || f.Src.IsMulticast():
		return dropProbe, false // one frame may not be answered by many
	}
	return 0, true
}

// answerProbe sends what came back to where it came from: as long, and with the tag that it was sent with, unless it asks for
// another. Where the link has no room, the answer is lost: who asks has to ask again anyway. The caller leads.
func (e *Endpoint) answerProbe(p *Probe, payload []byte, head *wire.ProbeHead) {
	s := &e.probes
	back := p.Sent
	if head.Has(wire.ProbeDetour) {
		back = transport.OptionalTagFromTCI(head.Has(wire.ProbeBackTagged), head.Back)
	}
	head.Flags &^= wire.ProbeSeenTagged
	head.Seen = p.Came.TCI()
	if p.Came.Tagged {
		head.Flags |= wire.ProbeSeenTagged
	}
	head.Instance = s.instance
	h := e.probeHeader(wire.Answer, p.From, back)
	s.answer = append(append(s.answer[:0], make([]byte, HeaderLen)...), payload...)
	head.Put(s.answer[HeaderLen:])
	wire.Seal(s.answer, &h)
	s.sent[0] = transport.Frame{Dst: p.Src, Src: e.nics[p.NIC].mac, EtherType: e.cfg.EtherType,
		OptionalTag: back, Payload: s.answer}
	if _, err := e.nics[p.NIC].link.Send(s.sent[:]); err != nil {
		s.unanswered.add(1)
		return
	}
	s.answered.add(1)
}

// tell takes p to the ping that waits for it, and to all watchers.
func (s *prober) tell(p *Probe) {
	s.mu.Lock()
	waiting := s.waiting[p.Number]
	if !p.Answer {
		waiting = nil
	}
	if waiting != nil {
		delete(s.waiting, p.Number)
	}
	watchers := s.watchers
	s.mu.Unlock()
	if waiting != nil {
		waiting.finish(p)
	}
	for _, w := range watchers {
		(*w)(p)
	}
}

// fail ends all pings, and those to come.
func (s *prober) fail(err error) {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting, s.closed = nil, true
	s.mu.Unlock()
	for _, w := range waiting {
		w.completion.Complete(err)
	}
}
