package failover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
)

// fenceTimeout bounds a fence: a VID that does not answer for so long is about to be given up, and
// what waits has waited long enough.
const fenceTimeout = 200 * time.Millisecond

// Driver watches paths until Close. All methods may be called from any goroutine.
type Driver struct {
	ep     *mcd.Endpoint
	cfg    Config
	inbox  inbox
	unhook func()
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup // the goroutine that Start started, and one per fenced move in progress

	mu      sync.Mutex // guards what follows; taken before locks of the routes and of the endpoint
	core    *control.Failover
	nodes   map[transport.MAC]mcd.NodeID // that are watched
	prefer  map[transport.MAC]transport.VID
	forced  map[transport.MAC]transport.VID // by us, and not restored yet
	fencing map[transport.MAC]int           // moves behind a fence, in progress
	down    map[transport.VID]bool          // their interface is, as a probe's error told
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
		ep: ep, cfg: cfg, core: core,
		nodes:   make(map[transport.MAC]mcd.NodeID),
		prefer:  make(map[transport.MAC]transport.VID),
		forced:  make(map[transport.MAC]transport.VID),
		fencing: make(map[transport.MAC]int),
		down:    make(map[transport.VID]bool),
	}
	d.inbox.init()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.unhook = ep.WatchProbes(d.hear)
	d.ended.Go(d.run) // until d.ctx ends, by Close, which waits for it
	return d, nil
}

// Close ends the watch. Routes stay as they are: what was forced would be restored to paths that
// may be dead. See Restore.
func (d *Driver) Close() error {
	d.unhook()
	d.cancel()
	d.ended.Wait()
	return nil
}

// Restore takes back all that was forced, for who watches something else from now on. The Driver
// must be closed. The error is that of the first route that could not be restored.
func (d *Driver) Restore() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	for peer := range d.forced {
		if err := d.cfg.Routes.Restore(peer, "no longer watched"); err != nil && first == nil {
			first = err
		}
		delete(d.forced, peer)
	}
	return first
}

// Path is what is thought of the path to a node by a VID.
type Path struct {
	Node mcd.NodeID `json:"node"`
	control.PathStatus
}

// Paths returns all watched paths, by the nodes' addresses and by VID.
func (d *Driver) Paths() []Path {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Path
	for _, p := range d.core.Paths() {
		all = append(all, Path{d.nodes[p.Peer], p})
	}
	return all
}

// SetLink takes note that the port went down or up by which frames of some VIDs leave, of all if
// none are named: so that they need not be missed first. (That the link itself is down is noticed
// without.)
func (d *Driver) SetLink(up bool, vids ...transport.VID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do(d.core.SetLink(clock.Now(), up, nil, vids...))
	d.inbox.ring() // the next deadline may be another one
}

// run is the driver's goroutine.
func (d *Driver) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var refreshed monotime.Time
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.inbox.bell:
		case <-timer.C:
		}
		timer.Reset(d.turn(&refreshed))
	}
}

// turn takes in what came, does what is due, and returns when to come back.
func (d *Driver) turn(refreshed *monotime.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.inbox.take() {
		now := clock.Now()
		if h.answer {
			d.do(d.core.Answered(now, h.from, h.vid, h.body, nil))
		} else {
			d.do(d.core.Heard(now, h.from, h.life, h.body, nil))
		}
	}
	now := clock.Now()
	every := d.refreshEvery()
	if refreshed.IsZero() || now.Sub(*refreshed) >= every {
		*refreshed = now
		d.refresh(now)
	}
	d.do(d.core.Advance(now, nil))
	next := every - now.Sub(*refreshed)
	if at, ok := d.core.Deadline(); ok {
		next = min(next, at.Sub(now))
	}
	return max(next, 0)
}

// refreshEvery is how often the nodes and the routes are looked at, which others may have changed.
func (d *Driver) refreshEvery() time.Duration {
	if d.cfg.Failover.Probe > 0 {
		return d.cfg.Failover.Probe
	}
	return control.DefaultProbe
}

// do carries out what the core says. The caller holds mu.
func (d *Driver) do(steps []control.FailoverStep) {
	for i := range steps {
		if steps[i].Body == nil {
			d.move(&steps[i])
			continue
		}
		d.probe(steps[i].Peer, steps[i].VID, steps[i].Body)
	}
}

// probe sends a probe. If that fails, it will be missed; if the interface is down, no other one
// need be. The caller holds mu.
func (d *Driver) probe(peer transport.MAC, vid transport.VID, body []byte) {
	node, known := d.nodes[peer]
	if !known {
		return
	}
	path := mcd.Path{Node: node, NIC: d.cfg.NIC, OptionalTag: transport.Tagged(transport.Tag{VID: vid, PCP: d.cfg.PCP})}
	_, err := d.ep.TryProbe(path, mcd.ProbeOptions{Body: body})
	if down := errors.Is(err, transport.ErrInterfaceDown); down != d.down[vid] {
		d.down[vid] = down
		d.do(d.core.SetLink(clock.Now(), !down, nil, vid))
	}
}

// refresh looks at the nodes and at the routes, which others may have changed. The caller holds mu.
func (d *Driver) refresh(now monotime.Time) {
	var peers []transport.MAC
	seen := make(map[transport.MAC]mcd.NodeID)
	for _, n := range d.ep.Nodes() {
		if n.ID != d.ep.Node() {
			peers = append(peers, n.MACs[d.cfg.NIC])
			seen[n.MACs[d.cfg.NIC]] = n.ID
		}
	}
	vids := vidsOf(d.cfg.Routes.Routes(), peers)
	for peer := range d.nodes {
		if _, still := vids[peer]; !still || seen[peer] != d.nodes[peer] {
			d.core.RemovePeer(peer)
			delete(d.nodes, peer)
			delete(d.forced, peer)
		}
	}
	for _, peer := range peers {
		if vid, tagged := vids[peer]; tagged && slices.Contains(d.cfg.Failover.VIDs, vid) {
			d.nodes[peer] = seen[peer]
			d.compare(now, peer, vid)
		}
	}
	for vid, down := range d.down {
		for peer := range d.nodes {
			if down { // is it still? Any node will do
				d.probe(peer, vid, nil)
			}
			break
		}
	}
}

// compare takes note of the route to a peer that is in force. Where it is another one than the
// core's, somebody wishes for it. The caller holds mu.
func (d *Driver) compare(now monotime.Time, peer transport.MAC, inForce transport.VID) {
	current, watched := d.core.VID(peer)
	if watched && (current == inForce || d.fencing[peer] > 0) {
		return
	}
	steps := d.wished(now, peer, inForce)
	if after, ok := d.core.VID(peer); ok && after != inForce { // what is wished for is dead
		m := Move{Peer: peer, From: inForce, To: after, Reason: control.MoveMissed}
		m.Err = d.force(&m)
		d.report(m)
	}
	for i := range steps {
		if steps[i].Body != nil { // the move has been made
			d.probe(peer, steps[i].VID, steps[i].Body)
		}
	}
}

// wished tells the core that a peer's pair is to use a VID, and does use it.
func (d *Driver) wished(now monotime.Time, peer transport.MAC, vid transport.VID) []control.FailoverStep {
	steps, err := d.core.SetPeer(now, peer, vid, nil)
	if err != nil {
		return nil // it is not a station's address: nothing goes there
	}
	d.prefer[peer] = vid
	delete(d.forced, peer)
	return steps
}

// move changes the route to a peer. The caller holds mu.
func (d *Driver) move(s *control.FailoverStep) {
	m := Move{Peer: s.Peer, From: s.From, To: s.VID, Reason: s.Reason, Fenced: d.cfg.Fence && s.Alive}
	if !m.Fenced {
		m.Err = d.change(&m)
		d.report(m)
		return
	}
	d.fencing[m.Peer]++
	d.ended.Go(func() { // ends after fenceTimeout at the latest
		ctx, cancel := context.WithTimeout(d.ctx, fenceTimeout)
		defer cancel()
		change := func() error {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.change(&m)
		}
		err := mcd.AddressDrain{Endpoint: d.ep}.Drain(ctx, change, m.Peer)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, mcd.ErrNoAnswer) {
			_ = change() // to stay where the other end is not would be worse; the fence's error is the one to tell
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fencing[m.Peer]--; d.fencing[m.Peer] == 0 {
			delete(d.fencing, m.Peer)
		}
		m.Err = err
		d.report(m)
	})
}

// change changes a route, unless the pair has been moved on since. The caller holds mu.
func (d *Driver) change(m *Move) error {
	if now, watched := d.core.VID(m.Peer); !watched || now != m.To {
		return nil
	}
	inForce := vidsOf(d.cfg.Routes.Routes(), []transport.MAC{m.Peer})[m.Peer]
	switch {
	case inForce == m.To && d.forced[m.Peer] != m.To:
		d.wished(clock.Now(), m.Peer, m.To) // somebody has changed it already; it is where it is: there are no steps
		return nil
	case m.To == d.prefer[m.Peer]:
		delete(d.forced, m.Peer)
		return d.cfg.Routes.Restore(m.Peer, m.Reason.String())
	}
	return d.force(m)
}

// force forces a route. The caller holds mu.
func (d *Driver) force(m *Move) error {
	err := d.cfg.Routes.Force(m.Peer, m.To, m.Reason.String())
	if err == nil {
		d.forced[m.Peer] = m.To
	}
	return err
}

func (d *Driver) report(m Move) {
	if d.cfg.OnMove != nil {
		m.Node = d.nodes[m.Peer]
		d.cfg.OnMove(m)
	}
}
