package discovery

import (
	"maps"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// doubt is of a station that was heard, and may not be there any more: it does not count.
type doubt struct {
	anew  Station       // what claims its number from another address; without a MAC: it has failed
	until monotime.Time // if it is silent until then, anew takes its place
}

// claimed reports whether the station's number is claimed from another address.
func (d doubt) claimed() bool { return len(d.anew.MACs) > 0 }

// mayHaveBegunAnew notes that a station which was heard may have begun anew at another address,
// and reports whether that is all that a fault says. Only two that are there are a conflict: the
// station is heard again then, or the other one says that it has failed.
func (d *Discovery) mayHaveBegunAnew(now monotime.Time, f Fault, a *Announcement) bool {
	if d.state == Complete || f.Kind != SameNumber || f.A.Node == d.self.Node || a.Failed || d.ownerOf(f.B) {
		return false
	}
	if known := d.doubts[f.B.Node]; !known.claimed() || !slices.Equal(known.anew.MACs, f.B.MACs) {
		d.doubt(now, f.B.Node, doubt{anew: f.B, until: now.Add(silentFor)})
	}
	return true
}

// ownerOf reports whether an address of a station is another number's.
func (d *Discovery) ownerOf(s Station) bool {
	return slices.ContainsFunc(s.MACs, func(m transport.MAC) bool {
		owner, ok := d.byMAC[m]
		return ok && owner != s.Node
	})
}

// doubt has a station not count as heard.
func (d *Discovery) doubt(now monotime.Time, node uint16, why doubt) {
	d.doubts[node] = why
	if d.state == Settling {
		d.state, d.next, d.interval = Seeking, now, FirstInterval // who is complete answers
	}
}

// hearDoubted takes what a station says at the address that is known, or at a first one: it is
// there, which is a conflict where its number is claimed from another address; or it has failed.
func (d *Discovery) hearDoubted(now monotime.Time, s Station, a *Announcement) Fault {
	_, known := d.heard[s.Node]
	why, doubted := d.doubts[s.Node]
	switch {
	case doubted && why.claimed():
		return Fault{Kind: SameNumber, A: d.heard[s.Node], B: why.anew, Size: d.size}
	case a.Failed && known:
		d.doubt(now, s.Node, doubt{})
	case doubted:
		delete(d.doubts, s.Node)
		d.settle(now)
	}
	return Fault{}
}

// endDoubts gives the places of stations that are silent to those that claim their numbers.
func (d *Discovery) endDoubts(now monotime.Time) {
	for _, node := range slices.Sorted(maps.Keys(d.doubts)) { // there are none, as a rule
		why := d.doubts[node]
		if !why.claimed() || now.Before(why.until) {
			continue
		}
		for _, m := range d.heard[node].MACs {
			delete(d.byMAC, m)
		}
		delete(d.doubts, node)
		d.enter(now, why.anew)
		d.soon = true
	}
}
