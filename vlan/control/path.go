package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// PathState is the state of the path to a peer by a VID. The better ones come first.
type PathState uint8

// The states: see Failover.
const (
	PathUp            PathState = iota // it answers
	PathSuspect                        // it has missed probes, not too many yet
	PathWaitToRestore                  // it was down and answers again, not for long enough yet
	PathDown                           // it does not answer, or its link is down
)

// String names s: up, suspect, wait-to-restore or down.
func (s PathState) String() string { return word(s, "up", "suspect", "wait-to-restore", "down") }

// MarshalText makes states in JSON readable.
func (s PathState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// peer is another station, and the paths to it.
type peer struct {
	mac     transport.MAC
	decides bool // this end decides for the pair
	prefer  transport.VID
	paths   []*path // by VID
	current *path
	number  uint32 // of the last probe to it
	timer   timer  // for a decision that is put off

	notBefore monotime.Time // a decision made in the hold-off waits until then
	putOff    int           // times that it was put off: up to Misses, for an end that is late always

	// What the peer has advertised:
	heard        bool
	incarnation  uint32
	newest       uint32        // number of the probe
	former       uint32        // incarnation before this one
	formerNewest uint32        // number that its probes have reached when this one was heard first
	begunAt      monotime.Time // when that was
	heardAt      monotime.Time
	choice       transport.VID // of the deciding end; 0: none yet
	ownUntil     monotime.Time // until when the VID that SetPeer gave here counts more than an old choice
}

// path is the path to a peer by one VID.
type path struct {
	peer     *peer
	vid      transport.VID
	state    PathState
	linkDown bool
	waiting  bool   // for an answer, until the timer is due
	excused  bool   // the wait was made longer, as this end stood still in it
	misses   int    // in a row
	first    uint32 // answers to probes from this number on still count
	last     uint32 // number of the last probe
	timer    timer  // for the next probe, or for its timeout

	aliveOnOtherPath monotime.Time // first answer by another path since the first of the misses, or zero
	since            monotime.Time // of WaitToRestore
	hold             time.Duration // how long WaitToRestore lasts; longer for a path that flaps
	answered         bool          // it was up, and not only taken for it
	restored         monotime.Time // when it was up again, or zero
	reported         PathState     // the peer's state of it
	reportedSince    monotime.Time // of its being reported as WaitToRestore
}

func (f *Failover) newPeer(mac transport.MAC, prefer transport.VID) *peer {
	p := &peer{mac: mac, decides: f.self.Compare(mac) < 0, prefer: prefer}
	p.number = f.tick()
	p.timer.peer = p
	for i, vid := range f.cfg.VIDs {
		path := &path{peer: p, vid: vid, hold: f.cfg.WaitToRestore}
		path.timer.peer, path.timer.path = p, path
		p.paths = append(p.paths, path)
		if vid == prefer {
			p.current = path
		}
		if f.down[vid] { // SetLink begins to probe it
			path.linkDown, path.state = true, PathDown
			f.revision++
			continue
		}
		// The first probes of all pairs are spread over the time between two.
		spread := f.cfg.Probe * time.Duration((pairHash(f.self, mac)+37*i)%256) / 256
		f.set(&path.timer, f.now.Add(spread))
	}
	return p
}

// tick is the number of a probe now, or less than it. Numbers keep up with time: so they are higher
// than those before, modulo 2^32, if a peer is removed and set again in one incarnation, even after
// the 25 days in which the number of a peer that is probed ten times a second would fall behind.
func (f *Failover) tick() uint32 { return uint32(f.now.Since() / time.Millisecond) }

// pairHash is a small number that is the same at both ends of a pair.
func pairHash(a, b transport.MAC) (h int) {
	for i := range a {
		h += int(a[i]) + int(b[i])
	}
	return h
}

// path returns the path by a VID, or nil.
func (p *peer) path(vid transport.VID) *path {
	i, ok := slices.BinarySearchFunc(p.paths, vid, func(path *path, vid transport.VID) int {
		return cmp.Compare(path.vid, vid)
	})
	if !ok {
		return nil
	}
	return p.paths[i]
}

// probe sends a probe by a path, and awaits its answer unless an earlier one's is awaited.
func (f *Failover) probe(path *path) {
	if path.linkDown {
		return
	}
	p := path.peer
	p.number++
	if tick := f.tick(); int32(tick-p.number) > 0 {
		p.number = tick
	}
	path.last = p.number
	if int32(p.number-path.first) > answersFor { // it has been down for weeks
		path.first = p.number - answersFor
	}
	if !path.waiting {
		if path.misses == 0 && path.state != PathDown {
			path.first = p.number
		}
		path.waiting, path.excused = true, false
		f.set(&path.timer, f.now.Add(f.cfg.Timeout))
	}
	begin := len(f.bodies)
	f.bodies = p.appendAdvertisement(f.bodies)
	body := f.bodies[begin:len(f.bodies):len(f.bodies)]
	f.steps = append(f.steps, FailoverStep{Peer: p.mac, VID: path.vid, Body: body})
}

// answersFor is how many numbers of probes, a millisecond each, an answer may be old on a path that
// is down. Numbers are compared modulo 2^32: of those of 25 days ago none is later.
const answersFor = 1 << 30

// probeAll probes all paths to a peer: to learn their states, and to advertise what is new.
func (f *Failover) probeAll(p *peer) {
	for _, path := range p.paths {
		f.probe(path)
	}
}

// awaits reports whether the answer to a probe tells something new. On a path that is down, each
// answer to a probe since then does, if it is of the last answersFor.
func (path *path) awaits(number uint32) bool {
	if path.linkDown || !path.waiting && path.misses == 0 && path.state != PathDown {
		return false
	}
	return int32(number-path.first) >= 0 && int32(path.last-number) >= 0
}

// enter changes the state, and ends the wait of the old one. A path that goes down soon after it
// was restored flaps: it has to hold for twice as long the next time, so that its pair is not moved
// to and fro. One that answers for the first time, as its peer has begun late, was not restored.
// Source: route flap damping, RFC 2439; here with BFD's states.
func (f *Failover) enter(path *path, s PathState) {
	if s == PathDown && path.state <= PathSuspect {
		if !path.restored.IsZero() && f.now.Sub(path.restored) < flapTimes*path.hold {
			path.hold = min(2*path.hold, maxHold*f.cfg.WaitToRestore)
		} else {
			path.hold = f.cfg.WaitToRestore
		}
	}
	if s == PathUp {
		if path.state == PathWaitToRestore && path.answered {
			path.restored = f.now
		}
		path.answered = true
	}
	if s != path.state && !(s == PathUp && path.state == PathSuspect) {
		f.revision++
	}
	path.state, path.misses, path.waiting = s, 0, false
}

const (
	// flapTimes is the time for which a path must be up after it was restored, in times of its
	// hold, in order not to count as one that flaps.
	flapTimes = 8
	// maxHold bounds the hold of a path that flaps, in times of WaitToRestore.
	maxHold = 16
)

// answer handles an answer by a path.
func (f *Failover) answer(path *path) {
	p, before := path.peer, path.state
	for _, other := range p.paths {
		if other != path && other.misses > 0 && other.aliveOnOtherPath.IsZero() {
			other.aliveOnOtherPath = f.now
		}
	}
	switch {
	case before == PathDown:
		f.enter(path, PathWaitToRestore)
		path.since = f.now
	case before == PathWaitToRestore && f.now.Sub(path.since) < path.hold:
		path.misses, path.waiting = 0, false
	default:
		f.enter(path, PathUp)
	}
	f.set(&path.timer, f.now.Add(f.pause(path)))
	if path.state != before && before != PathSuspect {
		f.changed(p, MoveHeld)
	} else if p.decides {
		f.decide(p, MoveHeld) // the peer's report on its paths may have become too old
	}
}

// timeout ends the wait for an answer: the probe is missed, unless this end itself stood still when
// the wait was to end. An answer may be here then that is not handled yet. So the wait becomes
// longer by the time for which this end stood still, up to another Timeout; but only once, so that
// an end that is always late finds out, too.
func (f *Failover) timeout(path *path) {
	if stood := f.now.Sub(path.timer.due); stood > 0 && !path.excused {
		path.excused = true
		f.set(&path.timer, f.now.Add(min(stood, f.cfg.Timeout)))
		return
	}
	f.miss(path)
}

// miss handles a missed probe. A peer that stands still answers by no path, which is no reason to
// leave one. So a path counts as dead if the peer has answered by another one meanwhile. If the
// peer answers by none, all go down together, so that neither end takes the last one to go down for
// the best.
func (f *Failover) miss(path *path) {
	path.waiting = false
	if path.state == PathDown {
		f.set(&path.timer, f.now.Add(f.pause(path)))
		return
	}
	p := path.peer
	path.misses++
	if path.misses == 1 {
		path.aliveOnOtherPath = monotime.Time{}
	}
	switch {
	case path.misses >= f.cfg.Misses && f.peerAlive(path):
		f.giveUp(path)
		f.changed(p, MoveMissed)
		return
	case f.silent(p):
		for _, each := range p.paths {
			if each.state != PathDown {
				f.giveUp(each)
			}
		}
		f.changed(p, MoveMissed)
		return
	case path.state == PathUp:
		path.state = PathSuspect
	}
	path.since = f.now // WaitToRestore begins anew
	if path.misses == 1 {
		f.probeAll(p)
	} else {
		f.probe(path)
	}
}

// giveUp declares a path dead.
func (f *Failover) giveUp(path *path) {
	f.enter(path, PathDown)
	path.first = path.peer.number + 1
	f.set(&path.timer, f.now.Add(f.pause(path)))
}

// peerAlive reports whether the peer has answered by another path since the first of the misses in
// a row by this one (all were probed then), and long enough ago, half a Timeout, to have answered
// by this one as well: a peer that wakes up answers by one path after the other.
func (f *Failover) peerAlive(path *path) bool {
	return !path.aliveOnOtherPath.IsZero() && f.now.Sub(path.aliveOnOtherPath) >= f.cfg.Timeout/2
}

// silent reports whether the peer answers by no path any more.
func (f *Failover) silent(p *peer) bool {
	return !slices.ContainsFunc(p.paths, func(path *path) bool {
		return path.state != PathDown && path.misses < f.cfg.Misses
	})
}

// pause is the time until a path's next probe. A path in WaitToRestore must not be able to go down
// and come back in between.
func (f *Failover) pause(path *path) time.Duration {
	current := path.peer.current
	switch {
	case path.state == PathWaitToRestore:
		return min(f.cfg.Probe, f.settling())
	case path == current || current.state != PathUp:
		return f.cfg.Probe
	}
	return f.cfg.StandbyInterval
}
