package udp

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// Bounds of the table.
const (
	maxStations  = 4096
	maxTentative = 256
	// silence is how long a known station was not heard, in seconds, before it gives way to another
	// one where there are too many.
	silence = 60
)

// station is another link: its Ethernet address, and where it is.
//
//	in Config, by AddStation     known
//	heard                        known, if frames are not authenticated
//	introduced                   known; tentative, if frames are authenticated
//	heard, a frame authentic     known; where it is: see doubt
//
// A tentative station is where another one took it to be, which may be long ago. It gets what is
// for it alone, and few of the frames for all; the oldest goes where there are too many.
type station struct {
	mac       transport.MAC
	at        netip.AddrPort
	address   address // the same, as the system wants it
	tentative bool
	given     bool         // by the program: it never gives way
	said      bool         // the program, or an introduction, has said where it is, or it has another one's place
	heard     atomic.Int64 // when it was heard last, or made known, as stations.now
	told      atomic.Int32 // how often it was introduced to the others
	toldAt    atomic.Int64 // when it was told of them last, in ns
	answered  atomic.Int64 // when it answered last from where it is, in ns, while that was in doubt
}

// stations is a table that is read without a lock. What a station's fields say is not changed: it
// is replaced. So are the maps and slices of a table; a change of the tentative stations, of which
// many are introduced at once, copies those alone.
type stations struct {
	mu    sync.Mutex // serialises changes
	seeds []seedAddress
	full  int64        // until when no known station can give way, as now
	now   atomic.Int64 // in seconds; read again by tick
	table atomic.Pointer[stationTable]
}

// tick reads the clock, and returns it.
func (s *stations) tick() int64 {
	now := int64(clock.Now().Since() / time.Second)
	s.now.Store(now)
	return now
}

// note notes that a station was heard.
func (s *stations) note(n *station) {
	if now := s.now.Load(); n.heard.Load() != now {
		n.heard.Store(now)
	}
}

type stationTable struct {
	byMAC      map[transport.MAC]*station // the known ones
	known      []*station                 // likewise, by MAC, so that copies leave in one order
	otherByMAC map[transport.MAC]*station // the tentative ones
	other      []*station                 // likewise, by age
	seeds      []seedAddress              // those where no known station is
}

// find returns the station with an address, or nil.
func (t *stationTable) find(mac transport.MAC) *station {
	if n := t.byMAC[mac]; n != nil || len(t.other) == 0 {
		return n
	}
	return t.otherByMAC[mac]
}

// seedAddress is where a station listens that is to be heard.
type seedAddress struct {
	at      netip.AddrPort
	address address
}

var noStations stationTable

func (s *stations) load() *stationTable {
	if t := s.table.Load(); t != nil {
		return t
	}
	return &noStations
}

// find returns the station with an address, or nil.
func (s *stations) find(mac transport.MAC) *station { return s.load().find(mac) }

// recent is the station that was found last.
type recent struct {
	table *stationTable // where it was found
	mac   transport.MAC
	found *station
}

// find returns the station with an address, or nil: most often that of the frame before.
func (r *recent) find(table *stationTable, mac transport.MAC) *station {
	if table != r.table || mac != r.mac {
		*r = recent{table, mac, table.find(mac)}
	}
	return r.found
}

// add adds a station, and returns false if there is one with that address, or there are too many. A
// tentative one gives way.
func (s *stations) add(n *station) bool { return s.addAll([]*station{n}) == nil }

// isFull reports whether there are as many known stations as may be.
func (t *stationTable) isFull() bool { return len(t.byMAC) >= maxStations }

// takes reports whether there is room for a station, and none known with its address. A tentative
// one takes the place of another that is said to be elsewhere: the first word may be an old one.
func (t *stationTable) takes(n *station) bool {
	if same := t.otherByMAC[n.mac]; n.tentative {
		return t.byMAC[n.mac] == nil && (same == nil || same.at != n.at)
	}
	return !t.isFull() && t.byMAC[n.mac] == nil
}

// makeRoom has the known station that was silent longest give way to a new one, where there are as
// many as may be. The new one is introduced to the others as seldom as one that they know, as
// strangers without keys may come again and again.
func (s *stations) makeRoom(n *station) {
	t := s.load()
	if !t.isFull() || t.byMAC[n.mac] != nil {
		return
	}
	now, oldest := s.tick(), -1
	if now < s.full {
		return
	}
	for i, k := range t.known {
		if !k.given && (oldest < 0 || k.heard.Load() < t.known[oldest].heard.Load()) {
			oldest = i
		}
	}
	until := now + silence
	if oldest >= 0 {
		until = t.known[oldest].heard.Load() + silence
	}
	if now < until {
		s.full = until
		return
	}
	byMAC := maps.Clone(t.byMAC)
	delete(byMAC, t.known[oldest].mac)
	s.store(byMAC, slices.Delete(slices.Clone(t.known), oldest, oldest+1))
	n.said = true
}

// addAll adds stations of one kind, as add does, in one change: a program may know thousands, and a
// stranger can name many at once. It returns the first that was not added, or nil.
func (s *stations) addAll(all []*station) (refused *station) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(all) == 1 && !all[0].tentative && (all[0].given || !all[0].said) { // else it is only told of
		s.makeRoom(all[0])
	}
	t := s.load()
	fresh := make(map[transport.MAC]bool)
	all = slices.DeleteFunc(all, func(n *station) bool {
		if !t.takes(n) || fresh[n.mac] || !n.tentative && len(t.byMAC)+len(fresh) >= maxStations {
			refused = cmp.Or(refused, n)
			return true
		}
		fresh[n.mac] = true
		return false
	})
	switch {
	case len(all) == 0:
	case all[0].tentative:
		s.storeOther(t, append(slices.Clip(t.other), all...))
	default:
		s.put(all...)
	}
	return refused
}

// move makes a station known that has proved itself, where it is.
func (s *stations) move(n *station) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.load().find(n.mac)
	if before != nil {
		n.given, n.said = before.given, before.said && before.at == n.at
	}
	s.makeRoom(n)
	if t := s.load(); t.byMAC[n.mac] != nil || t.takes(n) {
		s.put(n)
	}
}

// setSeeds replaces the seeds.
func (s *stations) setSeeds(all []seedAddress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds = all
	t := s.load()
	s.store(t.byMAC, t.known)
}

// put makes stations known, in the place of those with their addresses.
func (s *stations) put(all ...*station) {
	t, now := s.load(), s.tick()
	byMAC := maps.Clone(t.byMAC)
	if byMAC == nil {
		byMAC = make(map[transport.MAC]*station)
	}
	known := append(make([]*station, 0, len(t.known)+len(all)), t.known...)
	for _, n := range all {
		at, there := slices.BinarySearchFunc(known, n.mac, func(other *station, mac transport.MAC) int {
			return other.mac.Compare(mac)
		})
		if there {
			known[at] = n
		} else {
			known = slices.Insert(known, at, n)
		}
		byMAC[n.mac] = n
		n.heard.Store(now)
	}
	s.store(byMAC, known)
}

// store replaces the known stations. Those are tentative no more. One station that is heard must
// not cost what all of thousands do: only the seeds, of which there are few, are told apart anew.
func (s *stations) store(byMAC map[transport.MAC]*station, known []*station) {
	t := &stationTable{byMAC: byMAC, known: known}
	silent := make(map[netip.AddrPort]bool, len(s.seeds))
	for _, seed := range s.seeds {
		silent[seed.at] = true
	}
	for i := 0; i < len(known) && len(silent) > 0; i++ {
		delete(silent, known[i].at)
	}
	for _, seed := range s.seeds {
		if silent[seed.at] {
			t.seeds = append(t.seeds, seed)
		}
	}
	other := slices.Clone(s.load().other)
	s.storeOther(t, slices.DeleteFunc(other, func(n *station) bool { return byMAC[n.mac] != nil }))
}

// storeOther replaces a table's tentative stations by the newest of those, and of two with one
// address by the newer one. It keeps the slice.
func (s *stations) storeOther(t *stationTable, other []*station) {
	byMAC := make(map[transport.MAC]*station, len(other))
	for _, n := range other {
		byMAC[n.mac] = n
	}
	other = slices.DeleteFunc(other, func(n *station) bool { return byMAC[n.mac] != n })
	excess := max(len(other)-maxTentative, 0)
	for _, n := range other[:excess] {
		delete(byMAC, n.mac)
	}
	next := *t
	next.other, next.otherByMAC = other[excess:], byMAC
	s.table.Store(&next)
}
