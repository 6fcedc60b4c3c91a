package failover

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// drainTimeout bounds a drain, once it has its turn among those of the endpoint: a VID that does
// not answer for so long is about to be given up.
const drainTimeout = 200 * time.Millisecond

// Driver watches paths until Close. All methods may be called from any goroutine.
type Driver struct {
	ep     *mcd.Endpoint
	cfg    Config
	probes chan *mcd.Probe // received; nil: the deadline may be another one
	unhook func()          // ends the endpoint's calls of onProbe
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup // goroutines: run, and two for each move behind a drain

	mu       sync.Mutex // guards what follows; taken before locks of the routes and of the endpoint
	core     *control.Failover
	peers    map[transport.MAC]*peer       // that are watched
	linkDown map[transport.VID]bool        // as the latest probe's error says
	told     map[pathKey]control.PathState // by OnPaths; a path that is not in it is up
	revision uint64                        // of the core, as far as told goes
	byPaths  uint64                        // revision of the core by which the default route was chosen
	// defaultHeld is until when an override of the default route that an earlier driver has left
	// stays: this one takes all paths for up until it has probed them.
	defaultHeld monotime.Time
}

// pathKey names a path.
type pathKey struct {
	peer transport.MAC
	vid  transport.VID
}

// peer is a node whose paths are watched.
type peer struct {
	node       mcd.NodeID
	preferred  transport.VID
	overridden transport.VID // the override that is not restored yet; 0: none
	draining   int           // moves behind a drain, under way
}

// Start watches the paths of an endpoint's link, to all nodes of its table. Errors: a field of cfg.
func Start(ep *mcd.Endpoint, cfg Config) (*Driver, error) {
	if err := cfg.validate(ep); err != nil {
		return nil, err
	}
	core, err := control.NewFailover(ep.MAC(cfg.NIC), cfg.Failover)
	if err != nil {
		return nil, err
	}
	d := &Driver{
		ep: ep, cfg: cfg, core: core, probes: make(chan *mcd.Probe, maxProbes),
		peers: make(map[transport.MAC]*peer), linkDown: make(map[transport.VID]bool),
		told: make(map[pathKey]control.PathState),
	}
	if inForce, preferred := cfg.Routes.VIDs(transport.Broadcast); inForce != preferred {
		d.defaultHeld = clock.Now().Add(cmp.Or(cfg.Failover.WaitToRestore, control.DefaultWaitToRestore))
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.unhook = ep.WatchProbes(d.onProbe)
	d.ended.Go(d.run) // until d.ctx ends, by Close, which waits for it
	if m, ok := cfg.Routes.(*managerRoutes); ok {
		m.ShowFailover(d.shown)
	}
	return d, nil
}

// Close ends the watch. Overrides stay: a restored route might lead to a path that is down. See
// Restore.
func (d *Driver) Close() error {
	d.unhook()
	d.mu.Lock()
	d.cancel() // with mu held: nothing begins to move from then on
	d.mu.Unlock()
	d.ended.Wait()
	if m, ok := d.cfg.Routes.(*managerRoutes); ok {
		m.ShowFailover(nil)
	}
	return nil
}

// shown is what a manager tells of its failover.
func (d *Driver) shown() api.Failover {
	f := api.Failover{Watching: true}
	for _, p := range d.Paths() {
		f.Paths = append(f.Paths, api.Path{
			Peer: p.Peer, VID: p.VID, State: p.State.String(), Used: p.Used, Preferred: p.Preferred,
		})
	}
	return f
}

// Restore removes all overrides, as before another Driver begins with other VIDs or nodes. The
// Driver must be closed. The error is that of the first route that could not be restored.
func (d *Driver) Restore() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	for mac, p := range d.peers {
		if p.overridden != 0 {
			first = cmp.Or(first, d.cfg.Routes.Restore(mac, "no longer watched"))
			p.overridden = 0
		}
	}
	if inForce, preferred := d.cfg.Routes.VIDs(transport.Broadcast); inForce != preferred {
		first = cmp.Or(first, d.cfg.Routes.Restore(transport.Broadcast, "no longer watched"))
	}
	return first
}

// Path is the state of the path to a node by a VID.
type Path struct {
	Node mcd.NodeID `json:"node"`
	control.PathStatus
}

// Paths returns all watched paths, by the nodes' addresses and by VID.
func (d *Driver) Paths() []Path {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.paths()
}

// paths is Paths. The caller holds mu.
func (d *Driver) paths() (all []Path) {
	for _, p := range d.core.Paths() {
		all = append(all, Path{d.peers[p.Peer].node, p})
	}
	return all
}

// tell calls OnPaths with the paths whose state has changed. The caller holds mu.
func (d *Driver) tell() {
	if d.cfg.OnPaths == nil || d.core.Revision() == d.revision {
		return
	}
	d.revision = d.core.Revision()
	var changed []Path
	told := make(map[pathKey]control.PathState)
	for _, p := range d.paths() {
		key, state := pathKey{p.Peer, p.VID}, p.State
		if state == control.PathSuspect {
			state = control.PathUp
		}
		told[key] = state
		if state != d.told[key] {
			changed = append(changed, p)
		}
	}
	d.told = told
	if len(changed) > 0 {
		d.cfg.OnPaths(changed)
	}
}

// SetLink reports that the port by which frames of some VIDs leave went down or up, of all VIDs if
// none are named, so that their probes need not be missed first. The driver notices by itself that
// the endpoint's own link is down. After Close it does nothing.
func (d *Driver) SetLink(up bool, vids ...transport.VID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	d.do(d.core.SetLink(clock.Now(), up, nil, vids...))
	d.queue(nil)
}

// SetPCP changes the priority of the probes, as for a plan with another one. The error is that of a
// priority that no tag has.
func (d *Driver) SetPCP(p transport.PCP) error {
	if err := validatePCP(p); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg.PCP = p
	return nil
}

// run is the driver's goroutine.
func (d *Driver) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var refreshed monotime.Time
	var p *mcd.Probe
	for d.ctx.Err() == nil {
		pause := d.turn(p, &refreshed)
		if p = nil; pause == 0 {
			continue
		}
		timer.Reset(pause)
		select {
		case <-d.ctx.Done():
		case p = <-d.probes:
		case <-timer.C:
		}
	}
}

// turn takes in what was received, a probe or nil first, does what is due, and returns the time
// until the next turn.
func (d *Driver) turn(p *mcd.Probe, refreshed *monotime.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.take(p); len(d.probes) > 0; {
		d.take(<-d.probes)
	}
	now := clock.Now()
	every := cmp.Or(d.cfg.Failover.Probe, control.DefaultProbe) // the nodes and the routes are read
	refresh := refreshed.IsZero() || now.Sub(*refreshed) >= every
	if refresh {
		*refreshed = now
		d.refresh(now)
	}
	d.do(d.core.Advance(now, nil))
	if refresh || d.byPaths != d.core.Revision() {
		d.byPaths = d.core.Revision()
		d.moveDefault(now)
	}
	d.tell()
	next := every - now.Sub(*refreshed)
	if at, ok := d.core.Deadline(); ok {
		next = min(next, at.Sub(now))
	}
	return max(next, 0)
}

// do carries the core's steps out: probes first, as the next call of the core overwrites their
// bodies. The caller holds mu.
func (d *Driver) do(steps []control.FailoverStep) {
	links := make(map[transport.VID]bool)
	for i := range steps {
		if s := &steps[i]; s.Body != nil {
			d.probe(d.peers[s.Peer].node, s.VID, s.Body, links)
		}
	}
	d.updateLinks(links)
	for i := range steps {
		if steps[i].Body == nil {
			d.move(&steps[i])
		}
	}
}

// refresh reads the nodes and the routes. The caller holds mu.
func (d *Driver) refresh(now monotime.Time) {
	seen := make(map[transport.MAC]mcd.NodeID)
	for _, n := range d.ep.Nodes() {
		if n.ID != d.ep.Node() {
			seen[n.MACs[d.cfg.NIC]] = n.ID
		}
	}
	for mac, p := range d.peers {
		_, preferred := d.cfg.Routes.VIDs(mac)
		node, still := seen[mac]
		isWatched := slices.Contains(d.cfg.Failover.VIDs, preferred)
		if still && node == p.node && isWatched {
			continue
		}
		d.core.RemovePeer(mac)
		delete(d.peers, mac)
		if p.overridden != 0 && !still {
			d.giveUp(mac)
		}
	}
	for mac, node := range seen {
		inForce, preferred := d.cfg.Routes.VIDs(mac)
		if !slices.Contains(d.cfg.Failover.VIDs, preferred) {
			if inForce != preferred { // by this driver, or an earlier one
				d.giveUp(mac)
			}
			continue
		}
		if d.peers[mac] == nil {
			d.peers[mac] = &peer{node: node}
			d.adopt(now, mac, preferred, inForce)
		}
		d.compare(now, mac, preferred, inForce)
	}
	d.probeDeadLinks()
}

// giveUp removes an override that is not watched. The caller holds mu.
func (d *Driver) giveUp(mac transport.MAC) {
	_ = d.cfg.Routes.Restore(mac, "no longer watched") // a table that refuses it keeps the override
}

// adopt begins to watch a peer with the override that an earlier driver has left, if it has: what
// was down then is not taken for up because this node has begun anew. The caller holds mu.
func (d *Driver) adopt(now monotime.Time, mac transport.MAC, preferred, inForce transport.VID) {
	if inForce == preferred {
		return
	}
	if !slices.Contains(d.cfg.Failover.VIDs, inForce) {
		d.giveUp(mac)
		return
	}
	if _, err := d.core.SetPeer(now, mac, preferred, nil); err != nil {
		return // compare finds out, too
	}
	d.peers[mac].preferred, d.peers[mac].overridden = preferred, inForce
	d.do(d.core.Adopt(now, mac, inForce, nil))
}

// compare takes in the preferred route to a peer and the one in force, where others have changed
// them. The caller holds mu.
func (d *Driver) compare(now monotime.Time, mac transport.MAC, preferred, inForce transport.VID) {
	p := d.peers[mac]
	current, watched := d.core.VID(mac)
	if watched && preferred == p.preferred && (current == inForce || p.draining > 0) {
		return
	}
	steps, err := d.core.SetPeer(now, mac, preferred, nil)
	if err != nil {
		return // it is not a station's address: no frame goes there
	}
	p.preferred = preferred
	d.do(steps)
	if current, _ = d.core.VID(mac); inForce != current { // it may be the route of before steps
		inForce, _ = d.cfg.Routes.VIDs(mac)
	}
	if inForce == current || p.draining > 0 {
		return
	}
	// The preferred VID is down.
	m := Move{Node: p.node, Peer: mac, From: inForce, To: current, Reason: control.MoveMissed}
	m.Err = d.override(&m)
	d.report(m)
}

// move changes the route to a peer. The caller holds mu.
func (d *Driver) move(s *control.FailoverStep) {
	p := d.peers[s.Peer]
	m := Move{Node: p.node, Peer: s.Peer, From: s.From, To: s.VID, Reason: s.Reason, Drained: d.cfg.Drain && s.Alive}
	if m.Drained {
		p.draining++
		d.ended.Go(func() { d.moveDrained(p, m) }) // ends after those that are before it
		return
	}
	m.Err = d.change(&m)
	d.report(m)
}

// moveDrained changes the route to a peer behind a drain. If that fails, or is of no use any more,
// the route is changed all the same: to stay on a VID that the other end has left would be worse.
func (d *Driver) moveDrained(p *peer, m Move) {
	m.Drained, m.Err = d.drain(&m)
	d.mu.Lock()
	defer d.mu.Unlock()
	p.draining--
	d.report(m)
}

// drain changes a move's route behind a drain, and returns the drain's error or else the change's.
// It waits for the drains of other peers and of the program for as long as these take, unless the
// move has no use for a drain any more, which it looks at now and then, or the driver ends. Then it
// reports false. Whatever the drain says, the change is made before what it has held back goes on.
func (d *Driver) drain(m *Move) (drained bool, err error) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	change := func(_ []transport.MAC, failed error) {
		if drained = failed == nil || ctx.Err() == nil; !drained {
			failed = nil
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if drained || d.ctx.Err() == nil {
			err = cmp.Or(failed, d.change(m))
		}
	}
	done := make(chan struct{})
	d.ended.Go(func() { // ends with the drain, which is awaited below
		defer close(done)
		mcd.AddressDrain{Endpoint: d.ep, Timeout: drainTimeout}.DrainEach(ctx, change, m.Peer)
	})
	look := time.NewTicker(drainTimeout)
	defer look.Stop()
	for {
		select {
		case <-done:
			return drained, err
		case <-look.C:
			if !d.hasDrain(m) {
				cancel()
			}
		}
	}
}

// hasDrain reports whether a move is to be done still, and the VID in force carries frames.
func (d *Driver) hasDrain(m *Move) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	to, _ := d.core.VID(m.Peer)
	inForce, _ := d.cfg.Routes.VIDs(m.Peer)
	return to == m.To && !d.core.IsDown(m.Peer, inForce)
}

// change changes a route, unless the pair has been moved on since. The caller holds mu.
func (d *Driver) change(m *Move) error {
	if now, watched := d.core.VID(m.Peer); !watched || now != m.To {
		return nil
	}
	p := d.peers[m.Peer]
	inForce, _ := d.cfg.Routes.VIDs(m.Peer)
	switch {
	case inForce == m.To && p.overridden != m.To:
		p.overridden = 0
		return nil // another source has changed it already
	case m.To == p.preferred:
		p.overridden = 0
		return d.cfg.Routes.Restore(m.Peer, m.Reason.String())
	}
	return d.override(m)
}

// override puts a route over the preferred one. The caller holds mu.
func (d *Driver) override(m *Move) error {
	err := d.cfg.Routes.Override(m.Peer, m.To, m.Reason.String())
	if err == nil {
		d.peers[m.Peer].overridden = m.To
	}
	return err
}

func (d *Driver) report(m Move) {
	if d.cfg.OnMove != nil {
		d.cfg.OnMove(m)
	}
}
