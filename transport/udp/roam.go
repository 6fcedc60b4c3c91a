package udp

import (
	"net/netip"

	"github.com/rawlane/rawlane/transport"
)

// maxScouted is how many stations a look at where the link is asks about. A host's addresses and
// routes are few, and the same for many stations.
const maxScouted = 64

// Authenticates implements transport.Roamer. It is called before the first Poll.
func (l *Link) Authenticates() { l.authenticated.Store(true) }

// Authentic implements transport.Roamer.
func (l *Link) Authentic(f *transport.Frame) {
	if m := l.movedFrom(f); m != nil {
		l.stations.move(&station{mac: f.Src, at: m.from, address: l.socket.address(m.from)})
	}
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
