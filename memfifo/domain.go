package memfifo

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// Config of a domain. The zero value works.
type Config struct {
	// Port that remote memory operations use on every node. Zero is DefaultPort.
	Port mcd.PortID
	// PeerTimeout is how long a peer that owes an answer may be silent; then it is down, a quarter
	// of it later at most. Zero is DefaultPeerTimeout; less than a millisecond is refused. It is to
	// be ten round trips at least: else frames are sent again before their acknowledgements can be
	// here.
	PeerTimeout time.Duration
	// Handlers, by id, take records from the first frame on; Domain.Handler returns them. One that
	// Handle makes later refuses what has come before, of which its sender hears from a Flush.
	Handlers map[uint16]HandlerConfig
	// Refused is told of each operation that another node has refused and a Flush will tell, as
	// soon as it is heard of, and before any Flush returns that has waited for it. Count is then
	// how many of that window or FIFO were refused since the last Flush, with this one: 1 is the
	// first. It is called like a handler's Record, and may be nil.
	Refused func(*AccessError)
}

func (c *Config) setDefaults() error {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, DefaultPeerTimeout)
	if c.PeerTimeout < minPeerTimeout {
		return fmt.Errorf("memfifo: PeerTimeout %v (want %v or more; a number without a unit is in nanoseconds)",
			c.PeerTimeout, minPeerTimeout)
	}
	return nil
}

// Domain is one node's part in remote memory: its windows and FIFOs, and its connections to other
// nodes. All its methods, and those of windows, FIFOs and remotes, may be called from any
// goroutine.
type Domain struct {
	ep        *mcd.Endpoint
	cfg       Config
	port      *mcd.Port
	frameSize int // of a frame that is received, at most
	sendSize  int // of one that is sent, but for a record that is longer
	trains    bool
	first     map[uint16]*Handler // of Config.Handlers

	mu       sync.Mutex // guards all below, and what says so elsewhere; taken inside the endpoint's poll lock
	closed   bool
	ended    chan struct{} // made by the first Close, and closed when it is over
	peers    []*peer       // by node; nil: never talked to
	windows  map[uint16]*Window
	recent   *Window // the window looked up last; nil: none, or it was revoked
	fifos    map[uint16]*FIFO
	recentQ  *FIFO               // the FIFO pushed to last; nil: none, or it was closed
	handlers map[uint16]*Handler // no id is in both
	rx       receiver
	batch    [reliable.MaxBatch][]byte
	left     mcd.Completion // closed: no peer is owed a goodbye
	timer    *time.Timer
	timerAt  monotime.Time // when it fires; zero: not set
	pool     pool
	stats    Counters
	lastID   uint32 // request ID given out last
}

// Open makes a domain on an endpoint. Errors: mcd.ErrPortBusy.
func Open(ep *mcd.Endpoint, cfg Config) (d *Domain, err error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	d = &Domain{
		ep: ep, cfg: cfg, frameSize: ep.MaxPayload(), sendSize: ep.TrainPayload(), trains: ep.TrainFrames() > 0,
		windows: map[uint16]*Window{}, fifos: map[uint16]*FIFO{}, handlers: map[uint16]*Handler{},
		first: map[uint16]*Handler{},
	}
	if least := reliable.HeaderLen + opCompareSwap.Size(0); d.sendSize < least {
		return nil, fmt.Errorf("memfifo: messages of %d bytes are too short (want %d)", d.sendSize, least)
	}
	d.pool.frames = reliable.NewMemory(ep.Headroom() + d.frameSize)
	d.timer = time.AfterFunc(time.Hour, d.onAlarm)
	d.timer.Stop() // watch sets it
	d.mu.Lock()    // a message may come before the port is known
	defer d.mu.Unlock()
	for id, h := range cfg.Handlers {
		if d.first[id], err = d.addHandler(id, h); err != nil {
			return nil, fmt.Errorf("memfifo: %w", err)
		}
	}
	d.port, err = ep.OpenPort(cfg.Port, mcd.PortOptions{Receive: d.receive})
	if err != nil {
		return nil, fmt.Errorf("memfifo: %w", err)
	}
	return d, nil
}

// secret returns a random number.
func secret() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// known reports whether the endpoint's table has a node. Strangers' frames ask: it copies no table.
func (d *Domain) known(node mcd.NodeID) bool {
	_, err := d.ep.Path(node, 0)
	return err == nil
}

// peer returns the state for a node, made on first use; nil if it is this node or the table does
// not have it. The caller holds mu.
func (d *Domain) peer(node mcd.NodeID) *peer {
	if int(node) < len(d.peers) && d.peers[node] != nil {
		return d.peers[node]
	}
	if node == d.ep.Node() || !d.known(node) {
		return nil
	}
	d.peers = append(d.peers, make([]*peer, max(0, int(node)+1-len(d.peers)))...)
	d.peers[node] = newPeer(d, node)
	return d.peers[node]
}

// target returns the peer for an operation. The caller holds mu.
func (d *Domain) target(node mcd.NodeID) (*peer, error) {
	if d.closed {
		return nil, ErrClosed
	}
	if p := d.peer(node); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("node %d: %w", node, mcd.ErrUnknownNode)
}

// Counters of a domain. Those of its connections count frames: Sent, Retransmitted (of these) and
// Acks (that went alone); Delivered, OutOfOrder (kept, as one before was missing or held),
// Duplicate, BeyondWindow (no room), StaleIncarnation (of or for a former one) and TooLong.
type Counters struct {
	reliable.Counters
	Malformed   uint64 `json:"malformed"`    // frames and records that make no sense
	UnknownNode uint64 `json:"unknown_node"` // frames of nodes that the table does not have
	Refused     uint64 `json:"refused"`      // operations of other nodes
	Orphans     uint64 `json:"orphans"`      // replies to requests that were given up, or never made
}

// Counters returns the domain's counters.
func (d *Domain) Counters() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// await waits for a completion. The caller's operations are over, so frames wait for no others to
// share them. An endpoint that is closed before the domain ends the domain's waits, too.
func (d *Domain) await(ctx context.Context, c *mcd.Completion) error {
	if d.rx.corked.Load() && !c.Done() {
		d.mu.Lock()
		d.flushPeers(clock.Now(), true)
		d.mu.Unlock()
	}
	err := d.ep.Await(ctx, c)
	if errors.Is(err, mcd.ErrClosed) && !c.Done() { // else it is the completion's: of a window that is revoked
		d.endpointClosed()
		return ErrClosed
	}
	return err
}

// endpointClosed ends what would end with a peer's answer alone.
func (d *Domain) endpointClosed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.peers {
		if p != nil {
			p.dropPosted()
		}
	}
}

// Close flushes, for as long as peers answer, but for twice the peer timeout at most, says goodbye
// to them until they have heard it, and ends the domain. Waits end with ErrClosed. The error names
// the nodes that have not confirmed what was done to them. When Close returns, also a second time,
// the port is free. A peer that does not answer a goodbye costs 31 retransmission timeouts, which
// is 62 ms to half a second, or five where the round trip is longer than a tenth of a second.
//
// Close the domain before its endpoint. With the endpoint closed first, waits end with ErrClosed as
// well, but no peer hears that this node has left, and Close cannot confirm anything.
func (d *Domain) Close() error {
	d.mu.Lock()
	ended := d.ended
	if ended == nil {
		d.ended = make(chan struct{})
	}
	d.mu.Unlock()
	if ended != nil {
		<-ended
		return nil
	}
	defer close(d.ended)
	return d.close()
}

// close goes on to its end also where a wait of it does not return, as a function of another port
// may panic there, or end the goroutine.
func (d *Domain) close() (err error) {
	defer func() { err = errors.Join(err, d.port.Close()) }()
	defer d.end()
	ctx, cancel := standstill.ForClose(d.cfg.PeerTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	peers, err := d.unflushed(nil)
	if err != nil {
		return err
	}
	return d.flush(ctx, slices.DeleteFunc(peers, func(p *peer) bool { return p.writtenOff }))
}

// WriteOff says that what is under way to a node may be lost, as the layer above has found that it
// is down: Close does not wait for it, and does not name it. It holds for what is done to the node
// later, too: so it is for a domain that is about to close.
func (d *Domain) WriteOff(node mcd.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(node) < len(d.peers) && d.peers[node] != nil {
		d.peers[node].writtenOff = true
	}
}

// end ends the domain, and all waits.
func (d *Domain) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.timer.Stop()
	d.closed = true
	for _, p := range d.peers {
		if p != nil {
			p.conn.Close()
			p.fail(ErrClosed)
		}
	}
	for _, w := range d.windows {
		w.wake(ErrClosed)
	}
	for _, f := range d.fifos {
		f.waiters.wake(nil) // as in FIFO.Close
	}
	d.leave()
}
