package mcd_test

import (
	"errors"
	"io"
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
