package grant

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// A context that ends just when the reply comes leaves nothing behind: the connection serves the next
// exchange.
func TestExchangeLeavesNoDeadline(t *testing.T) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cancels := make(chan context.CancelFunc, 1)
	go func() { // until the session is closed
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, protocol.MaxMessage)
		answer := func() error {
			if _, err := c.Read(b); err != nil {
				return err
			}
			_, err := c.Write([]byte("{}"))
			return err
		}
		for answer() == nil {
			(<-cancels)() // once the reply is there
			if answer() != nil {
				return
			}
		}
	}()
	s := &session{socket: l.Addr().String()}
	if err := s.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &protocol.Request{Do: protocol.Open, Interface: "eth0"}
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		cancels <- cancel
		_, _, _ = s.exchange(ctx, r) // it may end before the reply is read, which is for nobody then
		cancel()
		if _, _, err := s.exchange(t.Context(), r); err != nil {
			t.Fatalf("the next exchange: %v", err)
		}
	}
}

// The service's socket is found once: a program that has gone to another folder since dials it again
// where the service was started anew.
func TestSession_OfAnotherFolder(t *testing.T) {
	t.Chdir(testbed.SocketDir(t))
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "s", Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // its folder is removed
	defer l.Close()
	go func() { // until the listener is closed
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			if _, err = c.Read(make([]byte, protocol.MaxMessage)); err == nil {
				_, _ = c.Write([]byte("{}"))
			}
			_ = c.Close()
		}
	}()
	s := newSession("s", protocol.Request{})
	defer s.close()
	for range 2 {
		if _, err := s.ask(t.Context(), &protocol.Request{Do: protocol.Lock, Interface: "eth0"}); err != nil {
			t.Error(err)
		}
		t.Chdir(t.TempDir())
	}
}

// A port whose name gets lost, as the process has no descriptors left, is not locked: another program
// could have it, too. The service is told, and the connection goes on, with all that it holds.
func TestLockPort_HasNoDescriptors(t *testing.T) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan []string, 1)
	go func() { // until the session is closed
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		var all []string
		defer func() { asked <- all }()
		for b := make([]byte, protocol.MaxMessage); ; {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			r, err := protocol.ParseRequest(b[:n])
			if err != nil {
				t.Error(err)
				return
			}
			all = append(all, r.Do)
			var oob []byte
			if r.Do == protocol.Lock {
				oob = unix.UnixRights(0)
			}
			if _, _, err := c.WriteMsgUnix([]byte("{}"), oob, nil); err != nil {
				return
			}
		}
	}()
	s := newSession(l.Addr().String(), protocol.Request{Interface: "eth0"})
	if err := s.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock := func() io.Closer {
		t.Helper()
		lock, err := s.lockPort(1, 7)
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	first := lock()
	undo := leaveNoRoom(t)
	none, err := s.lockPort(1, 8)
	undo()
	if none != nil || err == nil || !strings.Contains(err.Error(), "raise ulimit -n") {
		t.Errorf("%v, %v; want no lock, and what to do", none, err)
	}
	for _, l := range []io.Closer{first, lock()} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	want := []string{protocol.Lock, protocol.Lock, protocol.Unlock, protocol.Lock, protocol.Unlock, protocol.Unlock}
	if got := <-asked; !slices.Equal(got, want) {
		t.Errorf("by this connection it asked for %q, want %q", got, want)
	}
}

// leaveNoRoom leaves the process no room for descriptors, until undo is called.
func leaveNoRoom(t *testing.T) (undo func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	free, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0) // the lowest one
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(free)
	after := before
	after.Cur = uint64(free)
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &after, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &before, nil); err != nil {
			t.Error(err)
		}
	}
}
