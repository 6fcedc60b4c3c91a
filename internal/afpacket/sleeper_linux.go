package afpacket

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Sleeper lets goroutines sleep in the runtime's poller until a descriptor is ready, one at a time.
type Sleeper struct {
	conn     syscall.RawConn
	deadline func(time.Time) error // sets the descriptor's read deadline
	turn     chan struct{}         // capacity 1: whoever sleeps has put his token in
	closed   chan struct{}
}

// NewSleeper makes a sleeper of a descriptor that the runtime's poller watches.
func NewSleeper(conn syscall.RawConn, deadline func(time.Time) error) *Sleeper {
	return &Sleeper{conn: conn, deadline: deadline, turn: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Close makes further sleeps return ErrClosed. Closing the descriptor ends the one in progress.
func (s *Sleeper) Close() { close(s.closed) }

// Sleep blocks until ready returns true, or ctx ends. ready is called at first and whenever the descriptor may have
// become ready. Without a Done channel in ctx it does not allocate.
func (s *Sleeper) Sleep(ctx context.Context, ready func(fd uintptr) bool) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.closed:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.expire)
		defer stop()
	}
	for {
		err := s.conn.Read(ready)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return transport.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		// The deadline is that of an earlier sleeper's context. With it goes ours if that has ended meanwhile.
		if err := s.deadline(time.Time{}); err != nil {
			return transport.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (s *Sleeper) expire() {
	_ = s.deadline(time.Unix(1, 0)) // a descriptor that was closed needs none
}
