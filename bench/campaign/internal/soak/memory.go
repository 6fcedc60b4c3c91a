//go:build linux

package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

const (
	window  = 1 << 16
	put     = 4000
	fifoLen = 1 << 14
	most    = 3000 // bytes of a record: some have two frames
	perTurn = 4    // records that a node pushes in a round: fewer than its neighbour's FIFO has room for
)

// memory is barriers, puts and records: one node puts and pushes to the next.
type memory struct {
	all  [Nodes]*node
	over atomic.Bool
	last atomic.Uint64 // the round after which all nodes end; 0: not known yet
}

// Memory has the nodes put, push and meet at barriers for a time.
func Memory(ctx context.Context, length time.Duration) (o Outcome, err error) {
	s, err := openStage()
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m := &memory{}
	var workers []func(context.Context) error
	for k := range m.all {
		n, err := open(k, s.eps[k])
		if err != nil {
			return o, err
		}
		m.all[k] = n
		workers = append(workers, func(ctx context.Context) error { return n.work(ctx, m) })
	}
	m.meet()
	o, err = s.run(ctx, length, workers, measure, func() { m.over.Store(true) })
	o.Counts["barriers of soaks"] = m.all[0].barriers // of all nodes together; one counts once
	for _, n := range m.all {
		o.Counts["puts of soaks"] += n.puts
		o.Counts["records of soaks"] += n.popped
		o.Wrong = append(o.Wrong, n.wrong...)
	}
	return o, err
}

// meet gives each node the keys of the next one.
func (m *memory) meet() {
	for k, n := range m.all {
		next := m.all[(k+1)%Nodes]
		n.next, n.queue = n.domain.Remote(next.window.Key()), n.domain.Remote(next.fifo.Key())
		n.before = (k + Nodes - 1) % Nodes
	}
}

// node is one of the nodes.
type node struct {
	ep             *mcd.Endpoint
	group          *barrier.Group
	domain         *memfifo.Domain
	window         *memfifo.Window
	fifo           *memfifo.FIFO
	next           *memfifo.Remote // the window of the next node
	queue          *memfifo.Remote // its FIFO
	before         int             // the node that puts and pushes here
	barriers, puts uint64
	pushed, popped uint64
	rng            *rand.Rand
	data           [put]byte
	record, got    [most]byte
	wrong          []string
}

func open(k int, ep *mcd.Endpoint) (n *node, err error) {
	n = &node{ep: ep, rng: rand.New(rand.NewPCG(uint64(k), 1))}
	service, err := barrier.Open(n.ep, barrier.Config{})
	if err == nil {
		n.group, err = service.Group(barrier.GroupConfig{PeerTimeout: peerTimeout})
	}
	if err == nil {
		n.domain, err = memfifo.Open(n.ep, memfifo.Config{PeerTimeout: peerTimeout})
	}
	if err == nil {
		n.window, err = n.domain.Register(1, make([]byte, window), memfifo.All)
	}
	if err == nil {
		n.fifo, err = n.domain.NewFIFO(1, make([]byte, fifoLen))
	}
	return n, err
}

// work does rounds until node 0 says that the time is over. It says so before a barrier, and the
// others look behind it.
func (n *node) work(ctx context.Context, m *memory) error {
	for round := uint64(1); ; round++ {
		if n.ep.Node() == 0 && m.over.Load() {
			m.last.Store(round)
		}
		if err := n.round(ctx, round); err != nil {
			return fmt.Errorf("node %d, round %d: %w", n.ep.Node(), round, err)
		}
		if m.last.Load() == round {
			return nil
		}
	}
}

// round puts and pushes to the next node, pops what the node before pushes, and looks at what that
// has put, between two barriers: the second keeps a put away from who still reads.
func (n *node) round(ctx context.Context, round uint64) error {
	for i := range n.data {
		n.data[i] = byte(round)
	}
	binary.BigEndian.PutUint64(n.data[:], round)
	if err := n.next.Put(ctx, 0, n.data[:]); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	n.puts++
	for range perTurn {
		if err := n.push(ctx); err != nil {
			return fmt.Errorf("push: %w", err)
		}
	}
	for range perTurn {
		if err := n.pop(ctx); err != nil {
			return fmt.Errorf("pop: %w", err)
		}
	}
	if err := n.domain.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	for turn := range 2 {
		if err := n.group.Barrier(ctx); err != nil {
			return fmt.Errorf("barrier: %w", err)
		}
		n.barriers++
		// The neighbour's bytes of this round are this node's, too.
		if turn == 0 && !bytes.Equal(n.window.Bytes()[:put], n.data[:]) {
			n.broken("round %d: what node %d has put is not what is there", round, n.before)
		}
	}
	return nil
}

// push appends a record to the next node's FIFO: its number, and bytes that follow from it.
func (n *node) push(ctx context.Context) error {
	n.pushed++
	b := n.record[:8+n.rng.IntN(most-8+1)]
	fill(b, n.pushed)
	return n.queue.Push(ctx, b)
}

// pop takes the next record of the node before.
func (n *node) pop(ctx context.Context) error {
	size, err := n.fifo.Pop(ctx, n.got[:])
	if err != nil {
		return err
	}
	n.popped++
	want := n.record[:size]
	fill(want, n.popped)
	if size < 8 || !bytes.Equal(n.got[:size], want) {
		n.broken("record %d of node %d is not what was pushed", n.popped, n.before)
	}
	return nil
}

func fill(b []byte, number uint64) {
	for i := range b {
		b[i] = byte(number) + byte(i)
	}
	if len(b) >= 8 {
		binary.BigEndian.PutUint64(b, number)
	}
}

// broken notes a broken promise: the first few.
func (n *node) broken(format string, args ...any) {
	if len(n.wrong) < 10 {
		n.wrong = append(n.wrong, fmt.Sprintf("node %d: ", n.ep.Node())+fmt.Sprintf(format, args...))
	}
}
