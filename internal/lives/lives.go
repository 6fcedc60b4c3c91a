// Package lives is for tests of programs whose processes die, begin anew at their addresses, and
// stand still, on paths that are cut one way or both: nodes on one switch in memory.
//
//	n, err := lives.New(4, lives.Config{})
//	ep, err := n.Begin(2)     // a life of node 2
//	n.Cut(2, 0, true)         // node 0 does not hear node 2
//	n.Still(2, true)          // node 2 hears nothing, and what it sends goes when it goes on
//	n.Kill(2)                 // it dies without a word
package lives

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Config of nodes. The zero value loses nothing.
type Config struct {
	Loss float64 // of the frames that a node receives
	Seed uint64  // of what is lost
}

// Nodes are the nodes of a cluster, and the paths between them.
type Nodes struct {
	cfg    Config
	fabric *fabric.Fabric
	net    *fabric.Switch
	table  []mcd.Node
	byMAC  map[transport.MAC]int

	mu    sync.Mutex // guards what follows; taken inside link.mu
	cut   map[[2]int]bool
	still []chan struct{} // by node: closed when it goes on; nil: it does not stand still
	lives []*link         // the present ones; nil: there is none
	count uint64          // of lives
}

// New makes nodes, none of which lives yet.
func New(size int, cfg Config) (*Nodes, error) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		return nil, err
	}
	n := &Nodes{
		cfg: cfg, fabric: f, net: f.AddSwitch(""), byMAC: map[transport.MAC]int{}, cut: map[[2]int]bool{},
		still: make([]chan struct{}, size), lives: make([]*link, size),
	}
	for k := range size {
		mac := transport.MAC{2, 0, 0, 0, byte(k >> 8), byte(k + 1)}
		n.byMAC[mac] = k
		n.table = append(n.table, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{mac}})
	}
	return n, nil
}

// Begin begins a life of a node that has none. Its waits do not spin, so that virtual time goes on.
func (n *Nodes) Begin(k int) (*mcd.Endpoint, error) {
	attached, err := n.fabric.Attach(n.net, fabric.Station{MAC: n.table[k].MACs[0]})
	if err != nil {
		return nil, fmt.Errorf("node %d: %w", k, err)
	}
	n.mu.Lock()
	n.count++
	l := &link{Link: attached, n: n, node: k, rng: rand.New(rand.NewPCG(n.cfg.Seed, n.count))}
	n.lives[k] = l
	n.mu.Unlock()
	return mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: n.table, Spin: -1}, l)
}

// Kill has a node's present life be heard no more, and hear nothing. The caller ends what it runs,
// and closes its endpoint, before the next one begins.
func (n *Nodes) Kill(k int) {
	n.mu.Lock()
	l := n.lives[k]
	n.mu.Unlock()
	if l != nil {
		l.kill()
	}
	n.Still(k, false)
}

// Cut cuts the path from a node to another one, or mends it. The way back is a path of its own.
func (n *Nodes) Cut(from, to int, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]int{from, to}] = cut
}

// Still has a node stand still, or go on: it then hears what was sent to it, and what it has sent
// goes. Its timers go on, as those of one that waits for a link that is stuck.
func (n *Nodes) Still(k int, still bool) {
	n.mu.Lock()
	l, goesOn := n.lives[k], n.still[k]
	switch {
	case still && goesOn == nil:
		n.still[k] = make(chan struct{})
	case !still && goesOn != nil:
		n.still[k] = nil
	}
	n.mu.Unlock()
	if still || goesOn == nil {
		return
	}
	if l != nil {
		l.release()
	}
	close(goesOn)
}

// goesOn returns what is closed when a node goes on that stands still; nil, if it does not.
func (n *Nodes) goesOn(k int) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.still[k]
}

// isCut reports whether a frame of a station does not reach a node.
func (n *Nodes) isCut(from transport.MAC, to int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, known := n.byMAC[from]
	return known && n.cut[[2]int{k, to}]
}

// link is that of one life.
type link struct {
	transport.Link
	n    *Nodes
	node int

	mu   sync.Mutex // guards what follows
	rng  *rand.Rand
	dead bool
	held []transport.Frame // sent while the node stood still
}

// Send holds the frames of a node that stands still.
func (l *link) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return len(frames), nil
	case l.n.goesOn(l.node) == nil:
		return l.Link.Send(frames)
	}
	for _, f := range frames {
		f.Payload = slices.Clone(f.Payload)
		l.held = append(l.held, f)
	}
	return len(frames), nil
}

// release sends what was held. What there is no room for is lost.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		_, _ = l.Link.Send(l.held)
	}
	l.held = nil
}

// Poll returns what has come by paths that are not cut.
func (l *link) Poll(frames []transport.Frame) (n int, err error) {
	if l.n.goesOn(l.node) != nil {
		return 0, nil
	}
	got, err := l.Link.Poll(frames)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range got {
		if !l.dead && !l.n.isCut(frames[i].Src, l.node) && (l.n.cfg.Loss == 0 || l.rng.Float64() >= l.n.cfg.Loss) {
			frames[n] = frames[i]
			n++
		}
	}
	return n, err
}

// Wait waits until a node goes on that stands still.
func (l *link) Wait(ctx context.Context) error {
	if goesOn := l.n.goesOn(l.node); goesOn != nil {
		select {
		case <-goesOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.Link.Wait(ctx)
}

func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.held = true, nil
}

// Close closes the link, and so a node ends that stands still.
func (l *link) Close() error {
	l.kill()
	l.n.Still(l.node, false)
	return l.Link.Close()
}
