package udp

import (
	"net/netip"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// moved is a frame that came from elsewhere than its station is.
type moved struct {
	origin uint32 // of the frame; 0: none
	src    transport.MAC
	from   netip.AddrPort
}

// maxMoved is how many of those are noted: the last ones. They are more than a Poll of mcd's has,
// as a wrapper may hand out a frame later. A flood of forged ones may delay a move.
const maxMoved = 256

// tickPolls is how many polls go by the time of one of them, as a look at the clock takes 24 ns. It
// is read behind each Wait, too.
const tickPolls = 64

// Poll implements transport.Link. It makes one system call at most: a second one would overwrite
// the first one's frames.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	if l.polls++; l.polls%tickPolls == 0 {
		l.stations.tick()
	}
	l.stamps.reset()
	n, bytes, err := 0, 0, error(nil)
	if len(frames) > 0 && !l.socket.pending() {
		err = l.socket.receive()
	}
	for n < len(frames) {
		b, from, ok := l.socket.next()
		if !ok {
			break
		}
		if f := &frames[n]; l.accept(b, from, f) {
			bytes += f.WireLen()
			l.stamps.add(l.socket)
			n++
		}
	}
	l.socket.polled()
	if n > 0 { // an addition costs as much as the rest of a poll that finds nothing
		l.rx.frames.Add(uint64(n))
		l.rx.bytes.Add(uint64(bytes))
	}
	return n, l.wrap("poll", err)
}

// accept turns a datagram into f and reports whether Poll hands it out: not what is too short, of
// another type, of no station, for another one or a group not joined, or the link's own.
func (l *Link) accept(b []byte, from netip.AddrPort, f *transport.Frame) bool {
	var err error
	if *f, err = transport.ParseFrame(b); err != nil {
		l.rx.malformed.Add(1)
		return false
	}
	switch {
	case f.Src == l.mac, f.Src.IsMulticast(), f.Src.IsZero():
		return false
	case f.Dst.IsMulticast():
		if !l.joined.Has(f.Dst) {
			return false
		}
	case f.Dst != l.mac:
		return false
	}
	if f.EtherType == introductionType {
		l.introduced(f)
		return false
	}
	return (f.EtherType == l.etherType || l.etherType == transport.EtherTypeAny) && l.comesFrom(f, from)
}

// comesFrom notes where a frame came from, and reports whether its station may be there: anywhere,
// if frames are authenticated, and else where it was first.
func (l *Link) comesFrom(f *transport.Frame, from netip.AddrPort) bool {
	s := l.heard.find(l.stations.load(), f.Src)
	if s == nil && l.mayLearn() {
		l.learn(f.Src, from)
		s = l.stations.find(f.Src)
	}
	authenticated := l.authenticated.Load()
	switch {
	case s == nil && !authenticated:
		return true
	case s == nil, s.at != from, s.tentative:
		if !authenticated {
			l.rx.malformed.Add(1)
			return false
		}
		l.noteMoved(f, from)
	default:
		l.stations.note(s)
	}
	if s != nil && f.Dst == transport.Broadcast {
		l.introduce(s)
	}
	return true
}

// learnRate bounds how often a second the tentative stations change, which takes tens of
// microseconds; so often at once. One that is not learned is answered all the same, and can prove
// itself: that it may not be known in between is what strangers can bring about.
const (
	learnRate  = 500
	learnBurst = maxTentative
)

// mayLearn reports whether a stranger's word may change the table now: of a link without keys it
// does until the table is full.
func (l *Link) mayLearn() bool {
	return !l.authenticated.Load() || l.learned.Take(int64(clock.Now().Since()))
}

// learn makes a station known that was heard.
func (l *Link) learn(mac transport.MAC, at netip.AddrPort) { l.stations.add(l.heardOf(mac, at)) }

// heardOf makes a station that was heard, or heard of: tentative, if it can prove itself.
func (l *Link) heardOf(mac transport.MAC, at netip.AddrPort) *station {
	return &station{mac: mac, at: at, address: l.socket.address(at), tentative: l.authenticated.Load()}
}

// noteMoved notes where a frame came from.
func (l *Link) noteMoved(f *transport.Frame, from netip.AddrPort) {
	if l.origin++; l.origin == 0 {
		l.origin = 1
	}
	f.Origin = l.origin
	l.moved[f.Origin%maxMoved] = moved{f.Origin, f.Src, from}
}

// movedFrom returns where a frame, or a copy of it, came from, or nil: from where its station is,
// or too long ago.
func (l *Link) movedFrom(f *transport.Frame) *moved {
	m := &l.moved[f.Origin%maxMoved]
	if f.Origin == 0 || m.origin != f.Origin || m.src != f.Src {
		return nil
	}
	return m
}
