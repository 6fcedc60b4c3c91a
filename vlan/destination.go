package vlan

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// Destination is the entry of one address in a Table, for as long as there is the table. A sender
// that has many frames for the address keeps it: to read its route is one atomic load.
type Destination struct {
	table *Table
	mac   transport.MAC
	now   atomic.Pointer[egress] // nil: as the default

	// Guarded by Table.mu:
	own     bool      // there is a route to the address itself
	past    []*egress // all that were ever in force; MaxCounts bounds them, but for 16 priorities each
	changes uint64    // times that a route to the address itself was set or taken out
}

// egress is how frames leave by a route: with which tag, and where they are counted. It is never
// changed.
type egress struct {
	tag   transport.OptionalTag
	count *Count // shared by tags that differ in priority alone
	first bool   // of those that share the count
}

// Route returns the tag of frames to the address now, and where to count them. The count is never
// nil.
func (d *Destination) Route() (transport.OptionalTag, *Count) {
	e := d.now.Load()
	if e == nil {
		e = d.table.fallback.now.Load()
	}
	return e.tag, e.count
}

// FollowsDefault reports whether the address has no route of its own now, so that its frames go by
// the default one.
func (d *Destination) FollowsDefault() bool {
	return d != &d.table.fallback && d.now.Load() == nil
}

// switchTo makes a route the destination's if it has had that tag before. It returns false if it
// has not.
func (d *Destination) switchTo(r Route) bool {
	if !d.own {
		return false
	}
	e := d.egress(r.OptionalTag)
	if e != nil {
		d.now.Store(e)
		d.changes++
	}
	return e != nil
}

// set gives the destination a route of its own, which was checked.
func (d *Destination) set(tag transport.OptionalTag) {
	e := d.egress(tag)
	if e == nil {
		e = d.add(tag)
	}
	if !d.own {
		d.own = true
		d.table.routes++
	}
	d.now.Store(e)
	d.changes++
}

// unset takes the destination's own route away. The counts stay.
func (d *Destination) unset() {
	if d.own {
		d.own = false
		d.table.routes--
		d.changes++
	}
	if d != &d.table.fallback {
		d.now.Store(nil)
		return
	}
	e := d.egress(transport.Untagged)
	if e == nil {
		e = d.add(transport.Untagged)
	}
	d.now.Store(e)
}

// egress returns that of a tag, if the destination has had it.
func (d *Destination) egress(tag transport.OptionalTag) *egress {
	for _, e := range d.past {
		if e.tag == tag {
			return e
		}
	}
	return nil
}

// count returns where frames with a VID were counted, or nil if there were none. 0 is no tag.
func (d *Destination) count(vid transport.VID) *Count {
	for _, e := range d.past {
		if e.tag.Tag.VID == vid {
			return e.count
		}
	}
	return nil
}

// add makes the egress of a tag that the destination has not had.
func (d *Destination) add(tag transport.OptionalTag) *egress {
	e := &egress{tag: tag, count: d.count(tag.Tag.VID)}
	if e.count == nil {
		e.count, e.first = new(Count), true
		d.table.counts++
	}
	d.past = append(d.past, e)
	return e
}
