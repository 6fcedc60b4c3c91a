package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// ExchangePort is the default port of an Exchanger.
const ExchangePort mcd.PortID = 252

// MaxBlob is the longest blob of an exchange, in bytes.
const MaxBlob = 64 << 20

const (
	// minPeerTimeout is what a busy machine takes to wake a process.
	minPeerTimeout = time.Millisecond
	// askInterval is the time after which a request without an answer is repeated. It doubles, up
	// to maxInterval, for a node that says nothing: among many, it may have thousands to answer.
	askInterval = 20 * time.Millisecond
	maxInterval = 320 * time.Millisecond
	// maxPatience is the longest time without a request to a node that has no answer yet and sends
	// it unasked.
	maxPatience = time.Second
	// lingerTime is how long Close answers nodes that may have missed the last message: longer than
	// such a node may stand still for want of a core, and than it waits before it asks again.
	lingerTime = 2 * maxPatience
	// lingerLeast is how many bytes of its blob others fetch in that time, at least, for Close to
	// answer as long again: 32 KiB/s. Whatever others ask for, it ends once MaxBlob has had the
	// time that it takes so: 34 minutes.
	lingerLeast = 64 << 10
)

// ExchangerConfig of an Exchanger. The zero value works.
type ExchangerConfig struct {
	// Port of every node. Zero is ExchangePort.
	Port mcd.PortID
	// PeerTimeout is how long a node may be silent that is asked. Zero: until the context ends;
	// less than a millisecond is refused. The time in which this node itself stood still does not
	// count.
	PeerTimeout time.Duration
	// Answer returns the answer to a request of Ask. With ready false there is none yet, and the
	// other node keeps asking. It is called again for each repeated request, and for each part of
	// an answer that is longer than a message: one of another length begins anew. One that is
	// longer than MaxBlob is an error of the other node's Ask. It runs in whichever goroutine polls
	// the endpoint, and must not wait. Its request is valid until it returns.
	Answer func(from mcd.NodeID, request []byte) (answer []byte, ready bool)
}

// Exchanger passes small amounts of data among all nodes of an endpoint's table, such as keys at
// the start of a program and results at its end. It asks until it is answered, so that lost
// messages do no harm. Bulk data is for memfifo and mpi.
//
// All nodes call Exchange and Gather in the same order. One call at a time is under way; others
// wait for it, until their contexts end: then they have done nothing. After another error of
// Exchange or Gather the Exchanger can only be closed.
type Exchanger struct {
	ep    *mcd.Endpoint
	port  *mcd.Port
	cfg   ExchangerConfig
	nodes []mcd.NodeID
	self  int    // place of this node in nodes
	life  uint32 // its incarnation

	call    chan struct{}  // of capacity 1: holds a token while a call is under way
	failed  error          // of an earlier round; guarded by call
	request uint32         // number of the last Ask; guarded by call
	turn    mcd.Completion // there is something for the call under way to look at

	mu        sync.Mutex    // guards what follows, and that turn is completed once between two resets
	start     monotime.Time // of the call under way
	round     uint32        // of the last Exchange or Gather
	ended     uint32        // the last round that this node has completed
	posted    [2][]byte     // this node's blobs of the last two rounds, by round modulo 2
	posts     uint32        // round of the newest of these
	questions uint32        // who is there: number of the last one
	peers     []peerState
	closing   bool
	fetched   int // bytes of this node's blob that others have fetched since linger has begun
}

// peerState is what an Exchanger knows of another node.
type peerState struct {
	peerLife
	silent time.Duration // for which nothing was heard of it while it was asked
	waits  uint32        // the round for which it has fetched a blob that was not posted yet
	done   uint32        // the last round that it has completed
	linger bool          // it may still need an answer of the last round
	served uint32        // in Close: how many bytes of this node's blob it has fetched
	asks   wire.Message  // what the call under way asks of it: its blob of this round, or the request of an Ask
	asked  wire.Message  // of that, what it has not answered; kind 0: nothing
	blob   []byte        // its answer, as far as it is here
	length uint32        // of the answer to a request, as the last part of it had it
	nic    int           // the link to it: by which it was heard last, or the next one if it does not answer
	tried  int           // the link by which it was asked last, the next parts of an answer excepted
	again  monotime.Time // no unanswered message is repeated before
	pause  time.Duration // from the next one to its repetition
}

// OpenExchanger opens the port of an endpoint whose node table is complete: it may leave out the
// endpoint's own node alone. Errors: mcd.ErrPortBusy; links without room for a part of a blob.
//
// A node that begins anew, as its process was started again, takes its part with a new Exchanger.
// Where the others have not completed the first round, they take its blob of that in place of the
// one that it had before, of which they use no part. An Exchanger that has completed a round with a
// node goes on with that life of it alone: the rounds of both end with a *RestartError from then
// on, at either node, and all open new Exchangers to go on. Ask goes on with any life.
//
// One that follows another on the same port, at the same endpoint, is such a life, too: it is
// opened once all nodes have closed the former one, as behind a barrier.
func OpenExchanger(ep *mcd.Endpoint, cfg ExchangerConfig) (*Exchanger, error) {
	if cfg.Port == 0 {
		cfg.Port = ExchangePort
	}
	if cfg.PeerTimeout != 0 && cfg.PeerTimeout < minPeerTimeout {
		return nil, fmt.Errorf("cluster: exchanger: PeerTimeout %v (want 0, or %v or more; "+
			"a number without a unit is in nanoseconds)", cfg.PeerTimeout, minPeerTimeout)
	}
	if most := ep.MaxPayload(); most <= wire.HeaderLen {
		return nil, fmt.Errorf("cluster: exchanger: messages of %d bytes (want more than %d: "+
			"give the link a larger MTU)", most, wire.HeaderLen)
	}
	x := &Exchanger{ep: ep, cfg: cfg, life: incarnation.New(), call: make(chan struct{}, 1)}
	for _, n := range ep.Nodes() {
		x.nodes = append(x.nodes, n.ID)
	}
	self, isThere := slices.BinarySearch(x.nodes, ep.Node())
	if !isThere { // a table may leave its own node out
		x.nodes = slices.Insert(x.nodes, self, ep.Node())
	}
	x.self = self
	x.peers = make([]peerState, len(x.nodes))
	var err error
	x.mu.Lock() // a message may come before the port is known
	defer x.mu.Unlock()
	if x.port, err = ep.OpenPort(cfg.Port, mcd.PortOptions{Receive: x.receive}); err != nil {
		return nil, fmt.Errorf("cluster: exchanger: %w", err)
	}
	return x, nil
}

// Exchange gives blob to all nodes, and returns the blobs of all, in the order of the endpoint's
// node table: for nodes 0 to n-1, by number. It is MPI's Allgather. Errors: a *MissingError, a
// *RestartError.
func (x *Exchanger) Exchange(ctx context.Context, blob []byte) ([][]byte, error) {
	return x.inRound(ctx, "exchange", blob, round{from: x.others(), posts: true, lingers: true})
}

// Gather brings the blobs of all nodes to the root, and returns them there, as Exchange does. On
// the others it returns nil, as soon as the root has all. Errors: as of Exchange.
func (x *Exchanger) Gather(ctx context.Context, root mcd.NodeID, blob []byte) ([][]byte, error) {
	r := slices.Index(x.nodes, root)
	if r < 0 {
		return nil, fmt.Errorf("cluster: gather: root %d: %w", root, mcd.ErrUnknownNode)
	}
	if r == x.self {
		return x.inRound(ctx, "gather", blob, round{from: x.others(), lingers: true})
	}
	_, err := x.inRound(ctx, "gather", blob, round{from: []int{r}, posts: true})
	return nil, err
}

// round is this node's part in one Exchange or Gather.
type round struct {
	from    []int // whose blobs it fetches
	posts   bool  // its own for them to fetch. Else it posts an empty one at the end: it has all
	lingers bool  // others may still need an answer when it has completed the round
}

// inRound runs one Exchange or Gather.
func (x *Exchanger) inRound(ctx context.Context, what string, blob []byte, r round) ([][]byte, error) {
	if len(blob) > MaxBlob {
		return nil, fmt.Errorf("cluster: %s: a blob of %d bytes (want at most %d)", what, len(blob), MaxBlob)
	}
	if err := x.begin(ctx, what); err != nil {
		return nil, err
	}
	defer x.end()
	if x.failed != nil {
		return nil, fmt.Errorf("cluster: %s after an error: %w", what, x.failed)
	}
	x.mu.Lock()
	if x.closing { // Close waits for its turn
		x.mu.Unlock()
		return nil, fmt.Errorf("cluster: %s: %w", what, mcd.ErrClosed)
	}
	x.round++
	x.mu.Unlock()
	if r.posts {
		x.post(blob)
	}
	x.failed = errLeft // unless the wait returns
	x.failed = x.repeat(ctx, what, wire.Message{Kind: wire.Fetch, Number: x.round}, r.from)
	if x.failed != nil {
		return nil, x.failed
	}
	if !r.posts {
		x.post(nil)
	}
	return x.complete(blob, r.lingers), nil
}

// begin waits for the call's turn, until ctx ends. A call that has its turn calls end.
func (x *Exchanger) begin(ctx context.Context, what string) error {
	select {
	case x.call <- struct{}{}: // also where ctx is over: the nodes that are missing are named then
		return nil
	default:
	}
	select {
	case x.call <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cluster: %s: another call is under way: %w", what, ctx.Err())
	}
}

func (x *Exchanger) end() { <-x.call }

// others returns the places of all other nodes.
func (x *Exchanger) others() (all []int) {
	for i := range x.nodes {
		if i != x.self {
			all = append(all, i)
		}
	}
	return all
}

// post makes this node's blob of the round available, and sends its begin to those that wait for
// it.
func (x *Exchanger) post(blob []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.posted[x.round%2], x.posts = slices.Clone(blob), x.round
	for i := range x.peers {
		if x.peers[i].waits == x.round {
			x.sendPart(i, x.round, 0)
		}
	}
}

// complete tells all nodes, by each network, that this one has completed the round, and returns
// what was fetched. If they may still need an answer of it, Close lingers.
func (x *Exchanger) complete(own []byte, lingers bool) (all [][]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.peers {
		p := &x.peers[i]
		all = append(all, p.blob)
		p.blob, p.linger = nil, lingers && i != x.self
	}
	all[x.self] = slices.Clone(own)
	done := wire.Message{Kind: wire.Done, From: x.life, Number: x.round}.Bytes()
	for nic := range x.ep.NICs() {
		_ = x.port.TrySend(nic, mcd.ToAll(x.cfg.Port), done)
	}
	return all
}

// Ask sends a request to a node until its Answer function is ready, and returns the answer.
// Errors: a *MissingError; mcd.ErrUnknownNode; mcd.ErrTooLarge for an answer that is longer than
// MaxBlob.
func (x *Exchanger) Ask(ctx context.Context, node mcd.NodeID, payload []byte) ([]byte, error) {
	i := slices.Index(x.nodes, node)
	if i < 0 || i == x.self {
		return nil, fmt.Errorf("cluster: ask node %d: %w", node, mcd.ErrUnknownNode)
	}
	if err := x.begin(ctx, "ask"); err != nil {
		return nil, err
	}
	defer x.end()
	if errors.Is(x.failed, mcd.ErrClosed) {
		return nil, fmt.Errorf("cluster: ask: %w", mcd.ErrClosed)
	}
	if most := x.ep.MaxPayload() - wire.HeaderLen; len(payload) > most {
		return nil, fmt.Errorf("cluster: ask node %d: a request of %d bytes (want at most %d)",
			node, len(payload), most)
	}
	x.request++
	err := x.repeat(ctx, "ask", wire.Message{Kind: wire.Request, Number: x.request, Data: payload}, []int{i})
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.peers[i]
	answer := p.blob
	p.blob = nil // the answer is the caller's alone
	if err == nil && p.length > MaxBlob {
		return nil, fmt.Errorf("cluster: ask node %d: its answer: %w", node,
			&transport.SizeError{Size: int(p.length), Max: MaxBlob})
	}
	return answer, err
}

// errLeft: another port's function panicked in an earlier round's wait, or ended the goroutine.
var errLeft = errors.New("an earlier round was left before its end")

// repeat asks some nodes, again and again, until all have answered.
func (x *Exchanger) repeat(ctx context.Context, what string, asked wire.Message, nodes []int) error {
	x.mu.Lock()
	x.start = clock.Now()
	watch := standstill.Start(x.start, max(x.cfg.PeerTimeout/10, askInterval))
	for i := range x.peers {
		x.peers[i].silent = 0
	}
	for _, i := range nodes {
		p := &x.peers[i]
		p.asks, p.asked, p.blob, p.length, p.again, p.pause = asked, asked, nil, 0, x.start, askInterval
	}
	x.mu.Unlock()
	defer x.giveUp(nodes) // also if a function that runs in the wait does not return to it
	for {
		err := ctx.Err() // before the look at the clock, and at what has come until then
		x.mu.Lock()
		x.turn.Reset()
		missing := x.missing()
		x.sendTo(missing)
		silent := x.silent(missing, watch.Look(clock.Now()))
		closed := x.closing && asked.Kind != 0
		apart := x.apart(what, asked.Kind, nodes)
		if len(missing) == 0 && asked.Kind == wire.Fetch {
			x.ended = asked.Number // no other life's blob is taken any more
		}
		x.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		switch {
		case closed:
			err = mcd.ErrClosed
		case apart != nil:
			return apart
		}
		if err == nil && len(silent) == 0 {
			if err = awaitTurn(ctx, x.ep, &x.turn, askInterval); err == nil || ctx.Err() != nil {
				continue
			}
		}
		if errors.Is(err, mcd.ErrClosed) {
			return fmt.Errorf("cluster: %s: %w", what, err)
		}
		m := &MissingError{Operation: what, Err: err, Stood: watch.Stood()}
		if err == nil {
			missing, m.Silent = silent, x.cfg.PeerTimeout
		}
		for _, i := range missing {
			m.Nodes = append(m.Nodes, x.nodes[i])
		}
		return m
	}
}

// giveUp ends the asking, after which a request's memory is the caller's again.
func (x *Exchanger) giveUp(nodes []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, i := range nodes {
		x.peers[i].asks, x.peers[i].asked = wire.Message{}, wire.Message{}
	}
}

// missing returns the nodes that the call under way waits for: for answers or, in Close, until they
// have completed the last round.
func (x *Exchanger) missing() (all []int) {
	for i := range x.peers {
		if x.isMissing(&x.peers[i]) {
			all = append(all, i)
		}
	}
	return all
}

// anyMissing is len(missing) > 0.
func (x *Exchanger) anyMissing() bool {
	for i := range x.peers {
		if x.isMissing(&x.peers[i]) {
			return true
		}
	}
	return false
}

func (x *Exchanger) isMissing(p *peerState) bool {
	return p.asked.Kind != 0 || x.closing && p.linger && p.done < x.round
}

// sendTo sends nodes that are missing what is asked of them; in Close, the begin of the blob that
// they wait for: the one that post has sent may be lost.
func (x *Exchanger) sendTo(missing []int) {
	now := clock.Now()
	for _, i := range missing {
		switch p := &x.peers[i]; {
		case now.Before(p.again):
		case p.asked.Kind != 0:
			if p.pause > askInterval && p.nic == p.tried { // it has not answered: the network may be gone
				p.nic = (p.nic + 1) % x.ep.NICs()
			}
			p.tried = p.nic
			x.sendAsked(i)
			p.again, p.pause = now.Add(p.pause), min(2*p.pause, x.longestPause())
		case p.waits == x.round && x.posts == x.round: // else a gather was closed before its root had all
			x.sendPart(i, x.round, 0)
		}
	}
}

// longestPause returns how long a node is not asked that may have lost what it was asked, at most:
// several times in a peer timeout it is.
func (x *Exchanger) longestPause() time.Duration {
	if x.cfg.PeerTimeout > 0 {
		return min(maxInterval, max(x.cfg.PeerTimeout/8, askInterval))
	}
	return maxInterval
}

// patience returns how long a node is not asked that has no blob of this round yet, and sends it
// as soon as there is one: as long as the round has taken so far. A loss then doubles it at most.
func (x *Exchanger) patience(now monotime.Time) time.Duration {
	d := min(now.Sub(x.start), maxPatience)
	if x.cfg.PeerTimeout > 0 {
		d = min(d, x.cfg.PeerTimeout/4)
	}
	return d
}

// silent returns those of some nodes that have not been heard for the peer timeout, so long after
// it was called last.
func (x *Exchanger) silent(nodes []int, since time.Duration) (silent []int) {
	for _, i := range nodes {
		p := &x.peers[i]
		if p.silent += since; x.cfg.PeerTimeout > 0 && p.silent > x.cfg.PeerTimeout {
			silent = append(silent, i)
		}
	}
	return silent
}

// Close closes the port. Before that it answers nodes that have not completed the last round: for
// up to 2 s in which this node runs, and for as long again, several times, where they have fetched
// 64 KiB or more of its blob in that time. A call that is under way ends with mcd.ErrClosed.
// Further calls do nothing.
func (x *Exchanger) Close() (err error) {
	x.mu.Lock()
	x.closing = true
	if !x.turn.Done() {
		x.turn.Complete(nil) // a call under way looks
	}
	x.mu.Unlock()
	x.call <- struct{}{}
	defer x.end()
	defer func() { err = x.port.Close() }() // also if another port's function ends the wait
	if x.failed == nil {
		x.failed = mcd.ErrClosed
		x.mu.Lock()
		for i := range x.peers {
			x.peers[i].again = clock.Now().Add(askInterval)
		}
		x.mu.Unlock()
		for range MaxBlob / lingerLeast {
			if !x.linger() {
				break
			}
		}
	}
	return nil
}

// linger answers nodes that have not completed the last round, for lingerTime at most. It reports
// whether they have fetched so much meanwhile that it is to be called again.
func (x *Exchanger) linger() bool {
	ctx, cancel := standstill.WithTimeout(context.Background(), lingerTime)
	defer cancel()
	x.mu.Lock()
	x.fetched = 0
	x.mu.Unlock()
	err := x.repeat(ctx, "close", wire.Message{}, nil) // the others ask; more cannot be done for them
	x.mu.Lock()
	defer x.mu.Unlock()
	var missing *MissingError
	if errors.As(err, &missing) && missing.Silent > 0 {
		for _, n := range missing.Nodes {
			x.peers[slices.Index(x.nodes, n)].linger = false
		}
		return true // the others may fetch still
	}
	return err != nil && ctx.Err() != nil && x.fetched >= lingerLeast
}
