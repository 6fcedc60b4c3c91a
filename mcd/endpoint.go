package mcd

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

const (
	// HeaderLen is what a message costs of the link's MTU, in bytes, on an endpoint without keys.
	HeaderLen = wire.HeaderLen
	// AuthHeaderLen is the same on an endpoint with keys.
	AuthHeaderLen = wire.AuthHeaderLen
	// WireVersion is the version of the wire format that endpoints without keys speak. Frames of
	// others are dropped.
	WireVersion = wire.Version
	// AuthWireVersion is the one that endpoints with keys speak.
	AuthWireVersion = wire.AuthVersion
	// Ports is the number of ports of a node.
	Ports = 256
)

// Config of an endpoint. The zero value is node 0 of cluster 0, which knows no other node yet.
type Config struct {
	// Cluster tells this program's frames from those of others on the segment.
	Cluster ClusterID
	// Node is this node's number. If it is forgotten, a table in Nodes that gives this node's
	// addresses to another number is refused.
	Node NodeID
	// Nodes is the node table. It may hold this node itself, and can be set later by SetNodes.
	Nodes []Node
	// Router chooses the VLAN tag per destination. Nil is vlan.Untagged. A vlan.Table also counts
	// what was sent by each of its routes.
	Router vlan.Router
	// EtherType of the frames. Zero is that for which the first link was opened, if it was for one
	// alone, else transport.EtherTypeDefault. A link that was opened for another one is refused.
	EtherType transport.EtherType
	// Backlog is how many messages a port keeps while no buffer is posted. Zero is DefaultBacklog;
	// negative is none, as in the MCD paper: then a message needs a posted buffer.
	Backlog int
	// Spin is how much of its own processor time a waiting goroutine polls before it sleeps; time
	// in which others have the core does not count. Zero is DefaultSpin; negative is not at all.
	// Where waits usually cost more than this, they sleep at once. So does one while as many others
	// spin as the process has processors, or eight do, and where programs that compute keep taking
	// the core.
	Spin time.Duration
	// Checksum is how much of the messages that this endpoint sends their checksum covers.
	Checksum Checksum
	// KeyFile names the cluster's key file: frames are authenticated then, and those of nodes
	// without the key are refused. It is read again about once a second, when it has changed. See
	// package keyring, and docs/security.md for what that protects.
	KeyFile string
	// Keys are the cluster's keys, for programs that have them from elsewhere. See SetKeys.
	Keys *keyring.Ring
}

const (
	// DefaultBacklog holds what a peer can send during one wake-up of ours (about 50 µs at 1 µs a
	// frame).
	DefaultBacklog = 64
	// DefaultSpin is twice what it costs to wake two sleeping ends, one after the other.
	DefaultSpin = 100 * time.Microsecond
)

func (c *Config) setDefaults(links []transport.Link) {
	if c.Router == nil {
		c.Router = vlan.Untagged
	}
	if c.EtherType == 0 {
		c.EtherType = transport.EtherTypeDefault
		if t, one := receivedType(links[0]); one {
			c.EtherType = t
		}
	}
	if c.Backlog == 0 {
		c.Backlog = DefaultBacklog
	}
	if c.Spin == 0 {
		c.Spin = DefaultSpin
	}
}

// The smallest MTUs of a link: by the one a message of a byte goes, by the other also the frames by
// which nodes with keys get to know each other.
const (
	minMTU     = HeaderLen + 1
	minAuthMTU = AuthHeaderLen + wire.ContactLen
)

func (c *Config) validate(links []transport.Link, least int) error {
	if len(links) == 0 {
		return errors.New("no links (want at least one)")
	}
	if c.Checksum > ChecksumHeader {
		return fmt.Errorf("Config.Checksum %d: want ChecksumAuto, ChecksumPayload or ChecksumHeader", c.Checksum)
	}
	if c.Node > MaxNodeID {
		return fmt.Errorf("Config.Node %d: out of range (0 to %d)", c.Node, MaxNodeID)
	}
	for i, l := range links {
		if reflect.ValueOf(l).Comparable() && slices.Contains(links[:i], l) {
			return fmt.Errorf("link %s is given twice (want a link for each network)", transport.Name(l))
		}
		if l.MTU() < least {
			return fmt.Errorf("link %s: MTU %d leaves no room for a message (want %d at least, with keys %d)",
				transport.Name(l), l.MTU(), minMTU, minAuthMTU)
		}
		if t, one := receivedType(l); one && t != c.EtherType {
			return fmt.Errorf("link %s: opened for EtherType %v, where Config.EtherType is %v: nothing would arrive "+
				"(open both for the same one)", transport.Name(l), t, c.EtherType)
		}
	}
	return refuseGathered(links)
}

// refuseGathered errs if two links reach each other on this host: both would receive each
// broadcast, and frames for one network come by the other.
func refuseGathered(links []transport.Link) error {
	first := map[string]transport.Link{}
	for _, l := range links {
		g, ok := transport.As[transport.Gathered](l)
		if !ok {
			continue
		}
		if other := first[g.Folder()]; other != nil {
			return fmt.Errorf("links %s and %s: both are stations of the segment in %s (want one for each network)",
				transport.Name(other), transport.Name(l), g.Folder())
		}
		first[g.Folder()] = l
	}
	return nil
}

// refuseNil errs if there is no link where one is given, as behind an Open whose error was not
// looked at.
func refuseNil(links []transport.Link) error {
	for i, l := range links {
		if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("link %d is nil (want one that is open: what was the error of its Open?)", i)
		}
	}
	return nil
}

// refusePublic errs if a link can be reached from the internet: without keys anybody could send.
func refusePublic(links []transport.Link) error {
	for _, l := range links {
		if p, ok := transport.As[transport.Public](l); ok && p.PublicAddr() != "" {
			return fmt.Errorf("link %s: %s is a public address, where anybody can send frames: %w "+
				"(set Config.KeyFile, or listen on a private address)", transport.Name(l), p.PublicAddr(), ErrNoKeys)
		}
	}
	return nil
}

// receivedType returns the EtherType that a link receives, if it receives one alone and says so.
func receivedType(l transport.Link) (t transport.EtherType, one bool) {
	f, says := transport.As[transport.TypeFilter](l)
	if !says || f.EtherType() == transport.EtherTypeAny {
		return 0, false
	}
	return f.EtherType(), true
}

// Endpoint is one node's attachment to the cluster: its links, its node table and its ports. All
// methods may be called from any goroutine.
type Endpoint struct {
	portMu   sync.Mutex  // serialises changes of ports; guards what follows
	reserved [Ports]bool // ports that are open, or are being opened or closed
	gone     Counters    // of closed ports

	tableMu sync.Mutex // serialises changes of table; taken outside sendQueue.mu
	groupMu sync.Mutex // serialises changes of groups

	foreign atomic.Uint64 // last frame of another version: its source address and version
	probes  prober
	drain   drain

	spareDescs sync.Pool // of *SendDesc, for sends that wait

	shut    chan struct{}  // closed when Close is done
	running sync.WaitGroup // what Close waits for: Open's goroutines, and ports that are being opened or closed

	ports [Ports]atomic.Pointer[Port]

	// What each message wants follows, side by side: a system call leaves little of it in the
	// processor's caches.

	cfg          Config
	nics         []nic
	maxPayload   int
	trainPayload int // of a message that may go in a train
	trainFrames  int // of a train at most; 0: a link sends none
	headerLen    int
	linkRoom     int            // of Headroom, what is before mcd's header
	auth         *authenticator // nil: no keys
	router       router
	precise      bool // timers are, as there are links of the kernel's: time is never a test's there

	table  atomic.Pointer[table]
	groups atomic.Pointer[map[GroupID]int]

	closed  atomic.Bool           // Close was called
	over    atomic.Pointer[error] // why all waits have ended: Close, or all links are gone; nil: they have not
	ended   chan struct{}         // closed then, for goroutines that sleep
	dropped [drops]atomic.Uint64

	spinning spinPolicy
	pollState
}

// nic is one of the endpoint's links, with what the send path wants of it.
type nic struct {
	link     transport.Link
	mac      transport.MAC
	limit    int       // longest probe
	coverage coverage  // of checksums
	auth     *authLink // nil: no keys
	queue    sendQueue

	err  atomic.Pointer[error] // of the last Wait, if it failed
	gone atomic.Bool           // for good
}

// Open makes an endpoint of links, one per network that the node is attached to. The links are the
// endpoint's from now on: Close closes them, and nobody else may poll them, so that each endpoint
// of a process wants links of its own, also to one network. If Open fails, they are still the
// caller's.
func Open(cfg Config, links ...transport.Link) (*Endpoint, error) {
	opened := clock.Now()
	var file keyFile
	ring, err := cfg.ring(&file)
	if err == nil {
		err = refuseNil(links)
	}
	if err != nil {
		return nil, fmt.Errorf("open endpoint: %w", err)
	}
	headerLen, least := HeaderLen, minMTU
	if ring != nil {
		headerLen, least = AuthHeaderLen, minAuthMTU
	}
	if len(links) > 0 {
		cfg.setDefaults(links)
	}
	err = cfg.validate(links, least)
	if err == nil && ring == nil {
		err = refusePublic(links)
	}
	if err != nil {
		return nil, fmt.Errorf("open endpoint: %w", err)
	}
	e := &Endpoint{
		cfg:        cfg,
		nics:       make([]nic, len(links)),
		maxPayload: math.MaxUint16, trainPayload: math.MaxUint16, trainFrames: math.MaxInt,
		headerLen: headerLen,
		router:    newRouter(cfg.Router),
		precise:   slices.ContainsFunc(links, isShared),
		ended:     make(chan struct{}),
		shut:      make(chan struct{}),
	}
	for i, l := range links {
		n := &e.nics[i]
		n.link, n.mac, n.limit = l, l.MAC(), min(l.MTU()-headerLen, math.MaxUint16)
		if n.coverage.checksum = ChecksumPayload; ring == nil {
			n.coverage = newCoverage(cfg.Checksum, l)
		}
		n.queue.precise = e.precise
		e.maxPayload = min(e.maxPayload, n.limit)
		e.trainPayload = min(e.trainPayload, transport.TrainMTU(l)-headerLen)
		e.trainFrames = min(e.trainFrames, transport.TrainFrames(l))
		e.linkRoom = max(e.linkRoom, transport.TrainHeadroom(l))
	}
	if e.trainFrames == 0 {
		e.linkRoom = cacheLine + transport.HeaderLen
	}
	e.probes.init()
	e.drain.init()
	e.groups.Store(&map[GroupID]int{})
	e.table.Store(&table{})
	if err := e.SetNodes(cfg.Nodes); err != nil {
		return nil, fmt.Errorf("open endpoint: %w", err)
	}
	e.spinning.init(cfg.Spin)
	e.pollState.init(links, e.precise)
	e.startAuth(ring, file, opened)
	e.running.Add(len(links) + 1)
	for nic := range links {
		go e.keep(func() { e.linkLoop(nic) }) // ends when the link is closed, by Close, which waits for it
	}
	go e.keep(e.unmaskLoop) // likewise
	if ring != nil {
		time.Sleep(auth.OpeningTime - clock.Now().Sub(opened))
	}
	return e, nil
}

// isShared reports whether a link is to a device that other processes may open: one of the
// kernel's.
func isShared(l transport.Link) bool {
	_, shared := transport.As[transport.Sharer](l)
	return shared
}

// startAuth has the endpoint authenticate frames, if it has keys.
func (e *Endpoint) startAuth(ring *keyring.Ring, file keyFile, opened monotime.Time) {
	if ring == nil {
		return
	}
	e.auth = newAuthenticator(file)
	for nic := range e.nics {
		e.nics[nic].auth = newAuthLink(e, nic, ring, opened)
	}
	e.running.Add(1)
	go e.authLoop() // ends when ended is closed, by Close, which waits for it
}

// Node returns this node's number.
func (e *Endpoint) Node() NodeID { return e.cfg.Node }

// Cluster returns the cluster's id.
func (e *Endpoint) Cluster() ClusterID { return e.cfg.Cluster }

// MaxPayload returns the longest message, in bytes, that fits every link of the endpoint.
func (e *Endpoint) MaxPayload() int { return e.maxPayload }

// TrainPayload returns the longest message, in bytes, that may go in a train (see
// transport.Trainer) by every link of the endpoint: what to cut long data to. It is MaxPayload
// where no link sends trains.
func (e *Endpoint) TrainPayload() int { return e.trainPayload }

// TrainFrames returns how many messages of that length go together at most, by every link; 0 if one
// of them sends no trains.
func (e *Endpoint) TrainFrames() int { return e.trainFrames }

// HeaderLen returns what a message costs of the link's MTU, in bytes: HeaderLen, or AuthHeaderLen
// with keys.
func (e *Endpoint) HeaderLen() int { return e.headerLen }

// cacheLine is the size of a processor's cache line, in bytes.
const cacheLine = 64

// Headroom returns how many bytes are free before a message that is sent in place: for mcd's
// header, and for the link's before it. In memory that begins at a cache line, as what make returns
// for a frame does, so does what the kernel copies: a packet without a tag. Where messages go in
// trains there is no more room than a train has between them, so that messages that lie side by
// side, with Headroom, are one piece to the kernel: see transport.Trainer.
func (e *Endpoint) Headroom() int { return e.linkRoom + e.headerLen }

// NICs returns the number of links, which are numbered from 0. For a number that no link has,
// methods that return an error return one, and all others the zero value.
func (e *Endpoint) NICs() int { return len(e.nics) }

// checkNIC returns an error if the endpoint has no such link.
func (e *Endpoint) checkNIC(nic int) error {
	if nic < 0 || nic >= len(e.nics) {
		return fmt.Errorf("NIC %d: the endpoint has %d, numbered from 0", nic, len(e.nics))
	}
	return nil
}

// MAC returns the endpoint's own address on the network of link nic. It is the zero MAC if there is
// no such link.
func (e *Endpoint) MAC(nic int) transport.MAC {
	if e.checkNIC(nic) != nil {
		return transport.MAC{}
	}
	return e.nics[nic].mac
}

// Interface returns the index of the network interface that link nic is attached to, and its
// network namespace, as transport.Attached does. ok is false if the link has none, and if there is
// no such link.
func (e *Endpoint) Interface(nic int) (index int, namespace string, ok bool) {
	if e.checkNIC(nic) != nil {
		return 0, "", false
	}
	a, ok := transport.As[transport.Attached](e.nics[nic].link)
	if ok {
		index, namespace = a.Interface()
	}
	return index, namespace, ok
}

// LinkCounters returns the counters of link nic. All are 0 if there is no such link.
func (e *Endpoint) LinkCounters(nic int) transport.Counters {
	if e.checkNIC(nic) != nil {
		return transport.Counters{}
	}
	return e.nics[nic].link.Counters()
}

// Foreign returns the sender of the last frame of another wire version, and the version. ok is
// false if there was none.
func (e *Endpoint) Foreign() (from transport.MAC, version int, ok bool) {
	v := e.foreign.Load()
	from, ok = unpackMAC(v)
	return from, int(v >> 48 & 0xff), ok
}

func (e *Endpoint) noteForeign(from transport.MAC, version int) {
	e.foreign.Store(uint64(version)<<48 | packMAC(from))
}

// Done returns a channel that is closed as all waits end: when the endpoint is closed, or has lost
// all its links. It is for layers above whose goroutines end with the endpoint.
func (e *Endpoint) Done() <-chan struct{} { return e.ended }

// Close closes the ports and the links, ends all waits with ErrClosed, also those for completions
// of layers above, and waits for the endpoint's goroutines. Further calls wait until it is closed,
// and do nothing. Receive functions must not call it.
func (e *Endpoint) Close() error {
	if e.closed.Swap(true) {
		<-e.shut
		return nil
	}
	defer close(e.shut)
	e.end(ErrClosed)
	for !e.tryLockPoll() { // for good: nobody polls the links any more when they are closed
		runtime.Gosched()
	}
	var errs []error
	for i := range e.nics {
		if l := e.nics[i].auth; l != nil {
			l.verifier.DropHeld()
			l.countExpired()
		}
		e.nics[i].queue.stop()
		errs = append(errs, e.nics[i].link.Close())
	}
	e.wakeUnmaskLoop()
	e.running.Wait()
	e.sleeper.forget()
	e.tick.Stop()
	e.spinning.end()
	return errors.Join(errs...)
}

// end ends all waits with cause, those for completions of layers above too, unless they have ended
// before. From then on no port is opened.
func (e *Endpoint) end(cause error) {
	if !e.over.CompareAndSwap(nil, &cause) {
		return
	}
	ports := e.openPorts()
	for _, p := range ports {
		p.stopWith(cause)
	}
	close(e.ended)
	e.sleeper.interrupt()
	for _, p := range ports { // last: a service may take its time to have a lock back
		p.closeWith(cause)
	}
}

// err returns why all waits have ended, or nil if they have not.
func (e *Endpoint) err() error {
	if cause := e.over.Load(); cause != nil {
		return *cause
	}
	return nil
}

// openPorts returns the ports that are open. After over is set, no port is opened that is not among
// them.
func (e *Endpoint) openPorts() (open []*Port) {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	for i := range e.ports {
		if p := e.ports[i].Load(); p != nil {
			open = append(open, p)
		}
	}
	return open
}
