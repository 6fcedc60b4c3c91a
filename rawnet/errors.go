package rawnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// opError is what package net's connections return: errors.Is finds what err is.
// The zero Addr is none: it was not read.
func opError(op string, source, addr net.Addr, err error) error {
	if addr == (Addr{}) {
		addr = nil
	}
	return &net.OpError{Op: op, Net: Network, Source: source, Addr: addr, Err: err}
}

// dialError says why a stream was not opened.
func dialError(reason mux.Reason, cause error) error {
	switch reason {
	case mux.NoListener:
		return fmt.Errorf("%w: nobody listens for the service", syscall.ECONNREFUSED)
	case mux.ListenerGone:
		return fmt.Errorf("%w: the listener was closed before it took the connection", syscall.ECONNREFUSED)
	case mux.BacklogFull:
		return fmt.Errorf("%w: the listener's backlog is full (its program is slow to accept)", syscall.ECONNREFUSED)
	case mux.TooMany:
		return fmt.Errorf("%w: the node has as many connections as Config.MaxConns allows", syscall.ECONNREFUSED)
	case mux.WrongVersion:
		return fmt.Errorf("%w: the node speaks %w (this one speaks version %d: update the older)",
			syscall.ECONNREFUSED, errVersion, mux.Version)
	case mux.PeerDown:
		return downError(cause)
	}
	return resetError(reason, cause)
}

// downError says that nobody has answered.
func downError(cause error) error {
	down, ok := errors.AsType[*memfifo.PeerDownError](cause)
	if ok && (down.Reason == memfifo.Left || down.Reason == memfifo.Restarted) {
		return fmt.Errorf("%w: %w", syscall.ECONNRESET, cause)
	}
	return timeoutError{fmt.Errorf("%w: %w (is the node up, with rawnet open?)", syscall.ETIMEDOUT, cause)}
}

// timeoutError is syscall.ETIMEDOUT and what has led to it. A net.OpError of it is a timeout.
type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }

// Timeout returns true.
func (timeoutError) Timeout() bool { return true }

// resetError says why a connection has ended that was open.
func resetError(reason mux.Reason, cause error) error {
	if reason == mux.PeerDown {
		return fmt.Errorf("%w: %w", syscall.ECONNRESET, cause)
	}
	return fmt.Errorf("%w: %v", syscall.ECONNRESET, reason)
}

// waitError is how a DialWait ends: by its context, and what stood in the way last.
type waitError struct{ end, last error }

func (e *waitError) Error() string { return e.end.Error() + ": " + e.last.Error() }

func (e *waitError) Unwrap() []error { return []error{e.end, e.last} }

// Timeout is for net.OpError.
func (e *waitError) Timeout() bool { return errors.Is(e.end, context.DeadlineExceeded) }

// endOf returns net.ErrClosed where the domain or endpoint below was closed, and err else.
func endOf(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

var (
	errTimeout error = os.ErrDeadlineExceeded
	errVersion       = errors.New(mux.WrongVersion.String())
)
