package control

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// MoveReason is the reason for which a pair was moved to another VID.
type MoveReason uint8

// The reasons.
const (
	MoveMissed   MoveReason = iota + 1 // the old VID answers no probes
	MoveLink                           // its link went down
	MoveReported                       // the peer reports that it carries nothing
	MoveHeld                           // a better one has recovered for a while
	MoveFollowed                       // the peer, which decides, uses the other VID
	MoveTold                           // SetPeer said so
)

// String gives the reason in words.
func (r MoveReason) String() string {
	return word(r, "?", "no answer", "link down", "reported by the peer", "has held", "decided by the peer", "told")
}

// MarshalText makes reasons in JSON readable.
func (r MoveReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// changed follows a change of a path's state: the deciding end decides, and the peer is told.
func (f *Failover) changed(p *peer, why MoveReason) {
	before := p.current
	if p.decides {
		f.decide(p, why)
	}
	if p.current == before { // otherwise move has told the peer
		f.probeAll(p)
	}
}

// decide chooses the pair's path anew.
func (f *Failover) decide(p *peer, why MoveReason) {
	f.drop(&p.timer)
	best, at := f.choose(p)
	if best == p.current {
		p.notBefore, p.putOff = monotime.Time{}, 0
		return
	}
	if f.holdOff.After(f.now) && !p.notBefore.After(f.now) && p.putOff < f.cfg.Misses && !p.current.linkDown {
		p.notBefore, p.putOff = f.holdOff, p.putOff+1
	}
	if p.notBefore.After(at) {
		at = p.notBefore
	}
	if at.After(f.now) {
		f.set(&p.timer, at)
		return
	}
	p.notBefore, p.putOff = monotime.Time{}, 0
	f.move(best, f.reason(p, why))
}

// reason returns why the path in use is left, given what was learned just now.
func (f *Failover) reason(p *peer, learned MoveReason) MoveReason {
	switch {
	case f.rank(p.current) != PathDown:
		return MoveHeld
	case p.current.linkDown:
		return MoveLink
	case learned == MoveHeld:
		return MoveMissed
	}
	return learned
}

// choose returns the path that the pair should use, and from when on:
//
//	the path in use       is left for
//	not down              the preferred one, once that is up
//	down                  one that is up; or else the one that has been in WaitToRestore for
//	                      longest, for settling at least
//
// Of equals, the preferred one comes first, and the others in an order that differs from pair to
// pair: the load of a dead VID is spread over the others. If all paths die, those that are not in
// use turn suspect last. So the pair does not move to a suspect path; it will be up or down before
// long. And all begin to answer at about the same time. So the pair does not move at once to the
// first that answers, for the one in use may be next.
func (f *Failover) choose(p *peer) (best *path, at monotime.Time) {
	if f.rank(p.current) != PathDown {
		if prefer := p.path(p.prefer); f.rank(prefer) == PathUp {
			return prefer, f.now
		}
		return p.current, f.now
	}
	best, at = p.current, f.now
	for i := range p.paths {
		path := f.nth(p, i)
		switch f.rank(path) {
		case PathUp:
			return path, f.now
		case PathWaitToRestore:
			settled := path.answersSince().Add(f.settling())
			answers := path.misses == 0 // if it does not now, the peer may stand still again
			if answers && (best == p.current || settled.Before(at)) {
				best, at = path, settled
			}
		}
	}
	return best, at
}

// answersSince returns since when a path has been in WaitToRestore, at both ends.
func (path *path) answersSince() (since monotime.Time) {
	if path.state == PathWaitToRestore {
		since = path.since
	}
	if path.reported == PathWaitToRestore && path.reportedSince.After(since) {
		since = path.reportedSince
	}
	return since
}

// settling is how long a path must answer before a pair whose own path is dead moves to it.
func (f *Failover) settling() time.Duration { return f.cfg.Timeout * time.Duration(f.cfg.Misses) }

// nth returns the paths to a peer in the order of preference: the preferred one, then the others,
// from any one on.
func (f *Failover) nth(p *peer, i int) *path {
	if i == 0 || len(p.paths) == 1 {
		return p.path(p.prefer)
	}
	others := len(p.paths) - 1
	i = (i - 1 + pairHash(f.self, p.mac)) % others
	if p.paths[i].vid >= p.prefer {
		i++
	}
	return p.paths[i]
}

// move lets the pair use a path from now on, and tells the peer.
func (f *Failover) move(to *path, why MoveReason) {
	p := to.peer
	from := p.current
	if from == to {
		return
	}
	p.current = to
	f.steps = append(f.steps, FailoverStep{
		Peer: p.mac, VID: to.vid, From: from.vid, Reason: why, Alive: f.rank(from) < PathDown,
	})
	f.probeAll(p)
}

// follow takes over the deciding peer's choice. A choice that SetPeer has replaced here does not
// count for a while, as the peer is told, too; but the path that SetPeer gave must work.
func (f *Failover) follow(p *peer, choice transport.VID) {
	again := choice == p.choice
	p.choice = choice
	path := p.path(choice)
	stay := again && f.now.Before(p.ownUntil) && f.rank(p.current) <= PathSuspect
	if path != nil && !stay {
		f.move(path, MoveFollowed)
	}
}

// rank is the state of a path as both ends see it: the worse of the two. A report of the peer that
// is old does not count, and neither does its suspicion.
func (f *Failover) rank(path *path) PathState {
	p := path.peer
	recent := p.heard && f.now.Sub(p.heardAt) <= f.cfg.WaitToRestore+f.cfg.StandbyInterval
	if !recent || path.reported == PathSuspect {
		return path.state
	}
	return max(path.state, path.reported)
}
