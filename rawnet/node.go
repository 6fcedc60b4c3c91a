package rawnet

import (
	"errors"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// node is another node, or this one, as a driver sees it. Net.mu guards it.
type node struct {
	activemsg.Node      // expected, as there are connections with it
	controlled     bool // a goroutine sends control records, one at a time so that they keep their order
	needsFlush     bool // it was down: pushes to it fail until a Flush
	settling       bool // a goroutine is in settle
	unknown        bool // the table did not have it when it was to be probed: it is not
}

// Control records go at once, wherever they come to be owed: in the goroutine that polls, or in
// that of a Read or Close. Where there is no room a goroutine of the node's takes over until none
// is owed. So no call waits for the room of a control record, and no node for another one's.

// answer sends what is owed to the sender of a record, and settles. The caller holds mu.
func (n *Net) answer(to memfifo.Sender) {
	p := n.layer.Node(to.Node())
	p.known()
	if p.controlled {
		return
	}
	for c, ok := n.mux.Next(uint16(p.ID)); ok; c, ok = n.mux.Next(uint16(p.ID)) {
		n.control = c.Append(n.control[:0])
		if err := to.Post(activemsg.HandlerID, 0, n.control); err != nil {
			n.mux.Unsent(&c)
			n.startControl(p)
			return
		}
		n.sent(&c)
	}
	switch {
	case !n.isUnsettled(p):
	case p.Expected:
		n.startControl(p)
	default:
		to.Expect()
		p.Expected = true
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
	if !n.stopped {
		n.running.Add(1) // Close waits for it: what others owe to the node goes here, too
		defer n.running.Done()
	}
	b := n.getBuffer()
	defer n.putBuffer(b)
	for {
		c, ok := n.mux.Next(uint16(p.ID))
		if !ok {
			break
		}
		rec := c.Append(b.memory[:0])
		life := p.Lives
		n.mu.Unlock()
		err := p.To.PostPush(rec)
		n.mu.Lock()
		if err != nil {
			if p.Lives == life {
				n.mux.Unsent(&c)
			}
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
// is looked at last, as the lock is free in flush and settle. If another port's function, which may
// run in a wait, ends the goroutine, another one goes on.
func (n *Net) controlLoop(p *node) {
	defer n.running.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() {
		if p.controlled {
			n.goControl(p)
		}
	}()
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
		c, ok := n.mux.Next(uint16(p.ID))
		if !ok {
			break
		}
		b = c.Append(b[:0])
		n.pushControl(p, &c, b)
	}
	p.controlled = false
}

// pushControl sends a record that is owed, in controlLoop. The caller holds mu, which is free
// meanwhile.
func (n *Net) pushControl(p *node, c *mux.Control, rec []byte) {
	life := p.Lives
	err := errUnsent
	defer func() {
		switch {
		case err == nil:
			n.sent(c)
		case err == errUnsent && p.Lives == life: //nolint:errorlint // the very value: no error was returned
			n.mux.Unsent(c)
		} // else the node is down, or all is closed: nobody is to hear it
	}()
	n.unlocked(func() {
		err = p.To.PushReconnect(n.ended, rec, func() bool { return n.isLife(p, life) })
	})
}

// errUnsent is what becomes of a record whose push does not return.
var errUnsent = errors.New("not sent")

// unlocked does something without mu. The caller holds that, and does so again also if it does not
// return, as what another port receives may be handled there.
func (n *Net) unlocked(do func()) {
	n.mu.Unlock()
	defer n.mu.Lock()
	do()
}

// isLife reports whether a node was not down since its lives were counted.
func (n *Net) isLife(p *node, life int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.Lives == life
}

// flush has memfifo forget that a node was down. The caller holds mu, which is free meanwhile.
func (n *Net) flush(p *node) {
	p.needsFlush = false
	n.unlocked(func() { _ = n.layer.Domain.Flush(n.ended, p.ID) }) // it says what Down has said
}

// isUnsettled reports whether a node is probed without connections, or not with some, and nobody
// changes that. The caller holds mu.
func (n *Net) isUnsettled(p *node) bool {
	return !p.settling && p.Expected != (n.mux.Streams(uint16(p.ID)) > 0)
}

// settle probes a node or does not, as there are connections with it or not. The caller holds mu,
// which is free meanwhile.
func (n *Net) settle(p *node) {
	for n.isUnsettled(p) {
		p.settling = true
		p.Expected = !p.Expected
		expect := p.Expected
		n.mu.Unlock()
		var err error
		if expect {
			err = n.layer.Handler.Expect(p.ID)
		} else {
			n.layer.Handler.Unexpect(p.ID)
		}
		n.mu.Lock()
		p.settling, p.unknown = false, errors.Is(err, mcd.ErrUnknownNode)
		if p.Expected != expect { // it was down meanwhile, before or after: once more
			p.Expected = n.mux.Streams(uint16(p.ID)) == 0
		}
	}
}

// known notes that the table has a node: if it did not when the node was to be probed, that has
// joined, and is to be probed yet. The caller holds Net.mu.
func (p *node) known() {
	if p.unknown {
		p.unknown, p.Expected = false, false
	}
}
