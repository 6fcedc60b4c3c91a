package afpacket

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// expiredConn is a descriptor whose read deadline an earlier sleeper's context has left in the past; a later read
// goes on until there is another deadline.
type expiredConn struct {
	syscall.RawConn
	reads   int
	expired chan struct{}
}

func (c *expiredConn) Read(func(uintptr) bool) error {
	if c.reads++; c.reads > 1 {
		select {
		case <-c.expired:
		case <-time.After(10 * time.Second):
			return errors.New("nobody ended the sleep")
		}
	}
	return os.ErrDeadlineExceeded
}

// A context that ends just while the deadline of an earlier one is taken back ends the sleep all the same.
func TestDeadlineOfAnEarlierSleeper(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	conn := &expiredConn{expired: make(chan struct{}, 1)}
	ours := make(chan struct{})
	s := NewSleeper(conn, func(at time.Time) error {
		if !at.IsZero() { // our context's
			close(ours)
			return nil
		}
		cancel()
		<-ours // it came first, and is lost
		return nil
	})
	if err := s.Sleep(ctx, func(uintptr) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}
