package udp

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Bounds of the table.
const (
	maxStations  = 4096
	maxTentative = 256
)

// station is another link: its Ethernet address, and where it is.
//
//	in Config, by AddStation     known
//	heard, or introduced         known; tentative, if frames are authenticated
//	heard, a frame authentic     known, and where that frame came from
//
// A tentative station is whatever a stranger says. It gets what is for it alone, so that it can
// prove itself, and few of the frames for all; the oldest goes where there are too many.
type station struct {
	mac       transport.MAC
	at        netip.AddrPort
	address   address // the same, as the system wants it
	tentative bool
	told      atomic.Int32 // how often it was introduced to the others
	toldAt    atomic.Int64 // when it was told of them last, in ns
}

// stations is a table that is read without a lock. What a station's fields say is not changed: it
// is replaced.
type stations struct {
	mu        sync.Mutex // serialises changes
	tentative []transport.MAC
	seeds     []seedAddress
	table     atomic.Pointer[stationTable]
}

type stationTable struct {
	byMAC map[transport.MAC]*station
	known []*station    // by MAC, so that copies leave in one order
	other []*station    // the tentative ones
	seeds []seedAddress // those where no known station is
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
func (s *stations) find(mac transport.MAC) *station { return s.load().byMAC[mac] }

// recent is the station that was found last.
type recent struct {
	table *stationTable // where it was found
	mac   transport.MAC
	found *station
}

// find returns the station with an address, or nil: most often that of the frame before.
func (r *recent) find(table *stationTable, mac transport.MAC) *station {
	if table != r.table || mac != r.mac {
		*r = recent{table, mac, table.byMAC[mac]}
	}
	return r.found
}

// add adds a station, and returns false if there is one with that address, or there are too many.
func (s *stations) add(n *station) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	byMAC := maps.Clone(s.load().byMAC)
	switch {
	case byMAC == nil:
		byMAC = make(map[transport.MAC]*station)
	case byMAC[n.mac] != nil || len(byMAC)-len(s.tentative) >= maxStations:
		return false
	}
	if n.tentative {
		if len(s.tentative) == maxTentative {
			delete(byMAC, s.tentative[0])
			s.tentative = s.tentative[1:]
		}
		s.tentative = append(s.tentative, n.mac)
	}
	byMAC[n.mac] = n
	s.store(byMAC)
	return true
}

// move replaces a station by one that is known, elsewhere.
func (s *stations) move(n *station) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byMAC := maps.Clone(s.load().byMAC)
	if byMAC[n.mac] == nil { // it was tentative, and has gone
		return
	}
	if i := slices.Index(s.tentative, n.mac); i >= 0 {
		s.tentative = slices.Delete(s.tentative, i, i+1)
	}
	byMAC[n.mac] = n
	s.store(byMAC)
}

// setSeeds replaces the seeds.
func (s *stations) setSeeds(all []seedAddress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds = all
	s.store(s.load().byMAC)
}

func (s *stations) store(byMAC map[transport.MAC]*station) {
	t := &stationTable{byMAC: byMAC}
	there := make(map[netip.AddrPort]bool)
	for _, mac := range slices.SortedFunc(maps.Keys(byMAC), transport.MAC.Compare) {
		if n := byMAC[mac]; n.tentative {
			t.other = append(t.other, n)
		} else {
			t.known = append(t.known, n)
			there[n.at] = true
		}
	}
	for _, seed := range s.seeds {
		if !there[seed.at] {
			t.seeds = append(t.seeds, seed)
		}
	}
	s.table.Store(t)
}
