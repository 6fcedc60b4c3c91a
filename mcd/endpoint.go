package mcd

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// HeaderLen is what a message costs of the link's MTU, in bytes.
const HeaderLen = wire.HeaderLen

// WireVersion is the version of the wire format that this package speaks. Frames of others are dropped.
const WireVersion = wire.Version

// Ports is the number of ports of a node.
const Ports = 256

// Config of an endpoint. The zero value is node 0 of cluster 0, which knows no other node yet.
type Config struct {
	// Cluster tells this program's frames from those of others on the segment.
	Cluster ClusterID
	// Node is this node's number.
	Node NodeID
	// Nodes is the node table. It may hold this node itself, and can be set later by SetNodes.
	Nodes []Node
	// Router chooses the VLAN tag per destination. Nil is vlan.Untagged.
	Router vlan.Router
	// EtherType of the frames. Zero is transport.EtherTypeDefault.
	EtherType transport.EtherType
	// Backlog is how many messages a port keeps while no buffer is posted. Zero is DefaultBacklog;
	// negative is none, as in the MCD paper: then a message needs a posted buffer.
	Backlog int
	// Spin is how much of its own processor time a waiting goroutine polls before it sleeps; time in which others have the
	// core does not count. Zero is DefaultSpin; negative is not at all. Where waits usually cost more than this, they
	// sleep at once.
	Spin time.Duration
}

// Defaults of Config.
const (
	// DefaultBacklog holds what a peer can send during one wake-up of ours (about 50 µs at 1 µs a frame).
	DefaultBacklog = 64
	// DefaultSpin is twice what it costs to wake two sleeping ends, one after the other.
	DefaultSpin = 100 * time.Microsecond
)

func (c *Config) setDefaults() {
	if c.Router == nil {
		c.Router = vlan.Untagged
	}
	if c.EtherType == 0 {
		c.EtherType = transport.EtherTypeDefault
	}
	if c.Backlog == 0 {
		c.Backlog = DefaultBacklog
	}
	if c.Spin == 0 {
		c.Spin = DefaultSpin
	}
}

func (c *Config) validate(links []transport.Link) error {
	if len(links) == 0 {
		return errors.New("no links (want at least one)")
	}
	if c.Node > MaxNodeID {
		return fmt.Errorf("Config.Node %d: out of range (0 to %d)", c.Node, MaxNodeID)
	}
	for _, l := range links {
		if l.MTU() <= HeaderLen {
			return fmt.Errorf("link %s: MTU %d leaves no room for a message (want more than %d)", transport.Name(l), l.MTU(), HeaderLen)
		}
	}
	return nil
}

// Endpoint is one node's attachment to the cluster: its links, its node table and its ports.
// All methods may be called from any goroutine.
type Endpoint struct {
	cfg        Config
	links      []transport.Link
	maxPayload int

	table   atomic.Pointer[table]
	tableMu sync.Mutex // serialises changes of table

	groups  atomic.Pointer[map[GroupID]int]
	groupMu sync.Mutex // serialises changes of groups

	ports  [Ports]atomic.Pointer[Port]
	portMu sync.Mutex // serialises opening and closing of ports; guards gone
	gone   Counters   // of closed ports

	pollState
	queues  []sendQueue // one per link
	pace    pace
	dropped [drops]tally
	foreign atomic.Uint64 // last frame of another version: its source address and version
	probes  prober
	fence   fence

	closed  atomic.Bool
	servers sync.WaitGroup // the goroutines that Open started: one per link, and the keeper
}

// Open makes an endpoint of links, one per network that the node is attached to. The links are the
// endpoint's from now on: Close closes them, and nobody else may poll them. If Open fails, they are still
// the caller's.
func Open(cfg Config, links ...transport.Link) (*Endpoint, error) {
	if err := cfg.validate(links); err != nil {
		return nil, fmt.Errorf("open endpoint: %w", err)
	}
	cfg.setDefaults()
	e := &Endpoint{
		cfg:        cfg,
		links:      links,
		maxPayload: math.MaxUint16,
		pace:       pace{max: cfg.Spin},
		queues:     make([]sendQueue, len(links)),
	}
	for nic, l := range links {
		e.queues[nic].nic = nic
		e.maxPayload = min(e.maxPayload, l.MTU()-HeaderLen)
	}
	e.pace.share.Store(wholeShare)
	e.probes.init()
	e.fence.init()
	e.groups.Store(&map[GroupID]int{})
	if err := e.SetNodes(cfg.Nodes); err != nil {
		return nil, fmt.Errorf("open endpoint: %w", err)
	}
	e.pollState.init(links)
	e.servers.Add(len(links) + 1)
	for nic := range links {
		go e.serve(nic) // ends when the link is closed, by Close, which waits for it
	}
	go e.keeper() // likewise, when e.keep is closed
	return e, nil
}

// Node returns this node's number.
func (e *Endpoint) Node() NodeID { return e.cfg.Node }

// Cluster returns the cluster's id.
func (e *Endpoint) Cluster() ClusterID { return e.cfg.Cluster }

// MaxPayload returns the longest message, in bytes, that fits every link of the endpoint.
func (e *Endpoint) MaxPayload() int { return e.maxPayload }

// NICs returns the number of links.
func (e *Endpoint) NICs() int { return len(e.links) }

// MAC returns the endpoint's own address on the network of link nic.
func (e *Endpoint) MAC(nic int) transport.MAC { return e.links[nic].MAC() }

// LinkCounters returns the counters of link nic.
func (e *Endpoint) LinkCounters(nic int) transport.Counters { return e.links[nic].Counters() }

// Foreign returns who last sent a frame of another wire version, and which. ok is false if nobody did.
func (e *Endpoint) Foreign() (from transport.MAC, version int, ok bool) {
	v := e.foreign.Load()
	for i := range from {
		from[i] = byte(v >> (8 * i))
	}
	return from, int(v >> 48 & 0xff), v != 0
}

func (e *Endpoint) noteForeign(from transport.MAC, version int) {
	v := uint64(version)<<48 | 1<<63
	for i := range from {
		v |= uint64(from[i]) << (8 * i)
	}
	e.foreign.Store(v)
}

// Close closes the ports and the links, ends all waits with ErrClosed, also those for completions of layers above, and
// waits for the endpoint's goroutines. Further calls do nothing. Handlers must not call it.
func (e *Endpoint) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.closePorts()
	e.probes.fail(ErrClosed)
	for nic := range e.queues {
		e.queues[nic].fail(ErrClosed)
	}
	for !e.lead() { // for good: nobody polls the links any more when they are closed
		runtime.Gosched()
	}
	var errs []error
	for _, l := range e.links {
		errs = append(errs, l.Close())
	}
	e.release(len(e.links))
	close(e.keep)
	close(e.ended)
	e.servers.Wait()
	return errors.Join(errs...)
}

func (e *Endpoint) closePorts() {
	for i := range e.ports {
		if p := e.ports[i].Load(); p != nil {
			p.close()
		}
	}
}
