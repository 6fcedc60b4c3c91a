package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/mpi/internal/workers"
)

// Config of a world. The zero value works; all processes need the same.
type Config struct {
	// Nodes are the endpoints of the processes: the first one is rank 0. Nil means all nodes that
	// the endpoint knows, by their numbers.
	Nodes []mcd.NodeID
	// Port of messages on every node, 253 at most; barriers have the next one, multicasts the one
	// after that. Zero is DefaultPort.
	Port mcd.PortID
	// PeerTimeout is how long a process may be silent while somebody waits for it; then it is down.
	// Zero is memfifo.DefaultPeerTimeout; less than a millisecond is refused.
	PeerTimeout time.Duration
	// EagerLimit is the longest message, in bytes, that is sent before the receiver asks for it.
	// Zero is DefaultEagerLimit.
	EagerLimit int
	// OfferFrom is the shortest receive, in bytes, that is offered to its sender, which then writes
	// into its memory. Zero is DefaultOfferFrom; MBCF offers all: 1. Then sends of collective
	// operations wait for the offers, so that they are written whichever end is there first.
	OfferFrom int
	// Algorithms is the table by which collective operations choose. Nil is Algorithms().
	Algorithms []Algorithm
}

func (c *Config) setDefaults(ep *mcd.Endpoint) error {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, memfifo.DefaultPeerTimeout)
	c.EagerLimit = cmp.Or(c.EagerLimit, DefaultEagerLimit)
	c.OfferFrom = cmp.Or(c.OfferFrom, DefaultOfferFrom)
	if c.EagerLimit < 0 || c.EagerLimit > MaxEagerLimit || c.OfferFrom < 0 {
		return fmt.Errorf("Config.EagerLimit %d, OfferFrom %d: out of range (0 to %d, and 0 or more)",
			c.EagerLimit, c.OfferFrom, MaxEagerLimit)
	}
	if c.Port > maxPort {
		return fmt.Errorf("Config.Port %d: out of range (%d at most: the next two are taken, too)", c.Port, maxPort)
	}
	if c.Algorithms == nil {
		c.Algorithms = algorithms
	}
	if err := checkAlgorithms(c.Algorithms); err != nil {
		return err
	}
	var known []mcd.NodeID
	for _, n := range ep.Nodes() {
		known = append(known, n.ID)
	}
	slices.Sort(known)
	if c.Nodes == nil {
		if c.Nodes = known; !slices.Contains(known, ep.Node()) {
			return fmt.Errorf("the endpoint's node table does not have this node, %d (fill it by cluster.Join, "+
				"or mcd.Config.Nodes)", ep.Node())
		}
	}
	for _, n := range c.Nodes {
		if _, is := slices.BinarySearch(known, n); !is && n != ep.Node() {
			return fmt.Errorf("Config.Nodes %v: node %d: %w", c.Nodes, n, mcd.ErrUnknownNode)
		}
	}
	if !slices.Contains(c.Nodes, ep.Node()) {
		return fmt.Errorf("Config.Nodes %v: this node, %d, is not among them", c.Nodes, ep.Node())
	}
	return nil
}

// World is one process' part in message passing. All its methods, and those of its communicators
// and requests, may be called from any goroutine.
type World struct {
	ep         *mcd.Endpoint
	cfg        Config
	layer      *activemsg.Layer[process] // mu guards its nodes
	barriers   *barrier.Service
	ranks      map[mcd.NodeID]matching.Rank
	all        []*process // by rank
	places     []mcd.Node // where they run: as the endpoint knew it at first
	me         *process
	comm       *Comm
	comms      map[uint32]*Comm // all, by context; mu guards it
	frame      int              // the longest record that fits a frame
	ended      context.Context
	end        context.CancelFunc
	fetching   context.Context // ends first
	endFetches context.CancelFunc
	departed   chan struct{} // closed once the others were told goodbye
	closing    chan struct{} // closed at the end of Close
	running    workers.Pool  // goroutines of ours

	multicasts *mcd.Port   // or nil: no algorithm has any
	asking     *time.Timer // for multicasts that have not come
	held       *time.Timer // of sends that wait for offers; mu guards it

	windowsOnce   sync.Once // sets these two
	windowHandler *memfifo.Handler
	windowErr     error

	mu        sync.Mutex // guards all below, and what says so elsewhere; taken inside memfifo's lock
	closed    bool
	unplugged bool       // the endpoint was closed before the world
	ending    bool       // Close was called
	lost      []*Request // what Bsend has sent, and nobody has received since
	idle      sync.Cond  // an item was carried out
	engine    *matching.Engine
	out       []matching.Output // of the engine's last call
	touched   []*process        // whose queues that has filled
	incoming  matching.Record   // that is being handled
	gone      []byte            // memory of a record
	active    *Request          // the first of those that are not complete
	spare     spare
	probes    []*probe
	windows   map[uint32]*window // by context
	leaving   []*window          // that were freed, and have something to send
	contexts  uint32             // how many this process has given to communicators
	making    int                // communicators that are being made
	early     []earlyRecord
	probing   bool      // all processes are expected
	awaited   []awaited // multicasts
	nextAsk   time.Time // when asking fires; or zero
	aging     bool      // held fires
	stats     Counters
}

// process is one of the world's. World.mu guards what activemsg.Node does not.
type process struct {
	activemsg.Node
	rank   matching.Rank
	queue  []item            // to be carried out in this order
	memory []item            // of an empty queue
	busy   bool              // by a goroutine
	record []byte            // memory of the one that is carried out
	post   memfifo.PostedPut // the first of queue, if that is a write
	err    error             // why it is down
	met    bool              // something came from it, or something else than nothing went to it
}

// Counters of a world.
type Counters struct {
	Sent      uint64 `json:"sent"`      // messages
	Eager     uint64 `json:"eager"`     // of these, sent with their bytes
	Written   uint64 `json:"written"`   // of these, written into the receive's memory
	Requested uint64 `json:"requested"` // of these, read by the receiver
	Kept      uint64 `json:"kept"`      // messages that came before their receive
	Malformed uint64 `json:"malformed"` // records that make no sense
	Stale     uint64 `json:"stale"`     // records of processes that are down: of a next life of theirs
	Version   uint64 `json:"version"`   // records of another version

	Multicasts uint64 `json:"multicasts"` // Bcasts of this process that went as one frame
	Asked      uint64 `json:"asked"`      // requests for multicasts that had not come

	SentBytes      uint64 `json:"sent_bytes"`      // of Sent
	WrittenBytes   uint64 `json:"written_bytes"`   // of Written
	RequestedBytes uint64 `json:"requested_bytes"` // of Requested

	Frames memfifo.Counters `json:"frames"`
}

// Open begins message passing on an endpoint. All processes open a world, at about the same time:
// one that is not there when another one has waited for it for Config.PeerTimeout is down. Where
// one world follows the other on the same endpoints, take ports in turns, three further on each
// second time: who opens the next one meets others that are still closing the last one. Errors:
// mcd.ErrPortBusy; mcd.ErrUnknownNode of Config.Nodes.
func Open(ep *mcd.Endpoint, cfg Config) (*World, error) {
	w, err := open(ep, cfg)
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	return w, nil
}

func open(ep *mcd.Endpoint, cfg Config) (*World, error) {
	if err := cfg.setDefaults(ep); err != nil {
		return nil, err
	}
	w := &World{ep: ep, cfg: cfg, ranks: map[mcd.NodeID]matching.Rank{}, windows: map[uint32]*window{}}
	for k, node := range cfg.Nodes {
		w.ranks[node] = matching.Rank(k)
	}
	if len(w.ranks) != len(cfg.Nodes) {
		return nil, fmt.Errorf("Config.Nodes %v: a node is in it twice", cfg.Nodes)
	}
	w.idle.L = &w.mu
	w.departed, w.closing = make(chan struct{}), make(chan struct{})
	w.ended, w.end = context.WithCancel(context.Background())
	w.fetching, w.endFetches = context.WithCancel(w.ended)
	w.mu.Lock() // a record may come before the layer is known
	defer w.mu.Unlock()
	var err error
	w.layer, err = activemsg.Open(ep,
		memfifo.Config{Port: cfg.Port, PeerTimeout: cfg.PeerTimeout, Refused: w.noteRefused},
		memfifo.HandlerConfig{Record: w.receive, Down: w.down},
		func(n activemsg.Node) *process { return &process{Node: n} })
	if err != nil {
		return nil, err
	}
	if w.barriers, err = barrier.Open(ep, barrier.Config{Port: cfg.Port + 1}); err != nil {
		return nil, errors.Join(err, w.closeLayer())
	}
	if err = w.openMulticasts(); err != nil {
		return nil, errors.Join(err, w.barriers.Close(), w.closeLayer())
	}
	for k, node := range cfg.Nodes {
		p := w.layer.Node(node)
		p.rank = matching.Rank(k)
		w.all = append(w.all, p)
	}
	for _, p := range w.all {
		p.post = memfifo.PostedPut{Tail: p.To.Key(), Sent: func(err error) *memfifo.PostedPut { return w.sent(p, err) }}
	}
	w.me = w.layer.Node(ep.Node())
	w.comm = &Comm{w: w, context: worldContext}
	for k := range w.all {
		w.comm.members = append(w.comm.members, matching.Rank(k))
	}
	w.places = ep.Nodes()
	w.comm.place()
	w.comms = map[uint32]*Comm{worldContext: w.comm}
	w.frame = w.layer.Domain.MaxFrameRecord()
	w.engine = matching.New(matching.Config{
		Rank: w.me.rank, Size: len(w.all), Headers: headers,
		EagerLimit: cfg.EagerLimit, EagerBytes: max(2*cfg.EagerLimit, eagerMemory/len(w.all)), OfferFrom: cfg.OfferFrom,
		MaxLent: maxWindows,
	})
	return w, nil
}

// crowds reports whether a host has more of some processes than cores.
func (w *World) crowds(members []matching.Rank) bool {
	return barrier.ShapeOf(w.nodes(members), w.places).Crowded()
}

// nodes returns where processes are.
func (w *World) nodes(members []matching.Rank) []mcd.NodeID {
	nodes := make([]mcd.NodeID, len(members))
	for k, rank := range members {
		nodes[k] = w.all[rank].ID
	}
	return nodes
}

// Comm returns the communicator of all processes: MPI_COMM_WORLD.
func (w *World) Comm() *Comm { return w.comm }

// Counters returns the counters.
func (w *World) Counters() Counters {
	frames := w.layer.Domain.Counters() // before mu is taken
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := w.stats
	stats.Frames = frames
	return stats
}

// receive takes a record: a memfifo.Handler's function, in the goroutine that polls.
func (w *World) receive(from memfifo.Sender, rec []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed { // nobody waits any more
		return
	}
	rank, known := w.ranks[from.Node()]
	if known {
		w.all[rank].met = true
	}
	r := &w.incoming
	data, err := wire.Parse(r, rec)
	switch {
	case known && w.all[rank].err != nil:
		w.stats.Stale++
		if err != nil || r.Kind != matching.Gone {
			w.postGone(w.all[rank], from)
		}
		return
	case err == nil && known && r.Kind == matching.Gone:
		w.fail(from.Node(), errGone)
		return
	case known && len(w.all[rank].queue) > maxUntaken:
		w.giveUp(w.all[rank], errUntaken)
		return
	}
	w.out = w.out[:0]
	switch {
	case known && wire.IsComm(rec):
		err = w.receiveComm(rank, rec)
	case known && wire.IsMulticast(rec):
		err = w.takeMulticast(rank, rec, true)
	case err == nil && known:
		w.out, err = w.engine.Handle(rank, r, data, w.out)
	}
	if !known {
		err = wire.ErrMalformed
	}
	if w.countBad(err); err != nil {
		return
	}
	w.act()
	w.dropLate(r)
	for _, p := range w.touched {
		w.answer(p, from)
	}
	w.touched = w.touched[:0]
}

// dropLate drops a message of a collective operation that has failed here before it came. The
// caller holds mu, and has what was queued carried out.
func (w *World) dropLate(r *matching.Record) {
	if r.Kind != matching.Eager && r.Kind != matching.Request || r.Context%2 == 0 {
		return
	}
	if c := w.comms[r.Context-1]; c != nil && c.isOver(r.Tag) {
		c.dropOver(r.Tag)
	}
}

// countBad counts a record that was not taken. The caller holds mu.
func (w *World) countBad(err error) {
	switch {
	case errors.Is(err, wire.ErrVersion):
		w.stats.Version++
	case err != nil:
		w.stats.Malformed++
	}
}

// postGone tells a process, which has sent a record, that it is taken for down. The caller holds
// mu.
func (w *World) postGone(p *process, to memfifo.Sender) {
	w.gone = wire.Append(w.gone[:0], &matching.Record{Kind: matching.Gone})
	if to.Post(activemsg.HandlerID, 0, w.gone) != nil && len(p.queue) == 0 { // there is no room at first
		w.queueGone(p)
	}
}

// queueGone has a goroutine tell a process that it is taken for down. The caller holds mu.
func (w *World) queueGone(p *process) {
	p.queue = append(p.queue, item{record: matching.Record{Kind: matching.Gone}})
	w.begin(p)
}

// down fails what is under way with a process: a memfifo.Handler's function. A world that closes
// sends nothing more to one that has left before it.
func (w *World) down(err *memfifo.PeerDownError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.engine != nil { // else it could not be opened
		w.fail(err.Node, err)
	}
}

// fail ends what is under way with a process. The caller holds mu.
func (w *World) fail(node mcd.NodeID, err error) {
	rank, known := w.ranks[node]
	if !known || w.all[rank].err != nil {
		return
	}
	p := w.all[rank]
	p.err = &ProcessError{Rank: int(rank), Err: err}
	if errors.Is(err, memfifo.ErrClosed) { // it is this process' endpoint
		p.err = ErrClosed
	}
	w.layer.KnowDown(node)
	p.memory = nil
	for k, it := range p.queue {
		if r := it.request; r != nil && it.record.Kind != matching.Offer {
			w.complete(r, p.err)
		}
		if k > 0 || !p.busy { // else somebody carries it out
			w.drop(it)
		}
	}
	if p.queue = slices.Clone(p.queue[:min(1, len(p.queue))]); !p.busy {
		p.queue = nil
	}
	w.wakeProbes()
	for _, v := range w.windows {
		v.fail(p)
	}
	if !w.closed { // else the engine's requests are their callers' again
		w.out = w.engine.Down(rank, w.out[:0])
		w.act()
	}
	w.failInAgreements(rank)
	for r := w.active; r != nil; {
		next := r.next
		if v := r.multicast; v.from != nil && v.from.rank == rank {
			w.complete(r, p.err)
		}
		w.failIfMissing(r)
		r = next
	}
	for _, c := range w.comms {
		c.goOn()
	}
	w.beginTouched()
}

// giveUp is fail of a process that may live, as not messages have found it down: it is told so, as
// it may wait for one of this process. The caller holds mu.
func (w *World) giveUp(p *process, err error) {
	if p.err != nil || w.closed {
		return
	}
	w.fail(p.ID, err)
	w.queueGone(p)
}

// deserted returns an error if all other processes of a communicator are down, which it names. The
// caller holds World.mu.
func (c *Comm) deserted() error {
	var errs []error
	for _, rank := range c.members {
		if p := c.w.all[rank]; p != c.w.me {
			if p.err == nil {
				return nil
			}
			errs = append(errs, p.err)
		}
	}
	return errors.Join(errs...)
}

// missing returns why nothing may come from any source, or nil: an error that names the processes
// of a communicator that are down, and that AckFailed has not acknowledged; all of them if no other
// one lives. The caller holds World.mu.
func (c *Comm) missing() error {
	if err := c.deserted(); err != nil {
		return err
	}
	var errs []error
	for k, rank := range c.members {
		if err := c.w.all[rank].err; err != nil && !c.agreements.acknowledged.Has(k) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// failIfMissing ends a receive from any source that may wait for who is down. The caller holds mu.
func (w *World) failIfMissing(r *Request) {
	if r.receive.Owner != r || r.receive.Source != matching.AnySource || !r.active {
		return
	}
	err := r.comm.missing()
	if err == nil {
		return
	}
	w.out = w.engine.Cancel(&r.receive, w.out[:0])
	for k := range w.out {
		if w.out[k].Do == matching.CancelReceive { // else a message is on its way into it
			w.complete(r, err)
		}
	}
	w.act()
}
