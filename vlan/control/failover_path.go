package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// PathState is what is thought of the path to a peer by a VID. The better ones come first.
type PathState uint8

// The states.
const (
	PathUp            PathState = iota // it answers
	PathSuspect                        // it has missed probes, not too many yet
	PathWaitToRestore                  // it was down and answers again, not for long enough yet
	PathDown                           // it does not answer, or its link is down
)

var pathStateNames = [...]string{"up", "suspect", "holding", "down"}

// String names s: up, suspect, holding or down.
func (s PathState) String() string {
	if int(s) < len(pathStateNames) {
		return pathStateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText makes states of JSON readable.
func (s PathState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// failoverPeer is another station, and the paths to it.
type failoverPeer struct {
	mac     transport.MAC
	decides bool // we do, for the pair
	prefer  transport.VID
	paths   []*failoverPath // by VID
	current *failoverPath
	number  uint32 // of the last probe to it
	timer   timer  // for a decision that is put off
	// notBefore is when a decision to move may be carried out that was made when this end had just gone on: see look.
	notBefore monotime.Time
	putOff    int // how often it was put off for that: up to Misses, for an end that is late always is to move, too

	// What the peer has said:
	heard    bool
	life     uint32
	newest   uint32 // number of the probe that said it
	heardAt  monotime.Time
	choice   transport.VID // of the deciding peer; 0: none yet
	ownUntil monotime.Time // we were told another VID than its choice, as it will be: do not go back before
}

// failoverPath is the path to a peer by one VID.
type failoverPath struct {
	vid              transport.VID
	state            PathState
	linkDown         bool          // its link is down
	waiting          bool          // for an answer, until the timer is due
	excused          bool          // the wait was made longer, as this end stood still in it
	misses           int           // in a row
	aliveOnOtherPath monotime.Time // when the peer answered by another path first, since the first of them; zero: it has not
	first            uint32        // probes from this number on may still be answered
	last             uint32        // number of the last probe
	since            monotime.Time // of Holding
	reported         PathState     // what the peer thinks of it
	heldSince        monotime.Time // of its being reported as Holding
	timer            timer         // for the next probe, or for its being missed
}

func (f *Failover) newPeer(now monotime.Time, mac transport.MAC, prefer transport.VID) *failoverPeer {
	p := &failoverPeer{mac: mac, decides: f.self.Compare(mac) < 0, prefer: prefer}
	p.number = uint32(now.Since() / time.Millisecond) // higher than what was used before, if we begin anew in one life
	p.timer.peer = p
	for i, vid := range f.cfg.VIDs {
		path := &failoverPath{vid: vid}
		path.timer.peer, path.timer.path = p, path
		p.paths = append(p.paths, path)
		if vid == prefer {
			p.current = path
		}
		// The first probes of all pairs are spread over the time between two.
		spread := f.cfg.Probe * time.Duration((pairHash(f.self, mac)+37*i)%256) / 256
		f.set(&path.timer, now.Add(spread))
	}
	return p
}

// pairHash is a small number that both ends of a pair arrive at.
func pairHash(a, b transport.MAC) (h int) {
	for i := range a {
		h += int(a[i]) + int(b[i])
	}
	return h
}

func (p *failoverPeer) path(vid transport.VID) *failoverPath {
	i, ok := slices.BinarySearchFunc(p.paths, vid, func(path *failoverPath, vid transport.VID) int { return int(path.vid) - int(vid) })
	if !ok {
		return nil
	}
	return p.paths[i]
}

// probe sends a probe by a path, and awaits its answer unless an earlier one's is.
func (f *Failover) probe(now monotime.Time, p *failoverPeer, path *failoverPath, out []FailoverStep) []FailoverStep {
	if path.linkDown {
		return out
	}
	p.number++
	path.last = p.number
	if !path.waiting {
		if path.misses == 0 && path.state != PathDown {
			path.first = p.number
		}
		path.waiting, path.excused = true, false
		f.set(&path.timer, now.Add(f.cfg.Timeout))
	}
	begin := len(f.bodies)
	f.bodies = p.appendAdvertisement(f.bodies)
	return append(out, FailoverStep{Peer: p.mac, VID: path.vid, Body: f.bodies[begin:len(f.bodies):len(f.bodies)]})
}

// probeAll probes all paths to a peer: to learn what they are worth, and to tell the peer what is new here.
func (f *Failover) probeAll(now monotime.Time, p *failoverPeer, out []FailoverStep) []FailoverStep {
	for _, path := range p.paths {
		out = f.probe(now, p, path, out)
	}
	return out
}

// awaits reports whether the answer to the probe of that number is news. By a path that is down any one is that was asked for since.
func (path *failoverPath) awaits(number uint32) bool {
	if path.linkDown || !path.waiting && path.misses == 0 && path.state != PathDown {
		return false
	}
	return int32(number-path.first) >= 0 && int32(path.last-number) >= 0
}

// becomes changes the state; what was awaited in the old one is not any more.
func (path *failoverPath) becomes(s PathState) {
	path.state, path.misses, path.waiting = s, 0, false
}

// answer is what an answer does.
func (f *Failover) answer(now monotime.Time, p *failoverPeer, path *failoverPath, out []FailoverStep) []FailoverStep {
	before := path.state
	p.noteAlive(now, path)
	switch {
	case before == PathDown:
		path.becomes(PathWaitToRestore)
		path.since = now
	case before == PathWaitToRestore && now.Sub(path.since) < f.cfg.WaitToRestore:
		path.misses, path.waiting = 0, false
	default:
		path.becomes(PathUp)
	}
	f.set(&path.timer, now.Add(f.pause(p, path)))
	if path.state != before && before != PathSuspect {
		return f.changed(now, p, MoveHeld, out)
	}
	if p.decides {
		return f.decide(now, p, MoveHeld, out) // what the peer said of its paths may have become too old
	}
	return out
}

// look is what each call begins with. If something was due before, this end has stood still, and what has come meanwhile is looked at bit by bit. So no
// pair is moved until as much time has passed again, up to a Timeout.
func (f *Failover) look(now monotime.Time) {
	f.bodies = f.bodies[:0]
	if at, ok := f.Deadline(); ok && at.Before(now) {
		f.holdOff = now.Add(min(now.Sub(at), f.cfg.Timeout))
	}
}

// late is what the end of a wait does: the probe is missed, unless this end itself stood still when the wait was to end. An answer may be here then
// that nobody has looked at yet: so the wait becomes longer by the time in which nobody looked, up to another Timeout. It does so once: an end that is
// late always is to find out, too.
func (f *Failover) late(now monotime.Time, p *failoverPeer, path *failoverPath, out []FailoverStep) []FailoverStep {
	if stood := now.Sub(path.timer.due); stood > 0 && !path.excused {
		path.excused = true
		f.set(&path.timer, now.Add(min(stood, f.cfg.Timeout)))
		return out
	}
	return f.miss(now, p, path, out)
}

// miss is what a missed probe does. A peer that stands still answers by no path: that is no reason to leave one. So a path counts as dead
// if the peer has answered by another one meanwhile; and if it answers by none, all do together, so that neither end takes the last to be given up for
// better than the others.
func (f *Failover) miss(now monotime.Time, p *failoverPeer, path *failoverPath, out []FailoverStep) []FailoverStep {
	path.waiting = false
	if path.state == PathDown {
		f.set(&path.timer, now.Add(f.pause(p, path)))
		return out
	}
	path.misses++
	if path.misses == 1 {
		path.aliveOnOtherPath = monotime.Time{}
	}
	switch {
	case path.misses >= f.cfg.Misses && f.answersBeside(now, path):
		f.giveUp(now, p, path)
		return f.changed(now, p, MoveMissed, out)
	case f.silent(p):
		for _, each := range p.paths {
			if each.state != PathDown {
				f.giveUp(now, p, each)
			}
		}
		return f.changed(now, p, MoveMissed, out)
	case path.state == PathUp:
		path.state = PathSuspect
	}
	path.since = now // one that was holding begins anew
	if path.misses == 1 {
		return f.probeAll(now, p, out)
	}
	return f.probe(now, p, path, out)
}

// giveUp takes a path for dead.
func (f *Failover) giveUp(now monotime.Time, p *failoverPeer, path *failoverPath) {
	path.becomes(PathDown)
	path.first = p.number + 1
	f.set(&path.timer, now.Add(f.pause(p, path)))
}

// noteAlive takes note that the peer has answered by a path, for those by which it has not.
func (p *failoverPeer) noteAlive(now monotime.Time, path *failoverPath) {
	for _, other := range p.paths {
		if other != path && other.misses > 0 && other.aliveOnOtherPath.IsZero() {
			other.aliveOnOtherPath = now
		}
	}
}

// answersBeside reports whether the peer has answered by another path since the first of the probes in a row was missed by this one (all were
// probed then), and could have answered by this one as well: a peer that goes on answers by one path after the other.
func (f *Failover) answersBeside(now monotime.Time, path *failoverPath) bool {
	return !path.aliveOnOtherPath.IsZero() && now.Sub(path.aliveOnOtherPath) >= f.cfg.Timeout/2
}

// silent reports whether the peer answers by no path any more.
func (f *Failover) silent(p *failoverPeer) bool {
	return !slices.ContainsFunc(p.paths, func(path *failoverPath) bool { return path.state != PathDown && path.misses < f.cfg.Misses })
}

// pause is the time until a path's next probe. One that is holding must not be able to go down and come back in between.
func (f *Failover) pause(p *failoverPeer, path *failoverPath) (d time.Duration) {
	switch {
	case path.state == PathWaitToRestore:
		return min(f.cfg.Probe, f.settling())
	case path == p.current || p.current.state != PathUp:
		return f.cfg.Probe
	}
	return f.cfg.StandbyInterval
}
