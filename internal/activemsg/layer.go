// Package activemsg is what a layer over memfifo's handlers needs: a domain of its own with one
// public handler, the nodes that it pushes records to, and a Close that tells what nobody has told.
// Packages rawnet, rpc and mpi are such layers.
package activemsg

import (
	"errors"
	"slices"
	"sync"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// HandlerID is that of the layer's records, on every node. The handler is public: its key is known
// to all.
const HandlerID = 1

// Node is another node, or this one. A layer embeds it in what it knows of a node.
type Node struct {
	ID       mcd.NodeID
	To       *memfifo.Remote // its handler
	Expected bool            // it is probed while it says nothing; the layer's lock guards it
	Lives    int             // how often it was down: what is of one life is not for the next; likewise
}

// Died says that the node is down: nothing is expected of it any more.
func (n *Node) Died() {
	n.Expected = false
	n.Lives++
}

// Layer is a domain, its handler, and the nodes, of which the layer has an N each.
type Layer[N any] struct {
	Domain  *memfifo.Domain
	Handler *memfifo.Handler
	Nodes   map[mcd.NodeID]*N // made by Node; the layer's lock guards it

	make    func(Node) *N
	mu      sync.Mutex // guards what follows; taken inside the domain's lock
	closing bool
	lost    []*memfifo.PeerDownError // what Down was told of since
	known   []mcd.NodeID             // that are down
	telling *memfifo.PeerDownError   // what Down is being told of, since before that; or nil
}

// Open opens a domain on an endpoint, with a public handler. make makes what the layer knows of a
// node. h's functions take the layer's lock, which the caller of Open holds: a record may come as
// soon as there is a port, and waits for the layer. Errors: mcd.ErrPortBusy.
func Open[N any](
	ep *mcd.Endpoint, cfg memfifo.Config, h memfifo.HandlerConfig, make func(Node) *N,
) (l *Layer[N], err error) {
	l = &Layer[N]{Nodes: map[mcd.NodeID]*N{}, make: make}
	down := h.Down
	h.Public = true
	h.Down = func(err *memfifo.PeerDownError) {
		l.tell(err)
		defer l.tell(nil)
		down(err)
	}
	cfg.Handlers = map[uint16]memfifo.HandlerConfig{HandlerID: h}
	if l.Domain, err = memfifo.Open(ep, cfg); err != nil {
		return nil, err
	}
	l.Handler = l.Domain.Handler(HandlerID)
	return l, nil
}

// Node returns what the layer knows of a node. The caller holds the layer's lock.
func (l *Layer[N]) Node(id mcd.NodeID) *N {
	n := l.Nodes[id]
	if n == nil {
		n = l.make(Node{ID: id, To: l.Domain.Remote(memfifo.PublicKey(id, HandlerID))})
		l.Nodes[id] = n
	}
	return n
}

// tell notes what Down is told of, which the domain does one after the other; nil is that it was.
func (l *Layer[N]) tell(err *memfifo.PeerDownError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.telling = nil
	switch {
	case err == nil:
	case l.closing:
		l.lost = append(l.lost, err)
	default:
		l.telling = err
	}
}

// Closing has Close tell of the nodes that are down from now on.
func (l *Layer[N]) Closing() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
}

// KnowDown says that a node is down, as others have told: Close does not name it.
func (l *Layer[N]) KnowDown(node mcd.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := !l.closing || l.telling != nil && l.telling.Node == node
	if before && !slices.Contains(l.known, node) {
		l.known = append(l.known, node)
	}
}

// Close flushes and closes the domain. The error names the nodes that have not confirmed what was
// pushed to them. It does not name those that were down before Closing, of which Down or KnowDown
// was told, those to which nothing was under way, and those that have left: a cluster that ends has
// some such. Nor does it tell that another program has a node's port, which refuses the records.
func (l *Layer[N]) Close() error {
	l.Closing()
	errs := []error{untold(l.Domain.Close())}
	l.mu.Lock()
	defer l.mu.Unlock()
	var named []mcd.NodeID
	for _, down := range l.lost { // also those of which a push has heard since, or a flush of the layer's
		known := slices.Contains(named, down.Node) || slices.Contains(l.known, down.Node)
		switch {
		case known:
		case down.Reason == memfifo.Left: // what was pushed when it had gone is lost, too
			l.known = append(l.known, down.Node)
		case down.Lost:
			named = append(named, down.Node)
			errs = append(errs, down)
		}
	}
	return errors.Join(errs...)
}

// untold returns what is left of an error without nodes that are down, and without refusals of the
// layer's records: what dialed or called there has failed. Those of other memory are left.
func untold(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, e := range joined.Unwrap() {
			rest = append(rest, untold(e))
		}
		return errors.Join(rest...)
	}
	if _, down := errors.AsType[*memfifo.PeerDownError](err); down {
		return nil
	}
	if refused, ok := errors.AsType[*memfifo.AccessError](err); ok && refused.ID == HandlerID {
		return nil
	}
	return err
}
