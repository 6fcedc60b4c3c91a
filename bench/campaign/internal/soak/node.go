//go:build linux

package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/ring"
)

const (
	window  = 1 << 16
	put     = 4000
	fifoLen = 1 << 14
	most    = 3000 // bytes of a record: some have two frames
	perTurn = 4    // records that a node pushes in a round: fewer than its neighbour's FIFO has room for
)

// node is one of the nodes.
type node struct {
	link           *fault.Link
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

func open(bed *testbed.Bed, k int) (n *node, err error) {
	n = &node{rng: rand.New(rand.NewPCG(uint64(k), 0))}
	l, err := testbed.In(bed.Node(k), func() (*ring.Link, error) {
		return ring.Open(testbed.Interface(0), ring.Config{})
	})
	if err != nil {
		return nil, err
	}
	if n.link, err = fault.New(l, n.rng, faults); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	var table []mcd.Node
	for i := range Nodes {
		table = append(table, mcd.Node{ID: mcd.NodeID(i), MACs: []transport.MAC{testbed.MAC(i, 0)}})
	}
	if n.ep, err = mcd.Open(mcd.Config{Cluster: 1, Node: mcd.NodeID(k), Nodes: table, Spin: -1}, n.link); err != nil {
		return nil, errors.Join(err, n.link.Close())
	}
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
	if err != nil {
		return nil, errors.Join(err, n.ep.Close())
	}
	return n, nil
}

// work does rounds until node 0 says that the time is over. It says so before a barrier, and the
// others look behind it.
func (n *node) work(ctx context.Context, s *soak, until time.Time) error {
	for round := uint64(1); ; round++ {
		if n.ep.Node() == 0 && time.Now().After(until) {
			s.last.Store(round)
		}
		if err := n.round(ctx, round); err != nil {
			return fmt.Errorf("node %d, round %d: %w", n.ep.Node(), round, err)
		}
		if s.last.Load() == round {
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
