package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/cluster/internal/discovery"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// DiscoveryPort is the port that discovery uses on every node.
const DiscoveryPort mcd.PortID = 255

// MaxNodes bounds Config.Nodes: the announcement's size field has 16 bits.
const MaxNodes = 1<<16 - 1

// Config of Join.
type Config struct {
	// Nodes is how many nodes there are, this one included: their numbers are 0 to Nodes-1.
	Nodes int
	// Name is this node's name in the others' messages. "" means this host's name.
	Name string
	// Place is what the others are told of where this node runs. Zero is Endpoint.Place; another
	// one is for nodes that know better: virtual machines of one host; clones of one that was
	// resumed from a snapshot, which share a boot id and so look like one host; and processes that
	// are pinned on hosts of more than 64 cores, of which two may look like one (mcd.Place).
	Place mcd.Place
}

// Peer is a node that was heard.
type Peer struct {
	mcd.Node
	Name string // of its host; may be empty
	NIC  int    // the link on which it was heard first
}

// Membership is a node's place in a complete cluster. Until it is closed it answers nodes that come
// late; it does so in the endpoint's progress, and has no goroutine.
type Membership struct {
	ep    *mcd.Endpoint
	port  *mcd.Port
	place mcd.Place      // of this node
	turn  mcd.Completion // done when the deadline that discover waits for has changed

	mu        sync.Mutex // guards what follows, and that turn is completed once between two resets
	core      *discovery.Discovery
	out       []discovery.Send
	malformed uint64 // messages to the port that were no announcements
}

// Join announces this node on all links of ep until it has heard Config.Nodes nodes, listens a few
// milliseconds for conflicts between them, and gives ep their node table.
//
// Errors: mcd.ErrConflict (a *mcd.ConflictError) if two nodes share a number or an address;
// ErrMismatch (a *MismatchError) if a node expects another cluster; ErrIncomplete (an
// *IncompleteError, which Is ctx's error too) if ctx ends first; mcd.ErrPortBusy. A deadline is one
// also where this machine stood still for most of the time: the error says for how long it did.
func Join(ctx context.Context, ep *mcd.Endpoint, cfg Config) (*Membership, error) {
	if cfg.Nodes < 1 || cfg.Nodes > MaxNodes {
		return nil, fmt.Errorf("cluster: Nodes %d (want 1 to %d)", cfg.Nodes, MaxNodes)
	}
	if int(ep.Node()) >= cfg.Nodes {
		return nil, fmt.Errorf("cluster: node %d of %d (want 0 to %d): %w",
			ep.Node(), cfg.Nodes, cfg.Nodes-1, mcd.ErrUnknownNode)
	}
	if ep.NICs() > discovery.MaxNICs {
		return nil, fmt.Errorf("cluster: %d links (want at most %d: an announcement has room for no more)",
			ep.NICs(), discovery.MaxNICs)
	}
	m := &Membership{ep: ep, place: cfg.Place}
	if m.place.IsZero() {
		m.place = ep.Place()
	}
	self := discovery.Station{Node: uint16(ep.Node()), Name: cfg.Name, Place: discovery.Place(m.place)}
	if self.Name == "" {
		self.Name, _ = os.Hostname() // for messages only
	}
	for nic := range ep.NICs() {
		self.MACs = append(self.MACs, ep.MAC(nic))
	}
	// The seed spreads the announcements of nodes that are started together, the same in every run.
	seed := binary.BigEndian.Uint64(append(make([]byte, 2), self.MACs[0][:]...))
	m.core = discovery.New(clock.Now(), self, cfg.Nodes, seed)
	var err error
	m.mu.Lock() // a message may come before the port is known
	m.port, err = ep.OpenPort(DiscoveryPort, mcd.PortOptions{Receive: m.receive, SkipSourceCheck: true})
	m.mu.Unlock()
	if errors.As(err, new(*mcd.PortBusyError)) {
		return nil, fmt.Errorf("cluster: discovery: %w (a node of cluster %d is on this link already: "+
			"end its program, or give another cluster id)", err, ep.Cluster())
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: discovery: %w", err)
	}
	joined := false
	defer func() { // also if another port's function panics in the wait, or ends the goroutine
		if !joined {
			_ = m.port.Close() // the first error is the one to report
		}
	}()
	if err := m.discover(ctx); err != nil {
		return nil, err
	}
	joined = true
	return m, nil
}

// discover announces and waits until the cluster is complete or discovery has failed.
func (m *Membership) discover(ctx context.Context) error {
	watch := standstill.Start(clock.Now(), 2*discovery.LastInterval)
	for {
		over := ctx.Err() // before the look at the clock, and at what has come until then
		now := clock.Now()
		m.mu.Lock()
		m.turn.Reset()
		watch.Look(now)
		m.out = m.core.Advance(now, m.out[:0])
		err := m.send()
		state := m.core.State()
		next, _ := m.core.Deadline()
		var tableErr error
		if state == discovery.Complete {
			tableErr = m.ep.SetNodes(m.table()) // before a node that begins anew can move in it
		}
		m.mu.Unlock()
		switch {
		case err != nil:
			return fmt.Errorf("cluster: announce: %w", err)
		case state == discovery.Complete:
			return tableErr
		case state == discovery.Failed:
			return m.fault()
		case over != nil:
			return m.incomplete(over, watch.Stood())
		}
		err = awaitTurn(ctx, m.ep, &m.turn, max(next.Sub(clock.Now()), time.Microsecond))
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
}

// awaitTurn waits until turn is completed, for d at most. Errors: ctx's, and those of
// mcd.Endpoint.Await.
func awaitTurn(ctx context.Context, ep *mcd.Endpoint, turn *mcd.Completion, d time.Duration) error {
	again, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if err := ep.Await(again, turn); err != nil && again.Err() == nil {
		return err
	}
	return ctx.Err()
}

// receive handles announcements, in the endpoint's progress.
func (m *Membership) receive(batch []mcd.Message, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range batch {
		m.handle(&batch[i])
	}
}

// handle handles one announcement. The caller holds mu.
func (m *Membership) handle(msg *mcd.Message) {
	a, err := discovery.Parse(msg.Payload)
	if err != nil || m.port == nil {
		m.malformed++
		return
	}
	before, waiting := m.core.Deadline()
	moves := m.core.Moves()
	m.out = m.core.Handle(clock.Now(), uint16(msg.From.Node), msg.Src, msg.NIC, &a, m.out[:0])
	if m.core.Moves() != moves && m.core.State() == discovery.Complete {
		// Before the answer by which the node becomes complete: groups that are made from then on
		// have the same places on all. The addresses are as they were.
		m.ep.SetPlace(msg.From.Node, mcd.Place(a.Place))
	}
	_ = m.send() // what is lost is announced again
	after, still := m.core.Deadline()
	if (after != before || waiting != still) && !m.turn.Done() {
		m.turn.Complete(nil) // discover waits for the old deadline
	}
}

// send sends the core's announcements by each network. That a link is busy, or down for a moment,
// is no error: they are repeated. Nor is that one is gone, while there is another.
func (m *Membership) send() error {
	var b []byte
	for i := range m.out {
		a := &m.out[i].Announcement
		var gone []error
		for nic := range m.ep.NICs() {
			a.NIC = uint8(nic)
			b = a.Append(b[:0])
			to := mcd.ToAll(DiscoveryPort)
			if m.out[i].One {
				to = mcd.To(mcd.Addr{Node: mcd.NodeID(m.out[i].To.Node), Port: DiscoveryPort})
			}
			err := m.port.TrySend(nic, to, b)
			if err != nil && !errors.Is(err, transport.ErrBusy) && !errors.Is(err, transport.ErrInterfaceDown) {
				gone = append(gone, err)
			}
		}
		if len(gone) == m.ep.NICs() {
			return errors.Join(gone...)
		}
	}
	return nil
}

// Nodes returns the node table, this node included, by number.
func (m *Membership) Nodes() []mcd.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table()
}

// table returns the node table. The caller holds mu.
func (m *Membership) table() []mcd.Node {
	self := mcd.Node{ID: m.ep.Node(), Place: m.place}
	for nic := range m.ep.NICs() {
		self.MACs = append(self.MACs, m.ep.MAC(nic))
	}
	table := []mcd.Node{self}
	for _, s := range m.core.Heard() {
		table = append(table, peer(s).Node)
	}
	slices.SortFunc(table, func(a, b mcd.Node) int { return cmp.Compare(a.ID, b.ID) })
	return table
}

// Peers returns the other nodes, by number.
func (m *Membership) Peers() []Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	var peers []Peer
	for _, s := range m.core.Heard() {
		peers = append(peers, peer(s))
	}
	return peers
}

func peer(s discovery.Station) Peer {
	n := mcd.Node{ID: mcd.NodeID(s.Node), MACs: slices.Clone(s.MACs), Place: mcd.Place(s.Place)}
	return Peer{Node: n, Name: s.Name, NIC: s.NIC}
}

// Close closes the discovery port: late nodes are no longer answered. The endpoint and its node
// table stay. Further calls do nothing.
func (m *Membership) Close() error { return m.port.Close() }
