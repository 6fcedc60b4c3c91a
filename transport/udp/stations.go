package udp

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// station is another link: its Ethernet address, and where it is.
type station struct {
	mac     transport.MAC
	at      netip.AddrPort
	address address // the same, as the system wants it
}

// stations is a table that is read without a lock. A station is never changed: it is replaced.
type stations struct {
	mu    sync.Mutex // serialises changes
	table atomic.Pointer[stationTable]
}

type stationTable struct {
	byMAC map[transport.MAC]*station
	list  []*station // by MAC, so that copies leave in one order
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

func (s *stations) all() []*station { return s.load().list }

// add returns false if there is one with that address already.
func (s *stations) add(n *station) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(n.mac) != nil {
		return false
	}
	s.put(n)
	return true
}

// put adds or replaces a station. The caller holds mu.
func (s *stations) put(n *station) {
	byMAC := maps.Clone(s.load().byMAC)
	if byMAC == nil {
		byMAC = make(map[transport.MAC]*station)
	}
	byMAC[n.mac] = n
	s.table.Store(&stationTable{byMAC, slices.SortedFunc(maps.Values(byMAC), func(a, b *station) int {
		return a.mac.Compare(b.mac)
	})})
}
