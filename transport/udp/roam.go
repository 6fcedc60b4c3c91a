package udp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// maxScouted is how many stations a look at where the link is asks about. A host's addresses and
// routes are few, and the same for many stations.
const maxScouted = 64

// doubt is another place than that where a station is taken to be, if anywhere: a frame came from
// there that it has sent, or another station says that it is there. The frame may have been sent on
// by a relay, who wants what is for the station, or recorded long ago, and the word may be an old
// one. So the station is asked, at both places.
//
//	it answers, and says that it does so from there             it is there
//	it answers from where it is taken to be                     it stays
//	it answers from there patience later, and has not answered  it is there: addresses are
//	from where it is taken to be                                translated on the way
//
// A relay can neither have it say that it is at the relay's place, nor keep it from answering
// directly.
type doubt struct {
	moved       // from there
	since int64 // in ns
}

const (
	// patience is how long a station may take to answer from where it is taken to be.
	patience = time.Second
	// doubtLife is how long a doubt counts, and the station is not asked for it again: longer than
	// who polls repeats what it asks.
	doubtLife = 2 * time.Second
	// maxDoubts is how many there are: the last ones. It takes the key to raise one, or what was
	// recorded of who has it. So their rate is bounded, a second; so many at once.
	maxDoubts  = 256
	doubtRate  = 500
	doubtBurst = maxDoubts
	// doubtful is in the Origin of doubts.
	doubtful = 1 << 31
)

// Authenticates implements transport.Roamer. It is called before the first Poll.
func (l *Link) Authenticates(overhead int) {
	l.overhead = overhead
	l.authenticated.Store(true)
}

// Authentic implements transport.Roamer.
func (l *Link) Authentic(f *transport.Frame) {
	if m := l.movedFrom(f); m != nil {
		l.doubt(f.Src, m.from)
	}
	if f.Dst == transport.Broadcast {
		if s := l.stations.find(f.Src); s != nil {
			l.introduce(s)
		}
	}
}

// Answered implements transport.Roamer.
func (l *Link) Answered(f *transport.Frame, direct bool) (settled bool) {
	at, s := l.cameFrom(f), l.stations.find(f.Src)
	switch {
	case !at.IsValid():
		return true // it came too long ago, or not by this link
	case s != nil && !s.tentative && s.at == at:
		s.answered.Store(int64(clock.Now().Since()))
	case direct, s != nil && s.at == at, l.isSilent(f.Src, s, at):
		l.settle(f.Src, at)
	default:
		l.doubt(f.Src, at)
		return false
	}
	return true
}

// isSilent reports whether a station has not answered for so long from where it is taken to be, if
// anywhere, that it is at another place.
func (l *Link) isSilent(mac transport.MAC, s *station, at netip.AddrPort) bool {
	d := l.doubtOf(mac, at)
	return d != nil && int64(clock.Now().Since())-d.since >= int64(patience) &&
		(s == nil || s.answered.Load() < d.since)
}

// settle has a station where it is, and ends the doubts about it. The others are told of one that
// was elsewhere: they may have lost it.
func (l *Link) settle(mac transport.MAC, at netip.AddrPort) {
	before := l.stations.find(mac)
	wasKnown := before != nil && !before.tentative
	if wasKnown && before.at == at {
		return
	}
	for i := range l.doubts {
		if l.doubts[i].src == mac {
			l.doubts[i] = doubt{}
		}
	}
	l.stations.move(l.stationAt(mac, at))
	if s := l.stations.find(mac); wasKnown && s != nil {
		l.introduce(s)
	}
}

// doubtOf returns the doubt whether a station is at another place, or nil.
func (l *Link) doubtOf(mac transport.MAC, at netip.AddrPort) *doubt {
	for i := range l.doubts {
		if d := &l.doubts[i]; d.from == at && d.src == mac {
			return d
		}
	}
	return nil
}

// doubt has a station asked whether it is at another place.
func (l *Link) doubt(mac transport.MAC, at netip.AddrPort) {
	if s := l.stations.find(mac); s != nil && !s.tentative && s.at == at {
		return // by now
	}
	now, d := int64(clock.Now().Since()), l.doubtOf(mac, at)
	if d != nil && now-d.since < int64(doubtLife) || !l.doubting.Take(now) {
		return
	}
	if d == nil {
		d = &l.doubts[l.raised%maxDoubts]
		*d = doubt{moved: moved{l.raised | doubtful, mac, at}}
		l.raised++
	}
	d.since = now
	l.requests = append(l.requests, transport.Request{To: mac, Origin: d.origin})
}

// cameFrom returns where a frame came from, if that is known still.
func (l *Link) cameFrom(f *transport.Frame) netip.AddrPort {
	if m := l.movedFrom(f); m != nil {
		return m.from
	}
	if s := l.stations.find(f.Src); s != nil && f.Origin == 0 {
		return s.at
	}
	return netip.AddrPort{}
}

// CameFrom implements transport.Roamer.
func (l *Link) CameFrom(f *transport.Frame) transport.Place { return placeOf(l.cameFrom(f)) }

// Departure implements transport.Roamer.
func (l *Link) Departure(f *transport.Frame) transport.Place {
	if !l.group && !l.local.Addr().IsUnspecified() { // it has one address for all
		return placeOf(l.local)
	}
	var to address
	if m := l.answerTo(f); m != nil {
		to = l.socket.address(m.from)
	} else if s := l.stations.find(f.Dst); s != nil {
		to = s.address
	} else {
		return transport.Place{}
	}
	return placeOf(netip.AddrPortFrom(l.socket.source(&to), l.local.Port()))
}

// placeOf writes an address as both ends of a way do: of which interface a link-local one is, each
// says for itself.
func placeOf(at netip.AddrPort) (p transport.Place) {
	if !at.IsValid() {
		return p
	}
	ip := at.Addr().As16()
	binary.BigEndian.PutUint16(p[copy(p[:], ip[:]):], at.Port())
	return p
}

// Introduced implements transport.Roamer.
func (l *Link) Introduced(b []byte) { l.introduced(b) }

// Requests implements transport.Roamer.
func (l *Link) Requests() []transport.Request {
	all := l.requests
	l.requests = nil
	return all
}

// Roamed implements transport.Roamer. A link has moved if its host sends to some station from
// another address than before: it has got another, or a route leads elsewhere. While there is no
// way to a station, what was before stands.
func (l *Link) Roamed() (roamed bool) {
	known := l.stations.load().known
	now := make(map[transport.MAC]netip.Addr)
	for _, s := range known[:min(len(known), maxScouted)] {
		before, from := l.sources[s.mac], l.socket.source(&s.address)
		if !from.IsValid() {
			from = before
		}
		if from.IsValid() {
			now[s.mac] = from
			roamed = roamed || before.IsValid() && from != before
		}
	}
	l.sources = now
	return roamed
}
