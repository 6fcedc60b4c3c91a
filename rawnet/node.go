package rawnet

import (
	"context"
	"errors"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// node is another node, or this one, as a driver sees it. Net.mu guards it.
type node struct {
	id         mcd.NodeID
	to         *memfifo.Remote // its handler
	controlled bool            // a goroutine sends control records, one at a time so that they keep their order
	needsFlush bool            // it was down: pushes to it fail until a Flush
	expected   bool            // it is probed while it says nothing, as there are connections with it
	settling   bool            // a goroutine is in settle
}

// node returns the state for a node. The caller holds mu.
func (n *Net) node(id mcd.NodeID) *node {
	p := n.nodes[id]
	if p == nil {
		p = &node{id: id, to: n.domain.Remote(memfifo.PublicKey(id, handlerID))}
		n.nodes[id] = p
	}
	return p
}

// Control records go at once, wherever they come to be owed: in the goroutine that polls, or in
// that of a Read or Close. Where there is no room a goroutine of the node's takes over until none
// is owed. So no call waits for the room of a control record, and no node for another one's.

// answer sends what is owed to the sender of a record. The caller holds mu.
func (n *Net) answer(to memfifo.Sender) {
	p := n.node(to.Node())
	if p.controlled {
		return
	}
	for c, ok := n.mux.Next(uint16(p.id)); ok; c, ok = n.mux.Next(uint16(p.id)) {
		n.control = c.Append(n.control[:0])
		if err := to.Post(handlerID, 0, n.control); err != nil {
			n.mux.Unsent(&c)
			n.startControl(p)
			return
		}
		n.sent(&c)
	}
	if n.isUnsettled(p) && !p.expected {
		to.Expect()
		p.expected = true
	}
}

// sent notes that a control record was sent. The caller holds mu.
func (n *Net) sent(c *mux.Control) {
	n.events = n.mux.Sent(c, n.events[:0])
	n.deliver()
}

// sendControl sends what is owed to a node, in a caller's goroutine.
func (n *Net) sendControl(p *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.controlled {
		return
	}
	p.controlled = true
	b := n.getBuffer()
	defer n.putBuffer(b)
	for {
		c, ok := n.mux.Next(uint16(p.id))
		if !ok {
			break
		}
		rec := c.Append(b.memory[:0])
		n.mu.Unlock()
		err := p.to.PostPush(rec)
		n.mu.Lock()
		if err != nil {
			n.mux.Unsent(&c)
			n.goControl(p)
			return
		}
		n.sent(&c)
	}
	if p.needsFlush || n.isUnsettled(p) {
		n.goControl(p)
		return
	}
	p.controlled = false
}

// startControl starts a node's controlLoop, unless somebody sends already. The caller holds mu.
func (n *Net) startControl(p *node) {
	if !p.controlled {
		p.controlled = true
		n.goControl(p)
	}
}

// goControl starts a node's controlLoop. The caller holds mu, and has set p.controlled.
func (n *Net) goControl(p *node) {
	if !n.stopped {
		n.running.Add(1) // Close waits for it
		go n.controlLoop(p)
	}
}

// controlLoop sends what is owed to a node, and waits for room. It ends when nothing is owed: that
// is looked at last, as the lock is free in flush and settle.
func (n *Net) controlLoop(p *node) {
	defer n.running.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	var b []byte
	for {
		if p.needsFlush {
			n.flush(p)
			continue
		}
		if n.isUnsettled(p) {
			n.settle(p)
			continue
		}
		c, ok := n.mux.Next(uint16(p.id))
		if !ok {
			break
		}
		b = c.Append(b[:0])
		n.mu.Unlock()
		err := n.push(n.ended, p, b, always)
		n.mu.Lock()
		if err == nil {
			n.sent(&c)
		} else if errors.Is(err, memfifo.ErrClosed) {
			break
		}
	}
	p.controlled = false
}

// flush has memfifo forget that a node was down. The caller holds mu, which is free meanwhile.
func (n *Net) flush(p *node) {
	p.needsFlush = false
	n.mu.Unlock()
	_ = n.domain.Flush(n.ended, p.id) // it says what Down has said
	n.mu.Lock()
}

// isUnsettled reports whether a node is probed without connections, or not with some, and nobody
// changes that. The caller holds mu.
func (n *Net) isUnsettled(p *node) bool {
	return !p.settling && p.expected != (n.mux.Streams(uint16(p.id)) > 0)
}

// settle probes a node or does not, as there are connections with it or not. The caller holds mu,
// which is free meanwhile.
func (n *Net) settle(p *node) {
	for n.isUnsettled(p) {
		p.settling = true
		p.expected = !p.expected
		expect := p.expected
		n.mu.Unlock()
		if expect {
			_ = n.handler.Expect(p.id) // a push to a node that is not known says so
		} else {
			n.handler.Unexpect(p.id)
		}
		n.mu.Lock()
		p.settling = false
	}
}

// push pushes a record, and waits for room. Where the node was down, and nobody has flushed yet, it
// does so and, if the record is wanted still, tries once more: it is for the node's next life.
func (n *Net) push(ctx context.Context, p *node, rec []byte, wanted func() bool) error {
	err := p.to.Push(ctx, rec)
	if !errors.Is(err, memfifo.ErrPeerDown) {
		return err
	}
	if err := n.domain.Flush(ctx, p.id); err != nil && !errors.Is(err, memfifo.ErrPeerDown) {
		return err
	}
	if !wanted() {
		return err
	}
	return p.to.Push(ctx, rec)
}

// always is for records that are wanted in the node's next life, too.
func always() bool { return true }
