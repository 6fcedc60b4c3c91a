package vlan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// routing is the state of a Table between two changes. Once it is in force nothing of it changes but the counts' values.
//
// It is a hash table in pages of chains. The next state shares all pages but those in which a change has an entry, and in
// their chains what comes behind that entry. So changing a route copies one page and the list of pages (768 bytes for
// 1,024 destinations), where a Go map would have to be made anew; and a look-up takes half of a map's time
// (go test -bench Table ./vlan).
type routing struct {
	generation uint64
	pages      []*page // a power of two of them
	private    bool    // no other state shares any page
	shift      uint8   // 64 - log2 of the number of chains
	fallback   *entry  // of destinations without a route of their own
	known      int     // entries in chains
	routes     int     // in force, the default among them
	counts     int
}

const logPage = 6

// page is a part of a routing: the first entry of each of its chains. A table grows when it has more entries than chains.
type page [1 << logPage]*entry

// entry is what is known of a destination.
type entry struct {
	dst     uint64
	tag     transport.Tag
	state   routeState
	changed uint64 // the generation of its last change
	count   *Count // of the present route
	cells   *cell  // all its counts, the latest first
	next    *entry // of its chain
}

// routeState says how frames by an entry travel.
type routeState uint8

const (
	gone     routeState = iota // there was a route; its counts remain
	untagged                   // without a tag
	tagged                     // with the entry's tag
)

// cell is the count of one destination and one VID.
type cell struct {
	count Count
	vid   transport.VID // 0: untagged
	older *cell
}

// keyOf makes a number of an address, faster to compare and to spread than its bytes.
func keyOf(m transport.MAC) uint64 {
	return uint64(binary.BigEndian.Uint32(m[:4]))<<16 | uint64(binary.BigEndian.Uint16(m[4:]))
}

// macOf is the inverse of keyOf.
func macOf(key uint64) (m transport.MAC) {
	binary.BigEndian.PutUint32(m[:4], uint32(key>>16))
	binary.BigEndian.PutUint16(m[4:], uint16(key))
	return m
}

const broadcastKey = 1<<48 - 1 // of transport.Broadcast

// newRouting returns a state without routes that has room for some.
func newRouting(routes int) *routing {
	r := &routing{fallback: &entry{dst: broadcastKey}}
	r.makePages(routes)
	return r
}

// makePages makes as many chains as n entries need, all empty.
func (r *routing) makePages(n int) {
	log := bits.Len(uint(n >> logPage))
	pages := make([]page, 1<<log)
	r.pages = make([]*page, len(pages))
	for i := range pages {
		r.pages[i] = &pages[i]
	}
	r.shift, r.private = uint8(64-logPage-log), true
}

// chain says where a key's entry is, if it has one: by the upper bits of its product with 2^64 over the golden ratio, which
// spreads neighbouring addresses evenly (Knuth, TAOCP 3, §6.4).
func (r *routing) chain(key uint64) (page, i uint64) {
	h := key * 0x9e3779b97f4a7c15 >> r.shift
	return h >> logPage, h % (1 << logPage)
}

// find returns the entry of a destination, or nil.
func (r *routing) find(key uint64) *entry {
	if key == broadcastKey {
		return r.fallback
	}
	p, i := r.chain(key)
	e := r.pages[p][i]
	for e != nil && e.dst != key {
		e = e.next
	}
	return e
}

// route returns the entry that frames to a destination go by.
func (r *routing) route(key uint64) *entry {
	if e := r.find(key); e != nil && e.state != gone {
		return e
	}
	return r.fallback
}

// next returns a copy to make the following state of.
func (r *routing) next() *routing {
	n := *r
	n.generation++
	n.pages, n.private = slices.Clone(r.pages), false
	return &n
}

// nextWithout is next, but with the counts alone and no route.
func (r *routing) nextWithout() *routing {
	n := *r
	n.generation++
	n.routes = 0
	n.makePages(r.known)
	r.entries(func(e *entry) {
		absent := *e
		absent.state = gone
		n.insert(&absent)
	})
	return &n
}

// insert adds an entry that is not there, whatever chain becomes too long by it. Only for pages that no other state shares.
func (r *routing) insert(e *entry) {
	if e.dst == broadcastKey {
		r.fallback = e
		return
	}
	p, i := r.chain(e.dst)
	e.next, r.pages[p][i] = r.pages[p][i], e
}

// apply brings routes into force. With an error r is of no use any more.
func (r *routing) apply(routes []Route) error {
	for _, route := range routes {
		if err := r.put(route); err != nil {
			return err
		}
	}
	if r.fallback.state == gone {
		absent := *r.fallback
		absent.tag = transport.Tag{}
		r.countIn(&absent)
		r.fallback = &absent
	}
	switch {
	case r.routes > MaxRoutes:
		return fmt.Errorf("%w: %d of them (want at most %d in a table)", ErrBadRoute, r.routes, MaxRoutes)
	case r.counts > MaxCounts:
		return fmt.Errorf("%w: a table that has counted for %d pairs of destination and VID is full (make a new table)", ErrBadRoute, MaxCounts)
	}
	return nil
}

// put brings one route into force.
func (r *routing) put(route Route) error {
	if err := route.Validate(); err != nil {
		return err
	}
	key := keyOf(route.Dst)
	e, old := &entry{dst: key}, r.find(key)
	if old != nil {
		*e = *old
	}
	if e.changed == r.generation {
		return fmt.Errorf("%w to %v: given twice (want one for each destination)", ErrBadRoute, route.Dst)
	}
	if e.state == gone {
		r.routes++
	}
	e.tag, e.state, e.changed = route.Tag, tagged, r.generation
	if route.Untagged {
		e.state = untagged
	}
	r.countIn(e)
	r.place(e, old != nil)
	return nil
}

// place puts an entry into its chain, in a page that no other state shares: instead of the one that was there, if any.
func (r *routing) place(e *entry, known bool) {
	if e.dst == broadcastKey {
		r.fallback = e
		return
	}
	if !known {
		if r.known++; r.known > len(r.pages)<<logPage {
			r.grow()
		}
	}
	p, i := r.chain(e.dst)
	if !r.private {
		own := *r.pages[p]
		r.pages[p] = &own
	}
	e.next = r.pages[p][i]
	if known {
		e.next = e.next.without(e.dst)
	}
	r.pages[p][i] = e
}

// without returns a chain but for the entry of dst, which is in it. Other states go on using the chain as it is.
func (e *entry) without(dst uint64) *entry {
	if e.dst == dst {
		return e.next
	}
	c := *e
	c.next = e.next.without(dst)
	return &c
}

// grow spreads the entries over twice as many chains as there are of them.
func (r *routing) grow() {
	old := *r
	r.makePages(2 * r.known)
	old.entries(func(e *entry) {
		c := *e
		r.insert(&c)
	})
}

// countIn makes the entry count by its present tag: where it did when it had it before, or in a new place.
func (r *routing) countIn(e *entry) {
	for c := e.cells; c != nil; c = c.older {
		if c.vid == e.tag.VID {
			e.count = &c.count
			return
		}
	}
	e.cells = &cell{vid: e.tag.VID, older: e.cells}
	e.count = &e.cells.count
	r.counts++
}

// entries calls f with each entry, the default's among them.
func (r *routing) entries(f func(*entry)) {
	f(r.fallback)
	for _, p := range r.pages {
		for _, e := range p {
			for ; e != nil; e = e.next {
				f(e)
			}
		}
	}
}
