package mcd

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// authLink authenticates the frames of one link: package auth decides, this is its driver.
type authLink struct {
	e           *Endpoint
	nic         int
	roamer      transport.Roamer // the link, if its stations may move
	incarnation uint64
	sealer      atomic.Pointer[auth.Sealer]
	counter     atomic.Uint64 // of the last frame that was sealed
	checked     atomic.Int64  // when the last checkpoint was made, in ns
	untold      int           // how often the other nodes are still to be told where the link is; of the authLoop

	mu      sync.Mutex // guards history; taken inside all other locks
	history auth.History

	// What follows belongs to the holder of the poll lock.
	verifier *auth.Verifier
	key      *auth.Key // seals contact frames
	frame    auth.Frame
	out      []auth.Send
	toOwn    tokenbucket.Bucket // for contact frames to this link's own address
	contact  [1]transport.Frame
	memory   []byte // of the contact frame that is sent
}

func newAuthLink(e *Endpoint, nic int, ring *keyring.Ring, opened monotime.Time) *authLink {
	l := &authLink{e: e, nic: nic, incarnation: incarnation.New64(),
		toOwn: tokenbucket.New(ownRate, ownBurst), memory: make([]byte, wire.AuthHeaderLen+wire.ContactLen)}
	l.verifier = auth.New(auth.Config{
		MAC: e.nics[nic].mac, Incarnation: l.incarnation, Random: fillRandom, Since: opened,
	})
	if roamer, ok := transport.As[transport.Roamer](e.nics[nic].link); ok {
		l.roamer = roamer
		roamer.Authenticates(wire.AuthHeaderLen)
	}
	l.checkpoint(opened)
	l.setKeys(opened, ring)
	return l
}

func fillRandom(b []byte) { _, _ = rand.Read(b) } // never fails

// setKeys replaces the keys. The caller holds the poll lock.
func (l *authLink) setKeys(now monotime.Time, ring *keyring.Ring) {
	var keys []*auth.Key
	for i := range ring.Keys {
		keys = append(keys, auth.NewKey(ring.Keys[i][:], uint32(l.e.cfg.Cluster)))
	}
	l.key = keys[0]
	l.verifier.SetKeys(now, keys)
	l.sealer.Store(auth.NewSealer(keys[0], l.incarnation, l.e.nics[l.nic].mac, ring.Encrypt))
}

// checkpoint notes which counters have been used before now, if the last note is too old. It is
// called before frames are sealed.
func (l *authLink) checkpoint(now monotime.Time) {
	if !auth.Due(now.Since() - time.Duration(l.checked.Load())) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if auth.Due(now.Since() - time.Duration(l.checked.Load())) {
		l.checked.Store(int64(now.Since()))
		l.history.Add(now, l.counter.Load())
	}
}

// floor returns the highest counter that may have been used before now, less age.
func (l *authLink) floor(now monotime.Time, age uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Floor(now, age, l.counter.Load())
}

// seal writes a header before the payload of a frame, which is in its place, and computes the tag.
// A payload that is to be encrypted needs wire.TagLen bytes of capacity behind it.
func (l *authLink) seal(s *auth.Sealer, t *auth.Scratch, f *transport.Frame, h *wire.Header) {
	if s.Encrypts() {
		l.encrypt(s, t, f, h, f.Payload[wire.AuthHeaderLen:])
		return
	}
	s.Seal(t, f.Payload, h, &auth.Addresses{Dst: f.Dst, Src: f.Src}, l.counter.Add(1))
}

// encrypt makes header and encrypted payload a frame, in the frame's memory.
func (l *authLink) encrypt(s *auth.Sealer, t *auth.Scratch, f *transport.Frame, h *wire.Header, payload []byte) {
	f.Payload = s.Encrypt(t, f.Payload, payload, h, &auth.Addresses{Dst: f.Dst, Src: f.Src}, l.counter.Add(1))
}

// authenticate decides on the frame whose header was parsed, and counts why it is dropped. Slot
// says where an encrypted payload goes. The caller holds the poll lock.
func (l *authLink) authenticate(f *transport.Frame, slot int) bool {
	e := l.e
	l.load(f)
	plain := &e.auth.plain[slot]
	verdict := l.verifier.Verify(&l.frame, &e.authHeader, plain)
	if verdict == auth.Unproven {
		now := clock.Now()
		verdict, l.out = l.verifier.Handle(now, &l.frame, &e.authHeader, plain, l.out[:0])
		l.transmit(now, f)
	}
	if l.roamer != nil && (verdict == auth.Accepted || verdict == auth.Held) {
		l.roamer.Authentic(f)
	}
	e.header.Payload = l.frame.Payload
	return e.countVerdict(verdict, f.Src)
}

// announce tells the other nodes where the link is, if it has moved: those whose frames it only
// answers would look for it where it was. A probe is an authentic frame, and asks for a reply.
func (l *authLink) announce() {
	e := l.e
	if l.roamer.Roamed() {
		l.untold = announcements
	}
	if l.untold == 0 {
		return
	}
	l.untold--
	for _, n := range e.table.Load().nodes {
		if n.ID == e.cfg.Node {
			continue
		}
		to := Path{Node: n.ID, NIC: l.nic, OptionalTag: e.router.Route(n.MACs[l.nic])}
		_, _ = e.TryProbe(to, ProbeOptions{}) // what the link refuses goes at the next look
	}
}

// load makes l.frame the frame whose header was parsed.
func (l *authLink) load(f *transport.Frame) {
	h := &l.e.header
	l.frame = auth.Frame{
		Addresses: auth.Addresses{Dst: f.Dst, Src: f.Src},
		Sent:      transport.OptionalTagFromTCI(h.Tagged, h.TCI),
		Received:  f.OptionalTag,
		Bytes:     f.Payload[:wire.AuthHeaderLen+len(h.Payload)],
		Elsewhere: l.roamer != nil && f.Origin != 0,
	}
}

var verdictDrops = [...]drop{
	auth.UnknownKey: dropKey,
	auth.BadTag:     dropTag,
	auth.Replayed:   dropReplay,
	auth.Unanswered: dropStale,
	auth.OverBudget: dropBudget,
}

// countVerdict counts a frame that is dropped, and reports whether it was accepted.
func (e *Endpoint) countVerdict(v auth.Verdict, src transport.MAC) bool {
	switch v {
	case auth.Accepted:
		if e.auth.otherKey.Load() != 0 {
			e.auth.otherKey.CompareAndSwap(packMAC(src), 0) // it has one of these by now
		}
		return true
	case auth.Held:
		return false
	case auth.UnknownKey, auth.BadTag:
		e.auth.otherKey.Store(packMAC(src))
	}
	e.dropped[verdictDrops[v]].Add(1)
	return false
}

// countExpired counts what was kept and has been dropped. The caller holds the poll lock.
func (l *authLink) countExpired() { l.e.dropped[dropStale].Add(uint64(l.verifier.Expired())) }

// ask begins contact with an address. The caller holds the poll lock.
func (l *authLink) ask(now monotime.Time, mac transport.MAC) {
	l.out = l.verifier.Ask(now, mac, l.out[:0])
	l.transmit(now, nil)
}

// receiveContact handles a contact frame, and delivers what was kept for it. The caller holds the
// poll lock.
func (l *authLink) receiveContact(f *transport.Frame) {
	e, now := l.e, clock.Now()
	l.load(f)
	verdict, out := l.verifier.Contact(now, &l.frame, &e.authHeader, l.out[:0])
	l.out = out
	accepted := e.countVerdict(verdict, f.Src)
	if accepted {
		e.auth.rxContacts.Add(1)
	}
	l.transmit(now, f)
	e.batch.kept = l.verifier.Released()
	switch {
	case l.roamer == nil || !accepted:
	case !l.frame.Answers:
		l.roamer.Authentic(f)
	case l.roamer.Answered(f, l.frame.IsFrom(l.roamer.CameFrom(f), &e.authHeader)):
		l.verifier.Settle(f.Src)
	}
	e.deliverKept()
}

// deliver delivers a frame that was kept until its sender had answered.
func (l *authLink) deliver(r *auth.Frame, slot int) {
	e := l.e
	wire.ParseAuth(r.Bytes, &e.header, &e.authHeader) // it is well formed: it was parsed before
	f := transport.Frame{Dst: r.Dst, Src: r.Src, EtherType: e.cfg.EtherType, OptionalTag: r.Received, Payload: r.Bytes}
	e.header.Payload = r.Payload
	if e.header.Kind >= wire.Probe {
		e.deliverControl(l.nic, &f)
		return
	}
	if cause, elsewhere := e.isForOthers(&e.header); elsewhere { // the group was left meanwhile
		e.dropped[cause].Add(1)
		return
	}
	p, cause := e.owner(l.nic, f.Src, &e.header)
	if p == nil {
		e.dropped[cause].Add(1)
		return
	}
	e.messages[slot].set(l.nic, f.Src, &e.header)
	p.deliver(e.messages[slot:slot+1], true)
}

// ownRate is how many contact frames a second go to the link's own address, and ownBurst how many
// at once: all nodes get them, and anybody can send again what was recorded of this node's former
// incarnations.
const (
	ownRate  = 20
	ownBurst = 16
)

// transmit sends the contact frames in out, to where the received frame came from that they answer,
// if there is one, but for those to where the link has the address. Those to another node that has
// this link's address are broadcast: a switch sends none back to where it learned that address.
// What the link refuses is lost: challenges are repeated.
func (l *authLink) transmit(now monotime.Time, received *transport.Frame) {
	e := l.e
	for i := range l.out {
		s := &l.out[i]
		dst, tag := s.Dst, s.Tag
		toOwn := dst == e.nics[l.nic].mac
		if toOwn {
			dst = transport.Broadcast
		}
		if !s.Answer {
			tag = e.router.Route(dst)
		}
		if tag.Validate() != nil || toOwn && !l.toOwn.Take(int64(now.Since())) {
			continue
		}
		f := &l.contact[0]
		*f = e.frame(l.nic, dst, tag)
		f.Payload = l.memory
		switch {
		case received != nil && received.Src == s.Dst && !s.Known:
			f.Answers = received
		case s.Origin != 0:
			f.Answers = &transport.Frame{Src: s.Dst, Origin: s.Origin}
		}
		if s.Body.Has(wire.ContactResponse) {
			s.Body.Floor = l.floor(now, s.Body.EchoedAge)
			if l.roamer != nil {
				s.Body.Place = l.key.PlaceSum(l.roamer.Departure(f), l.incarnation, s.Counter)
			}
		}
		s.Body.Put(f.Payload[wire.AuthHeaderLen:])
		h := wire.Header{Tagged: tag.Tagged, TCI: tag.TCI(), From: uint16(e.cfg.Node), To: wire.AllNodes,
			Cluster: uint32(e.cfg.Cluster)}
		l.key.SealContact(f.Payload, &h, &auth.Addresses{Dst: f.Dst, Src: f.Src}, l.incarnation, s.Counter)
		if n, _ := e.nics[l.nic].link.Send(l.contact[:]); n == 1 {
			e.auth.txContacts.Add(1)
		}
		f.Answers = nil
	}
	e.auth.expect(l.verifier)
}
