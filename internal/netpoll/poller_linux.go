package netpoll

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Poller lets goroutines sleep in the runtime's network poller until a descriptor is ready. They
// take turns: one sleeps in the descriptor's Read, the others wait for it.
type Poller struct {
	conn     syscall.RawConn
	deadline func(time.Time) error // sets the descriptor's read deadline
	ready    func(fd uintptr) bool
	failure  atomic.Int32  // an errno that ends the next wait
	kicked   atomic.Bool   // the next wait ends at once
	turn     chan struct{} // capacity 1: the sleeping goroutine has put a token in
	closed   chan struct{}
}

// NewPoller makes a poller of a descriptor that the runtime watches. ready reports whether a wait
// may end; it is called at its start and whenever the descriptor may have become ready.
func NewPoller(conn syscall.RawConn, deadline func(time.Time) error, ready func(fd uintptr) bool) *Poller {
	return &Poller{
		conn: conn, deadline: deadline, ready: ready,
		turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Fail ends a wait with errno.
func (p *Poller) Fail(errno unix.Errno) { p.failure.Store(int32(errno)) }

// FailWithSocketError ends a wait with the error that the socket reports (SO_ERROR), if any.
func (p *Poller) FailWithSocketError(fd int) {
	if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && e != 0 {
		p.Fail(unix.Errno(e))
	}
}

// Failed reports whether there is a failure that no wait has returned yet.
func (p *Poller) Failed() bool { return p.failure.Load() != 0 }

// Wait blocks until ready returns true, the descriptor fails (its errno), ctx ends or the poller is
// closed (ErrClosed). It does not allocate if ctx has no Done channel.
func (p *Poller) Wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.closed:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, p.expire)
		defer stop()
	}
	if err := p.sleep(ctx); err != nil {
		return err
	}
	if errno := unix.Errno(p.failure.Swap(0)); errno != 0 {
		return errno
	}
	return nil
}

// sleep reads until ready. The read deadline stands for the end of a context, a kick, or a look. If
// it is one that an earlier wait's has left behind, sleep clears it, and with it perhaps that of
// this context, of a kick, or of a look: so the first two are checked once more before the next
// read, which asks ready.
func (p *Poller) sleep(ctx context.Context) error {
	for {
		err := p.conn.Read(p.ready)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return transport.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case p.kicked.Swap(false):
			return nil // the deadline is the next wait's to clear
		}
		if err := p.deadline(time.Time{}); err != nil {
			return transport.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.kicked.Swap(false) {
			return nil // likewise
		}
	}
}

// Kick ends the wait in progress, or else the next one, as if the descriptor were ready.
func (p *Poller) Kick() {
	p.kicked.Store(true)
	p.expire()
}

// Look has the wait in progress ask ready once more, and go on if that is false. The next wait asks
// in any case.
func (p *Poller) Look() { p.expire() }

func (p *Poller) expire() {
	_ = p.deadline(time.Unix(1, 0)) // fails only on a closed descriptor, which has no readers
}

// Close makes waits return ErrClosed. Closing the descriptor ends the one in progress.
func (p *Poller) Close() { close(p.closed) }
