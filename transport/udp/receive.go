package udp

import (
	"net/netip"

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
		if l.authenticated.Load() { // they are sealed then, and messages of who polls
			l.rx.malformed.Add(1)
			return false
		}
		l.introduced(f.Payload)
		return false
	}
	return (f.EtherType == l.etherType || l.etherType == transport.EtherTypeAny) && l.comesFrom(f, from)
}

// comesFrom reports whether a frame's station may be where it came from: anywhere, if frames are
// authenticated, and else where it was first. What may be a stranger's is noted then, and changes
// nothing else.
func (l *Link) comesFrom(f *transport.Frame, from netip.AddrPort) bool {
	s := l.heard.find(l.stations.load(), f.Src)
	if l.authenticated.Load() {
		if s == nil || s.at != from || s.tentative {
			f.Origin = l.noteMoved(f.Src, from)
		} else {
			l.stations.note(s)
		}
		return true
	}
	if s == nil {
		l.learn(f.Src, from)
		s = l.stations.find(f.Src)
	}
	switch {
	case s == nil: // there is no room
		return true
	case s.at != from:
		l.rx.malformed.Add(1)
		return false
	}
	l.stations.note(s)
	if f.Dst == transport.Broadcast {
		l.introduce(s)
	}
	return true
}

// learn makes a station known that was heard.
func (l *Link) learn(mac transport.MAC, at netip.AddrPort) { l.stations.add(l.stationAt(mac, at)) }

func (l *Link) stationAt(mac transport.MAC, at netip.AddrPort) *station {
	return &station{mac: mac, at: at, address: l.socket.address(at)}
}

// noteMoved notes where a frame came from, and returns its Origin.
func (l *Link) noteMoved(src transport.MAC, from netip.AddrPort) uint32 {
	l.origin = l.origin%(doubtful-1) + 1
	l.moved[l.origin%maxMoved] = moved{l.origin, src, from}
	return l.origin
}

// answerTo returns where a frame goes that answers one from elsewhere than its station is, or nil.
func (l *Link) answerTo(f *transport.Frame) *moved {
	if f.Answers == nil {
		return nil
	}
	return l.movedFrom(f.Answers)
}

// movedFrom returns where a frame, or a copy of it, came from, or nil: from where its station is,
// or too long ago.
func (l *Link) movedFrom(f *transport.Frame) *moved {
	m := &l.moved[f.Origin%maxMoved]
	if f.Origin&doubtful != 0 {
		m = &l.doubts[f.Origin%maxDoubts].moved
	}
	if f.Origin == 0 || m.origin != f.Origin || m.src != f.Src {
		return nil
	}
	return m
}
