package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

const (
	// maxSessions bounds the programs of a node that are served at once.
	maxSessions = 256
	// maxEnded bounds the ended sessions whose counters are kept apart, for programs whose
	// connection broke and that come back.
	maxEnded = 1024
	// maxEndedCounts bounds the counters kept apart, of 32 bytes each, and those of all other ended
	// sessions together.
	maxEndedCounts = vlan.MaxCounts
	// maxLiveCounts bounds the counters of all sessions that there are, together.
	maxLiveCounts = 4 * vlan.MaxCounts
)

// sessions are a server's sessions, and the counters of those that have ended. Guarded by
// Server.mu.
type sessions struct {
	all   map[string]*session // by id
	last  rib.Source          // the latest number given out
	asked uint64              // the latest report asked for
	live  int                 // counts of the sessions in all
	// ended holds the latest reports of sessions that have ended: a session that begins anew takes
	// its own over. The oldest are added to past when they become too many.
	ended []endedSession
	kept  int // counts in ended
	past  sums
}

type endedSession struct {
	id     string
	counts []vlan.Sent
}

func newSessions() sessions {
	return sessions{all: make(map[string]*session), past: make(sums)}
}

// add makes a session, with the counters that it had before. The error is api.ErrFull.
func (a *sessions) add(id, program string) (*session, error) {
	if len(a.all) >= maxSessions {
		return nil, fmt.Errorf("%w: %d (want at most %d on a node)", api.ErrFull, len(a.all), maxSessions)
	}
	a.last++
	sess := &session{id: id, number: a.last, program: program, reported: a.asked,
		wake: make(chan struct{}, 1), pending: make(map[transport.MAC]vlan.Route), urgent: make(map[transport.MAC]bool)}
	a.all[id] = sess
	if i := slices.IndexFunc(a.ended, func(e endedSession) bool { return e.id == id }); i >= 0 {
		sess.counts = a.ended[i].counts
		a.live += len(sess.counts)
		a.kept -= len(sess.counts)
		a.ended = slices.Delete(a.ended, i, i+1)
	}
	return sess, nil
}

// report replaces a session's counters. The error is api.ErrTooLarge.
func (a *sessions) report(sess *session, counts []vlan.Sent) error {
	live := a.live - len(sess.counts) + len(counts)
	if live > maxLiveCounts && len(counts) > len(sess.counts) {
		return fmt.Errorf("%w: the node's programs have %d counters (want at most %d)",
			api.ErrTooLarge, live, maxLiveCounts)
	}
	a.live, sess.counts = live, counts
	return nil
}

// remove takes a session out, and keeps its counters.
func (a *sessions) remove(sess *session) {
	delete(a.all, sess.id)
	a.live -= len(sess.counts)
	a.ended = append(a.ended, endedSession{sess.id, sess.counts})
	a.kept += len(sess.counts)
	for len(a.ended) > maxEnded || a.kept > maxEndedCounts {
		a.kept -= len(a.ended[0].counts)
		a.past.add(a.ended[0].counts)
		a.ended = slices.Delete(a.ended, 0, 1)
	}
}

// count counts the sessions for which a condition holds.
func (a *sessions) count(holds func(*session) bool) (n int) {
	for _, sess := range a.all {
		if holds(sess) {
			n++
		}
	}
	return n
}

// silent counts the sessions that have not sent a report.
func (a *sessions) silent(report uint64) int {
	return a.count(func(sess *session) bool { return sess.reported < report })
}

// drop tells the session of a candidate that it was taken back.
func (a *sessions) drop(d rib.Candidate) {
	for _, sess := range a.all {
		if sess.number == d.Source {
			sess.next.Dropped = append(sess.next.Dropped, d.Change)
			sess.wakeUp()
		}
	}
}

// total sums up what all sessions have counted, those that have ended included.
func (a *sessions) total() sums {
	total := maps.Clone(a.past)
	for _, e := range a.ended {
		total.add(e.counts)
	}
	for _, sess := range a.all {
		total.add(sess.counts)
	}
	return total
}

// sums are what was sent, by destination and VID.
type sums map[route]vlan.Sent

type route struct {
	dst transport.MAC
	vid transport.VID
}

// add adds counts. Destinations beyond maxEndedCounts are counted as those without a route of their
// own.
func (s sums) add(counts []vlan.Sent) {
	for _, c := range counts {
		if _, known := s[route{c.Dst, c.VID}]; !known && len(s) >= maxEndedCounts {
			c.Dst = transport.Broadcast
		}
		before := s[route{c.Dst, c.VID}]
		c.Frames += before.Frames
		c.Bytes += before.Bytes
		s[route{c.Dst, c.VID}] = c
	}
}

// sorted returns the sums by destination, then VID.
func (s sums) sorted() []vlan.Sent {
	return slices.SortedFunc(maps.Values(s), func(a, b vlan.Sent) int {
		return cmp.Or(a.Dst.Compare(b.Dst), cmp.Compare(a.VID, b.VID))
	})
}
