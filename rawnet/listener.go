package rawnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// Listener takes the connections to a service of this node. It is a net.Listener.
type Listener struct {
	n       *Net
	l       *mux.Listener // Net.mu guards it
	addr    Addr
	accepts sync.Mutex // one Accept at a time waits

	// Net.mu guards what follows.
	waiter   waiter
	deadline deadline
}

var _ net.Listener = (*Listener)(nil)

// Listen takes connections to a service of this node: "echo", ":echo" or "node:echo". Those that
// come are queued until Accept, as many as Config.Backlog; further ones are refused. Errors, in a
// *net.OpError: syscall.EADDRINUSE, net.ErrClosed.
func (n *Net) Listen(service string) (*Listener, error) {
	addr, err := n.resolveOwn(service)
	if err != nil {
		return nil, opError("listen", nil, addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, opError("listen", nil, addr, net.ErrClosed)
	}
	l, err := n.mux.Listen(addr.Service, n.cfg.Backlog)
	if err != nil {
		return nil, opError("listen", nil, addr, fmt.Errorf("%w: %w", syscall.EADDRINUSE, err))
	}
	listener := &Listener{n: n, l: l, addr: addr}
	l.Owner = listener
	return listener, nil
}

// Addr returns the service's Addr.
func (l *Listener) Addr() net.Addr { return l.addr }

// Accept waits for the next connection, a *Conn. Errors, in a *net.OpError: net.ErrClosed,
// os.ErrDeadlineExceeded.
func (l *Listener) Accept() (net.Conn, error) {
	l.accepts.Lock()
	defer l.accepts.Unlock()
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for {
		switch {
		case l.l.Closed():
			return nil, opError("accept", nil, l.addr, net.ErrClosed)
		case l.deadline.passed:
			return nil, opError("accept", nil, l.addr, errTimeout)
		}
		if s := l.l.Accept(); s != nil {
			return l.n.newConn(s, l.addr, dialerAddr(s, mcd.NodeID(s.Node()))), nil
		}
		if err := l.n.await(context.Background(), &l.waiter); err != nil {
			return nil, opError("accept", nil, l.addr, err)
		}
	}
}

// dialerAddr returns the address of the end that has dialed.
func dialerAddr(s *mux.Stream, node mcd.NodeID) Addr {
	return Addr{node, strconv.FormatUint(s.Number(), 16)}
}

// SetDeadline sets when Accept ends with os.ErrDeadlineExceeded. Zero is never.
func (l *Listener) SetDeadline(t time.Time) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.l.Closed() {
		return opError("set", nil, l.addr, net.ErrClosed)
	}
	l.deadline.set(l.n, t, &l.waiter)
	return nil
}

// Close ends the listener: Accept ends with net.ErrClosed, the service's name is free, and
// connections that wait for Accept are reset.
func (l *Listener) Close() error {
	l.n.mu.Lock()
	if l.l.Closed() {
		l.n.mu.Unlock()
		return opError("close", nil, l.addr, net.ErrClosed)
	}
	l.l.Close()
	l.deadline.stop()
	l.waiter.wake()
	for _, p := range l.n.layer.Nodes {
		if l.n.mux.Owes(uint16(p.ID)) {
			l.n.startControl(p)
		}
	}
	l.n.mu.Unlock()
	return nil
}
