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
// It is a hash table of small buckets, of which the next state shares all but those that a change touches. So a change of
// a pair's route copies a few bytes per destination, where a Go map would have to be made anew; and a look-up takes a third
// of a map's time (go test -bench Table ./vlan).
type routing struct {
	generation uint64
	buckets    [][]entry // a power of two of them
	shift      uint8     // 64 - log2(len(buckets))
	fallback   entry     // of destinations without a route of their own
	known      int       // entries in buckets
	routes     int       // in force, the default among them
	counts     int
}

// perBucket is how many entries a bucket holds on average before there are made more buckets: more make look-ups slower, fewer
// changes.
const perBucket = 4

// entry is what is known of a destination.
type entry struct {
	dst     uint64
	tag     transport.Tag
	state   routeState
	changed uint64 // the generation of its last change
	count   *Count // of the present route
	cells   *cell  // all its counts, the latest first
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

var broadcastKey = keyOf(transport.Broadcast)

// newRouting returns a state without routes that has room for some.
func newRouting(routes int) *routing {
	r := new(routing)
	r.fallback.dst = broadcastKey
	r.makeBuckets(routes)
	return r
}

// makeBuckets makes as many buckets as n entries need, all empty.
func (r *routing) makeBuckets(n int) {
	log := bits.Len(uint(n / perBucket))
	r.buckets, r.shift = make([][]entry, 1<<log), uint8(64-log)
}

// bucket is where a key's entry is, if it has one: the upper bits of its product with 2^64 over the golden ratio, which
// spreads neighbouring addresses evenly (Knuth, TAOCP 3, §6.4).
func (r *routing) bucket(key uint64) *[]entry { return &r.buckets[key*0x9e3779b97f4a7c15>>r.shift] }

// route returns the entry that frames to a destination go by.
func (r *routing) route(key uint64) *entry {
	b := *r.bucket(key)
	for i := range b {
		if b[i].dst == key && b[i].state != gone {
			return &b[i]
		}
	}
	return &r.fallback
}

// next returns a copy to make the following state of.
func (r *routing) next() *routing {
	n := *r
	n.generation++
	n.buckets = slices.Clone(r.buckets)
	return &n
}

// nextWithout is next, but with the counts alone and no route.
func (r *routing) nextWithout() *routing {
	n := *r
	n.generation++
	n.routes = 0
	n.fallback.state = gone
	n.makeBuckets(r.known)
	for _, b := range r.buckets {
		for _, e := range b {
			e.state = gone
			n.insert(e)
		}
	}
	return &n
}

// insert adds an entry that is not there, whatever bucket becomes too full by it. Only for buckets that no other state shares.
func (r *routing) insert(e entry) {
	b := r.bucket(e.dst)
	*b = append(*b, e)
}

// apply brings routes into force. With an error r is of no use any more.
func (r *routing) apply(routes []Route) error {
	for _, route := range routes {
		if err := r.put(route); err != nil {
			return err
		}
	}
	if r.fallback.state == gone {
		r.fallback.tag = transport.Tag{}
		r.countIn(&r.fallback)
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
	e := r.own(keyOf(route.Dst))
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
	return nil
}

// own returns the entry of a destination, for changing: in a bucket that no other state shares. If there is none, it
// makes one that is gone.
func (r *routing) own(key uint64) *entry {
	if key == broadcastKey {
		return &r.fallback
	}
	b := r.bucket(key)
	*b = slices.Clone(*b)
	if i := slices.IndexFunc(*b, func(e entry) bool { return e.dst == key }); i >= 0 {
		return &(*b)[i]
	}
	if r.known++; r.known > perBucket*len(r.buckets) {
		r.grow()
		b = r.bucket(key)
	}
	*b = append(*b, entry{dst: key})
	return &(*b)[len(*b)-1]
}

// grow spreads the entries over as many buckets as they need by now.
func (r *routing) grow() {
	old := r.buckets
	r.makeBuckets(2 * r.known)
	for _, b := range old {
		for _, e := range b {
			r.insert(e)
		}
	}
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
	f(&r.fallback)
	for _, b := range r.buckets {
		for i := range b {
			f(&b[i])
		}
	}
}
