package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Failover moves pairs of stations away from VLANs that carry nothing any more, and back when they have held for a while.
//
// It probes the paths to each peer, one per VID: with a probe that the peer's endpoint answers by the same VID, which tests both
// directions. So the two ends of a pair measure the same thing; but they do it at different times, and chance loses a probe here and
// there. They need to use one VID all the same, for switches learn addresses per VID. Therefore one of them decides, the one with the lower
// address, and the other follows: each probe carries its sender's choice, and what it thinks of each path. News is sent by all VIDs
// at once. So the follower hears the decision by any VID that is alive, one journey later than it was made; and where none is
// alive, it does not matter.
//
// Failover is a core: it is told the time and what came, and returns what to do. It is for one link of a node: a node with several has one
// for each.
//
// Each path is in one of four states:
//
//	state    event                      next     does
//	Up       answer                     Up       -
//	Up       probe missed               Suspect  probes all paths to the peer at once
//	Suspect  answer                     Up       -
//	Suspect  probe missed               Suspect  probes it again at once
//	Suspect  Misses probes missed, and
//	         an answer by another path  Down     decides
//	Suspect  Misses missed by all paths Down     so do all; decides
//	Holding  answer                     Holding  -
//	Holding  answer, Hold after the
//	         first and the last miss    Up       decides
//	Holding  probe missed               Holding  probes all paths to the peer at once
//	Holding  Misses probes missed, as
//	         above                      Down     decides
//	Down     answer                     Holding  decides
//	Down     probe missed               Down     -
//	any      its link is down           Down     decides; probes no more
//	Down     its link is up             Down     probes it at once
//
// "decides" is what the deciding end does; the other one tells it. See choose for how.
//
// An end that stands still, as a process on a busy machine may for some 100 ms, does not take that for the silence of its paths: if Advance is called
// late, waits that were to end before are longer by that. And its peers do not, either: they hear nothing of it by any path.
//
// Source: VFREC §2.1 (several paths by VLANs), §2.3 (one VID for both directions); that paths are watched is ours.
type Failover struct {
	cfg     FailoverConfig
	self    transport.MAC
	peers   map[transport.MAC]*failoverPeer
	timers  timers
	bodies  []byte        // of the steps of the call in progress
	holdOff monotime.Time // until when no pair is moved: see look
}

// FailoverConfig says what is watched, and how closely. Zero durations and numbers stand for the defaults.
type FailoverConfig struct {
	// VIDs are those that pairs may be moved to: 1 to MaxFailoverVIDs of them. All ends must have the same.
	VIDs []transport.VID
	// Probe is the time between two probes of the VID in use, and of all while that is not well. Spare is that of the others.
	Probe, StandbyInterval time.Duration
	// Timeout is how long an answer is awaited before its probe counts as missed, and Misses how many missed in a row are too many.
	// An answer that comes later, but before the path is given up, counts as well. A path is not given up before its peer has answered by another one
	// since the first miss, or has missed as many by all.
	Timeout time.Duration
	Misses  int
	// Hold is how long a path must have answered without a miss before it counts as well again.
	WaitToRestore time.Duration
}

// Defaults of FailoverConfig: a dead path is left after 150 to 250 ms, and a node that has 15 peers on 4 VIDs sends 200 probes a second.
const (
	DefaultProbe   = 100 * time.Millisecond
	DefaultSpare   = time.Second
	DefaultTimeout = 50 * time.Millisecond // a peer that must be woken on a busy machine takes some ms
	DefaultMisses  = 3
	DefaultHold    = 5 * time.Second
	// MaxFailoverVIDs is as many as fit a short frame's worth of probe.
	MaxFailoverVIDs = 64
)

func (c *FailoverConfig) setDefaults() {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Probe, DefaultProbe}, {&c.StandbyInterval, DefaultSpare}, {&c.Timeout, DefaultTimeout}, {&c.WaitToRestore, DefaultHold}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if c.Misses == 0 {
		c.Misses = DefaultMisses
	}
	c.StandbyInterval = max(c.StandbyInterval, c.Probe)
}

func (c *FailoverConfig) validate() error {
	if n := len(c.VIDs); n < 1 || n > MaxFailoverVIDs {
		return fmt.Errorf("failover: %d VIDs (want 1 to %d)", n, MaxFailoverVIDs)
	}
	for i, vid := range c.VIDs {
		if vid < 1 || vid > transport.MaxVID {
			return fmt.Errorf("failover: %w: VID %d (want 1 to %d)", transport.ErrBadTag, vid, transport.MaxVID)
		}
		if slices.Contains(c.VIDs[:i], vid) {
			return fmt.Errorf("failover: VID %d is listed twice", vid)
		}
	}
	if c.Probe < 0 || c.StandbyInterval < 0 || c.Timeout < 0 || c.WaitToRestore < 0 || c.Misses < 0 {
		return fmt.Errorf("failover: Probe %v, Spare %v, Timeout %v, Hold %v, Misses %d (want none negative)", c.Probe, c.StandbyInterval, c.Timeout, c.WaitToRestore, c.Misses)
	}
	return nil
}

// FailoverStep is something to do: send a probe, or move a pair to another VID.
type FailoverStep struct {
	Peer transport.MAC
	VID  transport.VID // to probe, or to move to
	// Body is what the probe carries, valid until the next call. It is nil where the step is a move.
	Body []byte
	// Of a move:
	From   transport.VID
	Reason MoveReason
	// Alive says that the VID that is left carries frames still, so that a fence may be had.
	Alive bool
}

// NewFailover makes the failover of the link with address self. It has no peers yet. Errors: a field of cfg.
func NewFailover(self transport.MAC, cfg FailoverConfig) (*Failover, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	cfg.VIDs = slices.Clone(cfg.VIDs)
	slices.Sort(cfg.VIDs)
	return &Failover{cfg: cfg, self: self, peers: make(map[transport.MAC]*failoverPeer)}, nil
}

// SetPeer watches a peer from now on, whose pair with us is to use the VID prefer while that is well. For a peer that is watched already,
// it moves the pair to another preferred VID: both ends are to be told. Errors: a VID that is not among the configured ones, our own address.
func (f *Failover) SetPeer(now monotime.Time, peer transport.MAC, prefer transport.VID, out []FailoverStep) ([]FailoverStep, error) {
	f.look(now)
	if !slices.Contains(f.cfg.VIDs, prefer) {
		return out, fmt.Errorf("failover of %v: VID %d is not watched (want one of %v)", peer, prefer, f.cfg.VIDs)
	}
	if peer == f.self || peer.IsMulticast() {
		return out, fmt.Errorf("failover of %v: not the address of another station", peer)
	}
	p := f.peers[peer]
	if p == nil {
		f.peers[peer] = f.newPeer(now, peer, prefer)
		return out, nil
	}
	if p.prefer == prefer {
		return out, nil
	}
	p.prefer = prefer
	if path := p.path(prefer); f.rank(now, p, path) <= PathSuspect {
		if !p.decides {
			p.ownUntil = now.Add(f.cfg.WaitToRestore)
		}
		return f.move(now, p, path, MoveTold, out), nil
	}
	return out, nil
}

// RemovePeer watches a peer no longer.
func (f *Failover) RemovePeer(peer transport.MAC) {
	if p := f.peers[peer]; p != nil {
		f.drop(&p.timer)
		for _, path := range p.paths {
			f.drop(&path.timer)
		}
		delete(f.peers, peer)
	}
}

// Answered takes note that a probe was answered by a VID; body is what came back. Answers to nobody's probes are ignored.
func (f *Failover) Answered(now monotime.Time, peer transport.MAC, vid transport.VID, body []byte, out []FailoverStep) []FailoverStep {
	f.look(now)
	p := f.peers[peer]
	if p == nil {
		return out
	}
	path, news := p.path(vid), advertisement{}
	if path == nil || !news.parse(body) || !path.awaits(news.number) {
		return out
	}
	return f.answer(now, p, path, out)
}

// Heard takes note of a peer's probe: of its body, and the peer's life, a number that is another one each time that it begins anew.
// Bodies that are not failover's are ignored.
func (f *Failover) Heard(now monotime.Time, peer transport.MAC, life uint32, body []byte, out []FailoverStep) []FailoverStep {
	f.look(now)
	p, news := f.peers[peer], advertisement{}
	if p == nil || !news.parse(body) {
		return out
	}
	if p.heard && p.life == life && int32(news.number-p.newest) <= 0 {
		return out // something newer has come before it
	}
	p.heard, p.life, p.newest, p.heardAt = true, life, news.number, now
	p.noteReport(now, &news)
	if p.decides {
		return f.decide(now, p, MoveReported, out)
	}
	return f.follow(now, p, news.choice, out)
}

// SetLink takes note that the link went down or up by which frames of some VIDs leave: of all of them, if none are named.
func (f *Failover) SetLink(now monotime.Time, up bool, out []FailoverStep, vids ...transport.VID) []FailoverStep {
	f.look(now)
	for _, p := range f.sorted() {
		changed := false
		for _, path := range p.paths {
			if path.linkDown == !up || len(vids) > 0 && !slices.Contains(vids, path.vid) {
				continue
			}
			changed, path.linkDown = true, !up
			path.becomes(PathDown)
			path.first = p.number + 1
			f.drop(&path.timer)
			if up {
				out = f.probe(now, p, path, out)
			}
		}
		if changed && !up {
			out = f.changed(now, p, MoveLink, out)
		}
	}
	return out
}

// Advance does what is due. Call it no later than Deadline.
func (f *Failover) Advance(now monotime.Time, out []FailoverStep) []FailoverStep {
	f.look(now)
	for len(f.timers) > 0 && !f.timers[0].due.After(now) {
		t := f.timers[0]
		f.drop(t)
		switch {
		case t.path == nil:
			out = f.decide(now, t.peer, MoveMissed, out)
		case t.path.waiting:
			out = f.late(now, t.peer, t.path, out)
		default:
			out = f.probe(now, t.peer, t.path, out)
		}
	}
	return out
}

// Deadline returns when Advance is to be called at the latest. ok is false if there is nothing to wait for.
func (f *Failover) Deadline() (at monotime.Time, ok bool) {
	if len(f.timers) == 0 {
		return monotime.Time{}, false
	}
	return f.timers[0].due, true
}

// VID returns what the pair with a peer uses now. ok is false for peers that are not watched.
func (f *Failover) VID(peer transport.MAC) (vid transport.VID, ok bool) {
	p := f.peers[peer]
	if p == nil {
		return 0, false
	}
	return p.current.vid, true
}

// PathStatus is what is thought of a path.
type PathStatus struct {
	Peer      transport.MAC `json:"peer"`
	VID       transport.VID `json:"vid"`
	State     PathState     `json:"state"`
	Used      bool          `json:"used"`
	Preferred bool          `json:"preferred"`
}

// Paths returns all paths, by peer and VID.
func (f *Failover) Paths() []PathStatus {
	var all []PathStatus
	for _, p := range f.sorted() {
		for _, path := range p.paths {
			all = append(all, PathStatus{p.mac, path.vid, path.state, path == p.current, path.vid == p.prefer})
		}
	}
	return all
}

// sorted returns the peers by address.
func (f *Failover) sorted() []*failoverPeer {
	all := make([]*failoverPeer, 0, len(f.peers))
	for _, p := range f.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *failoverPeer) int { return a.mac.Compare(b.mac) })
	return all
}
