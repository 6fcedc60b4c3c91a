package mcd_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// locker is a link whose service grants the locks on ports, and notes what was asked of it.
type locker struct {
	transport.Link
	err  error
	held []uint8
}

type heldLock struct {
	of   *locker
	port uint8
}

func (l *locker) LockPort(cluster uint32, port uint8) (io.Closer, error) {
	if l.err != nil || cluster != 5 {
		return nil, l.err
	}
	l.held = append(l.held, port)
	return &heldLock{l, port}, nil
}

func (h *heldLock) Close() error {
	h.of.held = slices.DeleteFunc(h.of.held, func(p uint8) bool { return p == h.port })
	return nil
}

// A port is locked by each link's service until it is closed. One that any of them refuses is not
// locked by the others either; a service that has no locks is none.
func TestOpenPort_LocksByService(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name   string
		second error // of the second link's service
		want   error
		text   string
	}{
		{"granted", nil, nil, ""},
		{"another process has it", &transport.LockedError{PID: 77}, mcd.ErrPortBusy, "port 9: busy: process 77 owns it"},
		{"this process has it", &transport.LockedError{PID: os.Getpid()}, mcd.ErrPortBusy, "port 9: busy: this process owns it"},
		{"and the system does not tell", &transport.LockedError{}, mcd.ErrPortBusy, "port 9: busy: another process owns it"},
		{"the service has no locks", transport.ErrNotSupported, nil, ""},
		{"another error", refused, refused, "refused"},
	} {
		links := switched(t, 2)
		first, second := &locker{Link: links[0]}, &locker{Link: links[1], err: c.second}
		e, err := mcd.Open(mcd.Config{Cluster: 5}, first, second)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.OpenPort(9, mcd.PortOptions{})
		if !errors.Is(err, c.want) || err != nil && err.Error() != c.text {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if locked := len(first.held) == 1; locked != (err == nil) || len(second.held) == 1 != (c.second == nil) {
			t.Errorf("%s: %v: locked are %v and %v", c.name, err, first.held, second.held)
		}
		if err == nil {
			_ = p.Close()
		}
		if len(first.held)+len(second.held) > 0 {
			t.Errorf("%s: locked after all are %v and %v", c.name, first.held, second.held)
		}
		_ = e.Close()
	}
}

// slowLocks is a link whose service takes its time over port 9: to lock it, and to unlock it.
type slowLocks struct {
	transport.Link
	asked, answer chan struct{}
}

func (l *slowLocks) LockPort(_ uint32, port uint8) (io.Closer, error) {
	if port != 9 {
		return io.NopCloser(nil), nil
	}
	return slowLock{l}, slowLock{l}.Close()
}

type slowLock struct{ of *slowLocks }

func (l slowLock) Close() error {
	l.of.asked <- struct{}{}
	<-l.of.answer
	return nil
}

// While a service is asked for the lock on a port, or to take it back, other ports are opened and
// closed, counters are read and routes drained. The port itself has its owner meanwhile. An endpoint
// that closes waits for the service, and leaves no lock behind.
func TestOpenPort_HoldsUpNobody(t *testing.T) {
	links := switched(t, 2) // in real time: a bubble waits for no mutex
	slow := &slowLocks{links[0], make(chan struct{}, 4), make(chan struct{})}
	es := wrapped(t, mcd.Config{}, slow, links[1])
	t.Cleanup(func() { close(slow.answer) })
	opened := make(chan *mcd.Port, 1)
	open9 := func() {
		p, err := es[0].OpenPort(9, mcd.PortOptions{})
		if err != nil && !errors.Is(err, mcd.ErrClosed) {
			t.Error(err)
		}
		opened <- p
	}
	goesOn := func(when string) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := es[0].OpenPort(9, mcd.PortOptions{}); !errors.Is(err, mcd.ErrPortBusy) {
				t.Errorf("%s: port 9: %v, want ErrPortBusy", when, err)
			}
			p, err := es[0].OpenPort(8, mcd.PortOptions{})
			if err == nil {
				_, err = es[0].Counters(), p.Close()
			}
			if err == nil {
				err = es[0].Drain(limit(t), func() error { return nil }, 1)
			}
			if err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}()
		select {
		case <-done:
		case <-limit(t).Done():
			t.Fatalf("%s: all else waits for the service", when)
		}
	}
	go open9()
	<-slow.asked
	goesOn("while port 9 is locked")
	slow.answer <- struct{}{}
	p := <-opened
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	<-slow.asked
	goesOn("while port 9 is unlocked")
	slow.answer <- struct{}{}
	if err := <-closed; err != nil {
		t.Error(err)
	}

	go open9()
	<-slow.asked
	go func() { closed <- es[0].Close() }()
	if err := es[0].Await(limit(t), new(mcd.Completion)); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("the endpoint closes: %v", err)
	}
	slow.answer <- struct{}{}
	<-slow.asked // to take it back
	select {
	case <-closed:
		t.Error("the endpoint is closed, and its lock is there")
	default:
	}
	slow.answer <- struct{}{}
	if p := <-opened; p != nil {
		t.Error("a port of a closed endpoint was opened")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
