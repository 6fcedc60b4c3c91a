package control

import (
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// MoveReason is why a pair was moved to another VID.
type MoveReason uint8

// The reasons.
const (
	MoveMissed   MoveReason = iota + 1 // the VID that was left answers no probes
	MoveLink                           // its link went down
	MoveReported                       // the peer says that it carries nothing
	MoveHeld                           // a better one has held for a while
	MoveFollowed                       // the peer, which decides, uses the other VID
	MoveTold                           // SetPeer said so
)

var moveReasonNames = [...]string{"?", "no answer", "link down", "reported by the peer", "has held", "decided by the peer", "told"}

// String gives the reason in words.
func (r MoveReason) String() string {
	if int(r) < len(moveReasonNames) {
		return moveReasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// MarshalText makes reasons of JSON readable.
func (r MoveReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// changed is what follows when a path became better or worse: the end that decides does so, and the peer is told.
func (f *Failover) changed(now monotime.Time, p *failoverPeer, why MoveReason, out []FailoverStep) []FailoverStep {
	before := p.current
	if p.decides {
		out = f.decide(now, p, why, out)
	}
	if p.current != before {
		return out // move has told the peer
	}
	return f.probeAll(now, p, out)
}

// decide chooses the pair's path anew.
func (f *Failover) decide(now monotime.Time, p *failoverPeer, why MoveReason, out []FailoverStep) []FailoverStep {
	f.drop(&p.timer)
	best, at := f.choose(now, p)
	if best == p.current {
		p.notBefore, p.putOff = monotime.Time{}, 0
		return out
	}
	if f.holdOff.After(now) && !p.notBefore.After(now) && p.putOff < f.cfg.Misses && !p.current.linkDown {
		p.notBefore, p.putOff = f.holdOff, p.putOff+1
	}
	if p.notBefore.After(at) {
		at = p.notBefore
	}
	if at.After(now) {
		f.set(&p.timer, at)
		return out
	}
	p.notBefore, p.putOff = monotime.Time{}, 0
	return f.move(now, p, best, f.reason(now, p, why), out)
}

// reason is why the path in use is left, of which somebody has just learned.
func (f *Failover) reason(now monotime.Time, p *failoverPeer, learned MoveReason) MoveReason {
	switch {
	case f.rank(now, p, p.current) != PathDown:
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
//	the path in use             is left for
//	up, suspect or holding      the preferred one, once that is up
//	down                        one that is up, or else the one that has been holding for longest, for settling at least
//
// Of equals, the preferred one comes first, and the others in an order that is another one for each pair: what a dead VID
// carried is spread over those that are left. Where all are dead, those that are not in use turn suspect last: so one that is suspect is
// not moved to; it will be up or down before long. And all begin to answer at about the same time: so one that has just begun is
// not moved to at once, for the one in use may be next.
func (f *Failover) choose(now monotime.Time, p *failoverPeer) (best *failoverPath, at monotime.Time) {
	if f.rank(now, p, p.current) != PathDown {
		if prefer := p.path(p.prefer); f.rank(now, p, prefer) == PathUp {
			return prefer, now
		}
		return p.current, now
	}
	best, at = p.current, now
	for i := range p.paths {
		path := f.nth(p, i)
		switch f.rank(now, p, path) {
		case PathUp:
			return path, now
		case PathWaitToRestore:
			if path.misses > 0 {
				continue // it does not answer now: the peer may stand still again
			}
			if settled := path.held().Add(f.settling()); best == p.current || settled.Before(at) {
				best, at = path, settled
			}
		}
	}
	return best, at
}

// held returns since when a path has been holding, at both ends.
func (path *failoverPath) held() (since monotime.Time) {
	if path.state == PathWaitToRestore {
		since = path.since
	}
	if path.reported == PathWaitToRestore && path.heldSince.After(since) {
		since = path.heldSince
	}
	return since
}

// settling is how long a path must answer before a pair is moved to it whose own is dead.
func (f *Failover) settling() (d time.Duration) { return f.cfg.Timeout * time.Duration(f.cfg.Misses) }

// nth returns the paths to a peer in the order of preference: the preferred one, then the others, beginning anywhere.
func (f *Failover) nth(p *failoverPeer, i int) *failoverPath {
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

// move has the pair use a path from now on, and tells the peer.
func (f *Failover) move(now monotime.Time, p *failoverPeer, to *failoverPath, why MoveReason, out []FailoverStep) []FailoverStep {
	from := p.current
	if from == to {
		return out
	}
	p.current = to
	out = append(out, FailoverStep{Peer: p.mac, VID: to.vid, From: from.vid, Reason: why, Alive: f.rank(now, p, from) < PathDown})
	return f.probeAll(now, p, out)
}

// follow takes the deciding peer's choice over. One that we were told to leave does not count again for a while, as the peer is told, too; but
// what we were told to use must work.
func (f *Failover) follow(now monotime.Time, p *failoverPeer, choice transport.VID, out []FailoverStep) []FailoverStep {
	again := choice == p.choice
	p.choice = choice
	path := p.path(choice)
	stay := again && now.Before(p.ownUntil) && f.rank(now, p, p.current) <= PathSuspect
	if path == nil || stay {
		return out
	}
	return f.move(now, p, path, MoveFollowed, out)
}

// rank is what a path is worth: what both ends think of it, the worse of the two. What the peer said a long time ago does not
// count.
func (f *Failover) rank(now monotime.Time, p *failoverPeer, path *failoverPath) PathState {
	if !p.heard || now.Sub(p.heardAt) > f.cfg.WaitToRestore+f.cfg.StandbyInterval {
		return path.state
	}
	if path.reported == PathSuspect { // its own business, as yet
		return path.state
	}
	return max(path.state, path.reported)
}
