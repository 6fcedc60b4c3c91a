package mcd

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// A probe asks the endpoint of a node for a reply. The reply comes from the goroutine that polls
// there, whether the program waits or computes, and no port is needed. It carries the tag that the
// probe was sent with, and is as long: so one probe tests a path in both directions, at its length.
// It tells which tag the probe arrived with.
//
//	node 0                   switches                   node 1
//	Ping, VID 5  -------- VID 5, 1000 bytes -------->   received with VID 5, or another, or none
//	RTT          <------- VID 5, 1000 bytes --------    replies at once

// ProbeOptions of a probe. The zero value is a short probe whose reply takes the same path.
type ProbeOptions struct {
	// Size is the length of the probe's payload, and so of the reply's, in bytes: MinProbe, and
	// what Body takes, to MaxPayload. Zero is as long as it must be.
	Size int
	// Body goes with the probe and comes back with the reply, behind the first MinProbe bytes of
	// payload.
	Body []byte
	// ReplyTag, if it is not nil, is the tag of the reply, for paths that are tested in one
	// direction alone.
	ReplyTag *transport.OptionalTag
	// AnyNode has every node that gets the probe reply, whatever node the probe names. It finds two
	// nodes that have one address.
	AnyNode bool
}

// MinProbe is the shortest payload of a probe, in bytes.
const MinProbe = wire.ProbeHeadLen

// size returns the length of the probe's payload, which is to be most or less.
func (o *ProbeOptions) size(most int) (int, error) {
	least := MinProbe + len(o.Body)
	size := cmp.Or(o.Size, least)
	switch {
	case size < least:
		return 0, fmt.Errorf("size %d: want %d or more, or 0 for as long as it must be", size, least)
	case size > most:
		return 0, &transport.SizeError{Size: size, Max: most}
	}
	return size, nil
}

// head returns what the probe's payload begins with.
func (o *ProbeOptions) head(number, incarnation uint32) wire.ProbeHead {
	head := wire.ProbeHead{Number: number, Incarnation: incarnation}
	if o.ReplyTag != nil {
		head.Flags |= wire.ProbeReplyTag
		head.ReplyTCI = o.ReplyTag.TCI()
		if o.ReplyTag.Tagged {
			head.Flags |= wire.ProbeReplyTagged
		}
	}
	if o.AnyNode {
		head.Flags |= wire.ProbeAnyNode
	}
	return head
}

// Probe is a probe or a reply that was received. It is valid until the watcher returns.
type Probe struct {
	Reply           bool
	Number          uint32                // of the probe, as TryProbe returned it to its sender
	From            NodeID                // the sender of this frame
	NIC             int                   // the link by which it came
	Src             transport.MAC         // the address from which it came
	Incarnation     uint32                // of the sender's endpoint: another number each time that it is opened
	SentTag         transport.OptionalTag // as this frame was sent
	ReceivedTag     transport.OptionalTag // as this frame arrived here
	PeerReceivedTag transport.OptionalTag // of a reply: as the probe arrived there
	Body            []byte                // with the zeros behind it, if the probe was made longer
}

// prober is an endpoint's part in probes.
type prober struct {
	incarnation uint32
	last        atomic.Uint32 // number of the last probe that was sent

	mu       sync.Mutex // guards what follows; taken inside the poll lock
	waiting  map[uint32]*ping
	watchers []*func(*Probe)

	// What follows belongs to the holder of the poll lock.
	got   Probe
	reply []byte
	sent  [1]transport.Frame

	asked, answered, unanswered, replies atomic.Uint64
}

func (s *prober) init() {
	s.incarnation = incarnation.New()
	s.last.Store(rand.Uint32())
	s.waiting = make(map[uint32]*ping)
}

// WatchProbes has f be told of every probe and reply that is received, in the goroutine that polls.
// f must be as brief as a Receive function, and may call TryProbe. Probes are replied to all the
// same. stop undoes it; a call in progress may end after stop.
func (e *Endpoint) WatchProbes(f func(*Probe)) (stop func()) {
	s := &e.probes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(slices.Clip(s.watchers), &f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(w *func(*Probe)) bool { return w == &f })
	}
}

// TryProbe sends a probe, and does not wait: transport.ErrBusy if the link has no room now. It
// returns the probe's number, which its reply has, too. A probe to this node itself goes to the
// broadcast address, and nobody replies: if it comes back, the network has a loop. A Size that is
// too short is an error. Other errors: ErrUnknownNode, ErrTooLarge, transport.ErrBadTag, ErrClosed.
func (e *Endpoint) TryProbe(to Path, o ProbeOptions) (number uint32, err error) {
	number = e.probes.last.Add(1)
	return number, e.sendProbe(to, o, number)
}

func (e *Endpoint) sendProbe(to Path, o ProbeOptions, number uint32) error {
	if err := e.err(); err != nil {
		return err
	}
	dst, err := e.probeMAC(to)
	if err != nil {
		return fmt.Errorf("probe %v: %w", to, err)
	}
	n := &e.nics[to.NIC]
	size, err := o.size(n.limit)
	if err != nil {
		return fmt.Errorf("probe %v: %w", to, err)
	}
	f := e.frame(to.NIC, dst, to.OptionalTag)
	f.Payload = make([]byte, e.headerLen+size, e.headerLen+size+wire.TagLen)
	copy(f.Payload[e.headerLen+MinProbe:], o.Body)
	head := o.head(number, e.probes.incarnation)
	e.sealProbe(to.NIC, &f, wire.Probe, to.Node, &head)
	_, err = n.link.Send([]transport.Frame{f})
	return err
}

// probeMAC returns the address that a probe goes to.
func (e *Endpoint) probeMAC(to Path) (transport.MAC, error) {
	if err := e.checkNIC(to.NIC); err != nil {
		return transport.MAC{}, err
	}
	if to.Node == e.cfg.Node {
		return transport.Broadcast, nil
	}
	peer := e.lookup(to.Node)
	if peer == nil {
		return transport.MAC{}, ErrUnknownNode
	}
	neighbour := &peer.neighbours[to.NIC]
	if e.auth != nil && !neighbour.met.Load() {
		e.auth.meet(to.NIC, neighbour)
	}
	return neighbour.mac, nil
}

// sealProbe puts header and head before the body of a probe or reply, which is in the frame.
func (e *Endpoint) sealProbe(nic int, f *transport.Frame, kind wire.Kind, to NodeID, head *wire.ProbeHead) {
	head.Put(f.Payload[e.headerLen:])
	h := wire.Header{Kind: kind, Tagged: f.Tagged, TCI: f.TCI(),
		From: uint16(e.cfg.Node), To: uint16(to), Cluster: uint32(e.cfg.Cluster)}
	if l := e.nics[nic].auth; l != nil {
		l.checkpoint(clock.Now())
		l.seal(l.sealer.Load(), new(auth.Scratch), f, &h)
		return
	}
	wire.Seal(f.Payload, &h)
}
