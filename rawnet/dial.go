package rawnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// Dial is DialContext without a context.
func (n *Net) Dial(network, address string) (net.Conn, error) {
	return n.DialContext(context.Background(), network, address)
}

// DialContext connects to a service: "3:echo", or "storage:echo" with a name of Config.Names. The
// network is "rawlane"; "tcp" and "" are taken, too, so that DialContext fits http.Transport and
// the like: there a service's name is the port's number. It returns a *Conn once the other node has
// queued the connection for its listener.
//
// Errors, in a *net.OpError: syscall.ECONNREFUSED at once if nobody listens there, or the
// listener's backlog is full; syscall.ETIMEDOUT, with memfifo.ErrPeerDown, if the node does not
// answer for Config.PeerTimeout; syscall.ETIMEDOUT after twice that if it answers, and no Net of it
// does; syscall.EMFILE if this node has Config.MaxConns connections; mcd.ErrUnknownNode;
// net.ErrClosed; the context's.
func (n *Net) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := n.dialAddr(network, address)
	if err != nil {
		return nil, opError("dial", nil, nil, err)
	}
	c, err := n.dial(ctx, addr)
	if err != nil {
		return nil, opError("dial", nil, addr, err)
	}
	return c, nil
}

// DialWait is DialContext that waits until somebody listens, as a server may start after its
// clients. While the connection is refused, or the node does not answer, it dials again, after
// milliseconds at first and a tenth of a second later, until ctx ends: then errors.Is finds in the
// error ctx's, and what stood in the way last.
func (n *Net) DialWait(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := n.dialAddr(network, address)
	if err != nil {
		return nil, opError("dial", nil, nil, err)
	}
	var last error
	for wait := redialFirst; ; wait = min(2*wait, redialLast) {
		c, err := n.dial(ctx, addr)
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil && last != nil:
			return nil, opError("dial", nil, addr, &waitError{ctx.Err(), last})
		case !passes(err):
			return nil, opError("dial", nil, addr, err)
		}
		last = err
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-n.ended.Done():
		}
	}
}

// passes reports whether a dial may succeed later.
func passes(err error) bool {
	return errors.Is(err, memfifo.ErrPeerDown) || errors.Is(err, syscall.ETIMEDOUT) ||
		errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, errVersion)
}

// dialAddr reads what a dialer is told.
func (n *Net) dialAddr(network, address string) (Addr, error) {
	if err := checkNetwork(network, "tcp"); err != nil {
		return Addr{}, err
	}
	return n.resolve(address)
}

// dial connects. Where the node turns out to have restarted, or to have left, it tries once more:
// the first attempt was for a life that is over, and can have had no effect.
func (n *Net) dial(ctx context.Context, addr Addr) (*Conn, error) {
	c, err := n.tryDial(ctx, addr)
	down, ok := errors.AsType[*memfifo.PeerDownError](err)
	if ok && (down.Reason == memfifo.Left || down.Reason == memfifo.Restarted) {
		c, err = n.tryDial(ctx, addr)
	}
	return c, err
}

func (n *Net) tryDial(ctx context.Context, addr Addr) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, net.ErrClosed
	}
	s, err := n.mux.Dial(uint16(addr.Node))
	if err != nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", syscall.EMFILE, err)
	}
	c := n.newConn(s, dialerAddr(s, n.ep.Node()), addr)
	n.settle(c.peer)
	n.mu.Unlock()
	connected := false
	defer func() {
		if !connected { // also if what is handled in a wait does not return
			_ = c.Close() // the first: no error
		}
	}()
	if err = c.peer.To.PushReconnect(ctx, s.AppendOpen(nil, addr.Service), c.isOpening); err != nil {
		n.mu.Lock()
		s.Abort()
		_, cause := s.Failure() // why the Open was not sent, if the node was down meanwhile
		closed := c.closed
		n.mu.Unlock()
		switch {
		case closed: // while the Net closes, likewise
			err = net.ErrClosed
		case errors.Is(err, memfifo.ErrPeerDown):
			err = downError(cmp.Or(cause, err))
		}
		return nil, endOf(err)
	}
	n.mu.Lock()
	c.peer.known()
	n.settle(c.peer)
	n.mu.Unlock()
	if err = c.awaitAnswerBriefly(ctx); err != nil {
		return nil, endOf(err)
	}
	connected = true
	return c, nil
}

// isOpening reports whether the stream waits for its answer: it may have ended with the node's
// former life, and its Open would be an orphan in the next.
func (c *Conn) isOpening() bool {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.s.State() == mux.Opening
}

// awaitAnswerBriefly is awaitAnswer for no longer than a node that lives may take.
func (c *Conn) awaitAnswerBriefly(ctx context.Context) error {
	most := max(answerParts*min(c.n.cfg.PeerTimeout, math.MaxInt64/answerParts), leastAnswer)
	limit, cancel := standstill.WithTimeout(ctx, most)
	defer cancel()
	err := c.awaitAnswer(limit)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = timeoutError{fmt.Errorf(
			"%w: node %d is up, and what it has on port %d does not answer (is that another program's?)",
			syscall.ETIMEDOUT, c.peer.ID, c.n.cfg.Port)}
	}
	return err
}

// awaitAnswer waits until the peer has accepted the stream.
func (c *Conn) awaitAnswer(ctx context.Context) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for c.s.State() == mux.Opening && !c.closed {
		if err := c.n.await(ctx, &c.reader); err != nil {
			return err
		}
	}
	if c.closed { // also while the record waited for room
		return net.ErrClosed
	}
	if reason, cause := c.s.Failure(); reason != 0 {
		return dialError(reason, cause)
	}
	return nil
}
