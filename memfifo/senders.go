package memfifo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// An owner that only receives has nothing under way to its senders, and would not find out that
// they have died. Those that it expects are probed while they say nothing.

// senders is the nodes that a FIFO's or window's owner expects to hear of. Domain.mu guards it.
type senders []*peer

// Expect names the nodes that push into the FIFO, in place of those named before. They are probed
// while they say nothing. Once all of them are down, and the FIFO is empty, Pop and Wait end with a
// *SendersDownError; a node that has closed its domain counts. Down tells which are down meanwhile.
// A node that pushes again is up; one that was down is probed anew if it is expected anew. Without
// nodes the FIFO expects none, and waits end with the context.
//
// Expect nodes once they are there, behind a barrier for instance: one that does not answer for
// Config.PeerTimeout is down. Errors: mcd.ErrUnknownNode, also for this node itself; ErrClosed.
func (f *FIFO) Expect(nodes ...mcd.NodeID) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.expect(&f.expected, f.closed, nodes)
}

// Down returns the expected nodes that are down, and why.
func (f *FIFO) Down() []*PeerDownError {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.expected.down()
}

// Expect names the nodes that operate on the window, in place of those named before: Wait and
// WaitWord end with a *SendersDownError once all of them are down. See FIFO.Expect.
func (w *Window) Expect(nodes ...mcd.NodeID) error {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.expect(&w.expected, w.revoked, nodes)
}

// Down returns the expected nodes that are down, and why.
func (w *Window) Down() []*PeerDownError {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.expected.down()
}

// expect replaces the nodes that are expected. None of them is down then, so that no wait ends.
func (d *Domain) expect(s *senders, ended bool, nodes []mcd.NodeID) error {
	if ended || d.closed {
		return ErrClosed
	}
	peers := make(senders, 0, len(nodes))
	for _, node := range nodes {
		p := d.peer(node)
		if node == d.ep.Node() {
			return fmt.Errorf("expect node %d: %w (this node itself, which is never down: leave it out)",
				node, mcd.ErrUnknownNode)
		}
		if p == nil {
			return fmt.Errorf("expect node %d: %w", node, mcd.ErrUnknownNode)
		}
		if !slices.Contains(peers, p) {
			peers = append(peers, p)
		}
	}
	now := clock.Now()
	for _, p := range peers {
		p.expect(now)
	}
	s.release()
	*s = peers
	return nil
}

// expect has one more window, FIFO or handler expect the peer, which is not down then.
func (p *peer) expect(now monotime.Time) {
	if p.expecting++; p.expecting == 1 || p.senderDown != nil {
		p.senderDown = nil
		p.heard = now
		p.watch(now)
	}
}

// release ends the expectation.
func (s *senders) release() {
	for _, p := range *s {
		p.expecting--
	}
	*s = nil
}

func (s senders) down() (down []*PeerDownError) {
	for _, p := range s {
		if p.senderDown != nil {
			down = append(down, p.senderDown)
		}
	}
	return down
}

// err returns what ends a wait: all are down.
func (s senders) err() error {
	for _, p := range s {
		if p.senderDown == nil {
			return nil
		}
	}
	if len(s) == 0 {
		return nil
	}
	return &SendersDownError{Nodes: s.down()}
}

// setDown notes that a sender is down: it tells the handlers, and wakes those who may wait for it.
func (p *peer) setDown(err error) {
	down, ok := errors.AsType[*PeerDownError](err)
	if !ok {
		return
	}
	defer p.endWaits(down)
	for _, h := range p.d.handlers {
		defer h.down(p, down) // all are told, also if one does not return
	}
}

// endWaits wakes those who may wait for a sender that is down.
func (p *peer) endWaits(down *PeerDownError) {
	if p.expecting == 0 {
		return
	}
	p.senderDown = down
	for _, f := range p.d.fifos {
		if slices.Contains(f.expected, p) {
			f.waiters.wake(nil)
		}
	}
	for _, w := range p.d.windows {
		if slices.Contains(w.expected, p) {
			w.wake(nil)
		}
	}
}

// SendersDownError names the senders of a FIFO or window that are down: all that were expected. It
// is ErrPeerDown.
type SendersDownError struct{ Nodes []*PeerDownError }

func (e *SendersDownError) Error() string {
	names := make([]string, len(e.Nodes))
	for i, n := range e.Nodes {
		names[i] = fmt.Sprintf("node %d (%v)", n.Node, n.Reason)
		if n.NotSent != nil {
			names[i] = fmt.Sprintf("node %d (%v, as frames to it cannot be sent: %v)", n.Node, n.Reason, n.NotSent)
		}
	}
	return "no sender is left: " + strings.Join(names, ", ")
}

// Is makes errors.Is(err, ErrPeerDown) hold.
func (e *SendersDownError) Is(target error) bool { return target == ErrPeerDown }
