package manager

import (
	"fmt"
	"net"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"
)

// sessions are a server's, and what ended ones have counted. Guarded by Server.mu.
type sessions struct {
	open      map[net.Conn]bool // connections, whether they have said who they are or not
	all       map[*subscriber]bool
	last      claims.Owner // the number given out last
	asked     uint64       // the report asked for last
	reserving bool         // versions are being reserved
	// ended holds the last reports of programs whose connection has ended, by their id: a program that comes back goes on counting
	// where it was. The oldest are added to past when they become too many.
	ended []endedSession
	kept  int // counts in ended
	past  counts
}

type endedSession struct {
	id     string
	counts []vlan.Sent
}

func (a *sessions) init() {
	a.open, a.all = make(map[net.Conn]bool), make(map[*subscriber]bool)
	a.past = make(counts)
}

// add takes a subscriber in, or returns an error that is errFull.
func (a *sessions) add(sub *subscriber) error {
	if len(a.all) >= MaxSessions {
		return fmt.Errorf("%w: %d (want at most %d on a node)", errFull, len(a.all), MaxSessions)
	}
	a.last++
	sub.owner = a.last
	a.all[sub] = true
	for i, e := range a.ended {
		if e.id == sub.id {
			a.kept -= len(e.counts)
			a.ended = append(a.ended[:i], a.ended[i+1:]...)
			break
		}
	}
	return nil
}

// remove takes a subscriber out, and keeps what it has counted.
func (a *sessions) remove(sub *subscriber) {
	delete(a.all, sub)
	a.ended = append(a.ended, endedSession{sub.id, sub.counts})
	a.kept += len(sub.counts)
	for len(a.ended) > MaxEnded || a.kept > MaxEndedCounts {
		a.kept -= len(a.ended[0].counts)
		a.past.add(a.ended[0].counts)
		a.ended = a.ended[1:]
	}
}

// drop tells the owner of a claim that it is no more.
func (a *sessions) drop(d claims.Dropped) {
	for sub := range a.all {
		if sub.owner == d.Owner {
			sub.dropped = append(sub.dropped, d.Change)
		}
	}
}

// counts sums up what was sent to a destination with a VID.
type counts map[countKey]countValue

type countKey struct {
	dst transport.MAC
	vid transport.VID
}

type countValue struct{ frames, bytes uint64 }

func (c counts) add(sent []vlan.Sent) {
	for _, s := range sent {
		k := countKey{s.Dst, s.VID}
		v := c[k]
		c[k] = countValue{v.frames + s.Frames, v.bytes + s.Bytes}
	}
}

// total sums up what all sessions have counted, those that have ended included.
func (a *sessions) total() counts {
	c := make(counts, len(a.past))
	for k, v := range a.past {
		c[k] = v
	}
	for _, e := range a.ended {
		c.add(e.counts)
	}
	for sub := range a.all {
		c.add(sub.counts)
	}
	return c
}
