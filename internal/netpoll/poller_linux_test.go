package netpoll

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// expiredConn is a descriptor whose read deadline an earlier wait's context has left in the past. A
// later read goes on until there is another deadline.
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
			return errors.New("nothing ended the read")
		}
	}
	return os.ErrDeadlineExceeded
}

// A context that ends just while the deadline of an earlier one is cleared ends the wait all the
// same.
func TestDeadlineOfAnEarlierWait(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	conn := &expiredConn{expired: make(chan struct{}, 1)}
	ours := make(chan struct{})
	p := NewPoller(conn, func(at time.Time) error {
		if !at.IsZero() { // our context's
			close(ours)
			return nil
		}
		cancel()
		<-ours // it was set first, and this call clears it
		return nil
	}, func(uintptr) bool { return false })
	if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

// A Kick that comes just while the deadline of an earlier wait is cleared ends the wait all the
// same.
func TestKick_WhileADeadlineIsCleared(t *testing.T) {
	conn := &expiredConn{expired: make(chan struct{}, 1)}
	close(conn.expired)
	kicks := 0
	var p *Poller
	p = NewPoller(conn, func(at time.Time) error {
		if at.IsZero() && kicks == 0 {
			kicks++
			p.Kick() // its deadline is set first, and this call clears it
		}
		return nil
	}, func(uintptr) bool { return false })
	if err := p.Wait(context.Background()); err != nil || conn.reads != 1 {
		t.Errorf("%v after %d reads, want none and one: the second would have slept", err, conn.reads)
	}
}

// A look has the wait in progress ask once more: it goes on as long as the answer is no. One that
// comes while nobody waits ends no wait, either.
func TestLook_AsksOnceMore(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	conn, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan bool)
	p := NewPoller(conn, r.SetReadDeadline, func(uintptr) bool { return <-asked })
	p.Look()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait(t.Context()) }()
	for _, answer := range []bool{false, false, true} {
		select {
		case asked <- answer:
		case err := <-ended:
			t.Fatalf("it has ended, though the answer was no: %v", err)
		case <-time.After(10 * time.Second):
			t.Fatal("it does not ask")
		}
		p.Look()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a socket has in its error queue is no failure, and leaves one that no wait has told yet.
func TestPoller_KeepsAFailure(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	p := &Poller{}
	p.Fail(unix.ENOMEM)
	if p.FailWithSocketError(fd); !p.Failed() {
		t.Error("a failure was forgotten by a socket that has none")
	}
}
