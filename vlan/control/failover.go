package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Failover moves pairs of stations away from VLANs that carry nothing any more, and back when they
// have recovered for a while.
//
// It probes the paths to each peer, one per VID. The peer's endpoint answers a probe by the same
// VID, which tests both directions. So the two ends of a pair measure the same thing, but at
// different times, and a probe is lost by chance now and then. They must use one VID all the same,
// since switches learn addresses per VID. Therefore the end with the lower address decides, and the
// other follows: each probe carries an advertisement of its sender's choice, and of the state of
// each path. What is new is advertised by all VIDs at once. So the follower hears of the decision
// by any VID that is alive, one journey after it was made; where none is alive, it does not matter.
//
// Failover is a core: time and messages are its arguments, and it returns the steps to take. It
// serves one link of a node; a node with several links has one for each.
//
// A path is in one of four states. Up and Down are those of BFD (RFC 5880 §6.2). A Suspect path is
// one within BFD's detection time. WaitToRestore is BFD's Init with a timer: the wait to restore of
// ITU-T G.8031.
//
//	state          event                       next           does
//	Up             answer                      Up             -
//	Up             probe missed                Suspect        probes all paths to the peer at once
//	Suspect        answer                      Up             -
//	Suspect        probe missed                Suspect        probes the path again at once
//	Suspect        Misses probes missed, and
//	               an answer by another path   Down           decides
//	Suspect        Misses missed by all paths  Down           all paths go down; decides
//	WaitToRestore  answer                      WaitToRestore  -
//	WaitToRestore  answer, WaitToRestore after
//	               the first and the last miss Up             decides (flapping paths: see enter)
//	WaitToRestore  probe missed                WaitToRestore  probes all paths to the peer at once
//	WaitToRestore  Misses probes missed, as
//	               above                       Down           decides
//	Down           answer                      WaitToRestore  decides
//	Down           probe missed                Down           -
//	any            its link is down            Down           decides; probes no more
//	Down           its link is up              Down           probes the path at once
//
// The deciding end decides as the comment of choose says; the other end tells it what is new.
//
// A process on a busy machine may stand still for some 100 ms. It does not take that for the
// silence of its paths: if Advance is called late, waits that were to end before become longer by
// that. Its peers hear nothing from it by any path, and do not leave one for that.
//
// Source: VFREC §2.1 (several paths by VLANs), §2.3 (one VID for both directions). To watch paths
// is ours.
type Failover struct {
	cfg     FailoverConfig
	self    transport.MAC
	peers   map[transport.MAC]*peer
	down    map[transport.VID]bool // whose links are down
	timers  timers
	holdOff monotime.Time // until when no pair is moved: see begin
	// revision grows with each change of a path's state other than to suspect and back.
	revision uint64

	// Of the call in progress:
	now    monotime.Time
	steps  []FailoverStep
	bodies []byte
}

// FailoverStep is something to do: send a probe, or move a pair to another VID.
type FailoverStep struct {
	Peer transport.MAC
	VID  transport.VID // to probe, or to move to
	// Body is the body of the probe, valid until the next call. It is nil where the step is a move.
	Body []byte
	// Of a move:
	From   transport.VID
	Reason MoveReason
	// Alive says that the old VID still carries frames, so that a fence can be had.
	Alive bool
}

// NewFailover returns the failover of the link with address self. It has no peers yet. The error
// names a field of cfg.
func NewFailover(self transport.MAC, cfg FailoverConfig) (*Failover, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Failover{
		cfg: cfg, self: self, peers: make(map[transport.MAC]*peer), down: make(map[transport.VID]bool),
	}, nil
}

// begin starts a call. If something was due before now, this end has stood still, and messages that
// came meanwhile are handled one by one. So no pair is moved until as much time has passed again,
// up to a Timeout.
func (f *Failover) begin(now monotime.Time, out []FailoverStep) {
	f.now, f.steps, f.bodies = now, out, f.bodies[:0]
	if at, ok := f.Deadline(); ok && at.Before(now) {
		f.holdOff = now.Add(min(now.Sub(at), f.cfg.Timeout))
	}
}

// SetPeer begins to watch a peer. The pair uses the VID prefer while that is up. For a peer that is
// watched already, SetPeer moves the pair to another preferred VID: both ends are to be told.
// Errors: a VID that is not among the configured ones; our own address.
func (f *Failover) SetPeer(
	now monotime.Time, mac transport.MAC, prefer transport.VID, out []FailoverStep,
) ([]FailoverStep, error) {
	f.begin(now, out)
	if !slices.Contains(f.cfg.VIDs, prefer) {
		return out, fmt.Errorf("failover of %v: VID %d is not watched (want one of %v)", mac, prefer, f.cfg.VIDs)
	}
	if mac == f.self || mac.IsMulticast() {
		return out, fmt.Errorf("failover of %v: not the address of another station", mac)
	}
	p := f.peers[mac]
	switch {
	case p == nil:
		p = f.newPeer(mac, prefer)
		if f.peers[mac] = p; p.current.linkDown {
			f.changed(p, MoveLink)
		}
	case p.prefer != prefer:
		p.prefer = prefer
		if path := p.path(prefer); f.rank(path) <= PathSuspect {
			if !p.decides {
				p.ownUntil = now.Add(f.cfg.WaitToRestore)
			}
			f.move(path, MoveTold)
		}
	}
	return f.steps, nil
}

// Adopt takes over that the pair with a peer uses another VID than it prefers, because its own was
// down when an earlier Failover of this node ended: the preferred path counts as down until it has
// held. Call it right after SetPeer, whose steps its own replace: of a pair that is adopted nothing
// else was chosen. It ignores peers and VIDs that are not watched.
func (f *Failover) Adopt(
	now monotime.Time, mac transport.MAC, vid transport.VID, out []FailoverStep,
) []FailoverStep {
	f.begin(now, out)
	p := f.peers[mac]
	if p == nil || p.path(vid) == nil || vid == p.prefer {
		return out
	}
	prefer := p.path(p.prefer)
	p.current = p.path(vid)
	f.giveUp(prefer)
	if prefer.linkDown || p.current.linkDown {
		f.changed(p, MoveLink)
	}
	return f.steps
}

// Revision grows when the state of a path changes, other than to suspect and back.
func (f *Failover) Revision() uint64 { return f.revision }

// RemovePeer ends the watch over a peer.
func (f *Failover) RemovePeer(mac transport.MAC) {
	if p := f.peers[mac]; p != nil {
		f.drop(&p.timer)
		for _, path := range p.paths {
			f.drop(&path.timer)
		}
		delete(f.peers, mac)
	}
}

// Answered takes the answer to a probe by a VID; body is the probe's. It ignores answers to unknown
// probes.
func (f *Failover) Answered(
	now monotime.Time, mac transport.MAC, vid transport.VID, body []byte, out []FailoverStep,
) []FailoverStep {
	f.begin(now, out)
	var ad advertisement
	if p := f.peers[mac]; p != nil && ad.parse(body) {
		if path := p.path(vid); path != nil && path.awaits(ad.number) {
			f.answer(path)
		}
	}
	return f.steps
}

// overtakes is how late a probe may come at most that another one has overtaken. One with a lower
// number that comes later is of a peer that was not heard for so long that the numbers came round.
const overtakes = time.Hour

// Heard takes a peer's probe: its body, and the peer's incarnation, a number that changes each time
// that the peer begins anew. It ignores bodies that are not failover's, and probes that a newer one
// has overtaken.
func (f *Failover) Heard(
	now monotime.Time, mac transport.MAC, incarnation uint32, body []byte, out []FailoverStep,
) []FailoverStep {
	f.begin(now, out)
	var ad advertisement
	p := f.peers[mac]
	if p == nil || !ad.parse(body) {
		return out
	}
	if p.isOvertaken(now, incarnation, ad.number) {
		return out
	}
	if p.heard && p.incarnation != incarnation {
		p.former, p.begunAt = p.incarnation, now
		p.formerNewest = p.newest + uint32(now.Sub(p.heardAt)/time.Millisecond)
	}
	p.heard, p.incarnation, p.newest, p.heardAt = true, incarnation, ad.number, now
	p.adopt(now, &ad)
	if p.decides {
		f.decide(p, MoveReported)
	} else {
		f.follow(p, ad.choice)
	}
	return f.steps
}

// SetLink reports that the link by which frames of some VIDs leave went down or up: of all VIDs, if
// none are named. It counts for peers that come later, too.
func (f *Failover) SetLink(now monotime.Time, up bool, out []FailoverStep, vids ...transport.VID) []FailoverStep {
	f.begin(now, out)
	for _, vid := range f.cfg.VIDs {
		if len(vids) == 0 || slices.Contains(vids, vid) {
			f.down[vid] = !up
		}
	}
	for _, p := range f.sorted() {
		changed := false
		for _, path := range p.paths {
			if path.linkDown == !up || len(vids) > 0 && !slices.Contains(vids, path.vid) {
				continue
			}
			changed, path.linkDown = true, !up
			f.enter(path, PathDown)
			path.first = p.number + 1
			f.drop(&path.timer)
			if up {
				f.probe(path)
			}
		}
		if changed && !up {
			f.changed(p, MoveLink)
		}
	}
	return f.steps
}

// Advance does what is due. Call it no later than Deadline.
func (f *Failover) Advance(now monotime.Time, out []FailoverStep) []FailoverStep {
	f.begin(now, out)
	for len(f.timers) > 0 && !f.timers[0].due.After(now) {
		t := f.timers[0]
		f.drop(t)
		switch {
		case t.path == nil:
			f.decide(t.peer, MoveMissed)
		case t.path.waiting:
			f.timeout(t.path)
		default:
			f.probe(t.path)
		}
	}
	return f.steps
}

// Deadline returns when Advance is to be called at the latest. ok is false if there is nothing to
// wait for.
func (f *Failover) Deadline() (at monotime.Time, ok bool) {
	if len(f.timers) == 0 {
		return monotime.Time{}, false
	}
	return f.timers[0].due, true
}

// VID returns the VID of the pair with a peer. ok is false for peers that are not watched.
func (f *Failover) VID(mac transport.MAC) (vid transport.VID, ok bool) {
	p := f.peers[mac]
	if p == nil {
		return 0, false
	}
	return p.current.vid, true
}

// Default returns the VID that frames to groups and to all should have, which prefer one VID and
// have another one now: the VID by which most peers are reached. A path counts that is up, or that
// its pair uses and that is not down, so that such frames move and go back with the pairs. Of
// equals the preferred VID comes first, then the one that they have, then the lowest. While no peer
// is reached nothing changes.
func (f *Failover) Default(prefer, now transport.VID) transport.VID {
	if len(f.peers) == 0 {
		return prefer
	}
	reached, most := make(map[transport.VID]int), 0
	for _, p := range f.peers {
		for _, path := range p.paths {
			if s := f.rank(path); s <= PathSuspect || s != PathDown && path == p.current {
				reached[path.vid]++
				most = max(most, reached[path.vid])
			}
		}
	}
	if most == 0 {
		return now
	}
	for _, vid := range append([]transport.VID{prefer, now}, f.cfg.VIDs...) {
		if reached[vid] == most {
			return vid
		}
	}
	return now
}

// IsDown reports whether a peer is watched, and its path by a VID carries nothing.
func (f *Failover) IsDown(mac transport.MAC, vid transport.VID) bool {
	p := f.peers[mac]
	if p == nil {
		return false
	}
	path := p.path(vid)
	return path != nil && f.rank(path) == PathDown
}

// PathStatus is the state of a path.
type PathStatus struct {
	Peer      transport.MAC `json:"peer"`
	VID       transport.VID `json:"vid"`
	State     PathState     `json:"state"`
	Used      bool          `json:"used"`
	Preferred bool          `json:"preferred"`
}

// Paths returns all paths, by peer and VID.
func (f *Failover) Paths() (all []PathStatus) {
	for _, p := range f.sorted() {
		for _, path := range p.paths {
			all = append(all, PathStatus{p.mac, path.vid, path.state, path == p.current, path.vid == p.prefer})
		}
	}
	return all
}

// sorted returns the peers by address.
func (f *Failover) sorted() []*peer {
	return slices.SortedFunc(maps.Values(f.peers), func(a, b *peer) int { return a.mac.Compare(b.mac) })
}
