package udp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// introductionType is the EtherType of introductions without keys: IEEE 802 local experimental 2.
// With keys they are messages of who polls, which are sealed as all are: a stranger's would lead
// stations to the stranger.
const introductionType transport.EtherType = 0x88b6

// An introduction tells a station where others are. One who is heard by a frame for all, as
// discovery sends them, is introduced to all others, and they to it: so that it is enough to know
// one station. That is for stations of which nothing had been said before they were heard: what
// was said of the others is known elsewhere, too. Among n stations that know each other n
// times n introductions for each frame for all would be lost in their own crowd.
//
//	0      6   7                     7+n    9+n
//	+------+---+----------------------+------+
//	| MAC  | n | IP address, n bytes  | port |   and so on
//	+------+---+----------------------+------+
const (
	// maxTold is how often a station is introduced: introductions may be lost.
	maxTold = 8
	// retellPause is how often, after that, it is told of the others: it may have been restarted.
	retellPause = 5 * time.Second
	// retellRate bounds that for all stations together, a second, as without keys strangers can ask
	// for it in the name of others; so many at once.
	retellRate  = 20
	retellBurst = 64
	// respreadRate is how many stations a second the others are told of once more of which
	// something had been said, which may be a stranger's word.
	respreadRate  = 4
	respreadBurst = 4
	// maxIntroduced is how many stations one frame introduces, where that many fit.
	maxIntroduced = 32
)

// introduce tells the others of a station, and it of the others. One of which they were told often
// enough, or by others, is told of them now and then: where it was restarted it knows nobody, and
// they do know it.
func (l *Link) introduce(s *station) {
	now, wanted := int64(clock.Now().Since()), s.told.Load() < maxTold
	first, last := wanted && !s.said, s.toldAt.Load()
	if s.tentative || !first && (last != 0 && now-last < int64(retellPause) || !l.retold.Take(now)) {
		return
	}
	s.toldAt.Store(now)
	spread := first || wanted && l.respread.Take(now)
	if spread {
		s.told.Add(1)
	}
	known := l.stations.load().known
	var all []byte
	count := 0
	flush := func() {
		if count > 0 {
			l.sendIntroduction(s.mac, all)
		}
		all, count = nil, 0
	}
	own := appendStation(nil, s.mac, s.at)
	for _, other := range known {
		if other.mac == s.mac {
			continue
		}
		if spread {
			l.sendIntroduction(other.mac, own)
		}
		this := appendStation(nil, other.mac, other.at)
		if count == maxIntroduced || len(all)+len(this) > l.mtu-l.overhead {
			flush()
		}
		all = append(all, this...)
		count++
	}
	flush()
}

// sendIntroduction sends an introduction, or has it sealed and sent. If it cannot go now, it is
// lost.
func (l *Link) sendIntroduction(to transport.MAC, b []byte) {
	if l.authenticated.Load() {
		l.requests = append(l.requests, transport.Request{To: to, Introduction: b})
		return
	}
	_, _ = l.Send([]transport.Frame{{Dst: to, EtherType: introductionType, Payload: b}})
}

func appendStation(b []byte, mac transport.MAC, at netip.AddrPort) []byte {
	ip := at.Addr().AsSlice()
	b = append(append(append(b, mac[:]...), byte(len(ip))), ip...)
	return binary.BigEndian.AppendUint16(b, at.Port())
}

// introduced makes the stations of an introduction known: tentative, if they can prove themselves.
// Where one is known that can, it is doubted that it is where it was.
func (l *Link) introduced(b []byte) {
	var all []*station
	authenticated := l.authenticated.Load()
	for range maxIntroduced {
		mac, at, rest, ok := cutStation(b)
		if !ok {
			break
		}
		b = rest
		if !l.reaches(at) || mac == l.mac || mac.IsMulticast() || mac.IsZero() {
			continue
		}
		at = l.inZone(at)
		switch s := l.stations.find(mac); {
		case s == nil || s.tentative:
			n := l.stationAt(mac, at)
			n.said, n.tentative = true, authenticated
			all = append(all, n)
		case authenticated && s.at != at:
			l.doubt(mac, at)
		}
	}
	if len(all) > 0 {
		l.stations.addAll(all)
	}
}

// cutStation takes the first station of an introduction. ok is false at its end, or at what is
// none.
func cutStation(b []byte) (mac transport.MAC, at netip.AddrPort, rest []byte, ok bool) {
	const fixed = len(mac) + 1
	if len(b) < fixed {
		return mac, at, nil, false
	}
	mac = transport.MAC(b)
	n := int(b[fixed-1])
	if len(b) < fixed+n+2 {
		return mac, at, nil, false
	}
	ip, ok := netip.AddrFromSlice(b[fixed : fixed+n])
	port := binary.BigEndian.Uint16(b[fixed+n:])
	if !ok || port == 0 || ip.IsUnspecified() || ip.IsMulticast() {
		return mac, at, nil, false
	}
	return mac, netip.AddrPortFrom(ip, port), b[fixed+n+2:], true
}
