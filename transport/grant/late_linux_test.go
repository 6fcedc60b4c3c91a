package grant

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// pair returns a session, and the service's end of its connection.
func pair(t *testing.T) (*session, *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := newSession(l.Addr().String(), protocol.Request{Interface: "eth0"})
	if err := s.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// next returns what is asked for next: "" is the end.
func next(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, protocol.MaxMessage)
	n, err := c.Read(b)
	if err != nil {
		return ""
	}
	r, err := protocol.ParseRequest(b[:n])
	if err != nil {
		t.Error(err)
		return ""
	}
	return r.Do
}

// A service that answers a request for a port too late keeps the connection, with all that hangs on
// it: the link's other ports and, of link xdp, the link. The port is given back, and the late answers
// are not taken for later ones.
func TestLockPort_IsAnsweredLate(t *testing.T) {
	s, c := pair(t)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan string, 1)
	go func() { asked <- next(t, c); cancel() }() // one request
	if lock, err := s.lock(ctx, 1, 7); lock != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v; want that the service does not answer", lock, err)
	}
	got := []string{<-asked, next(t, c)}

	r, w, err := os.Pipe() // in place of the port's name: it ends once nobody has it
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _, err = c.WriteMsgUnix([]byte("{}"), unix.UnixRights(int(w.Fd())), nil)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	go func() { // one request more
		asked <- next(t, c)
		_, _ = c.Write([]byte(`{"error":{"cause":"port_locked","text":"x","pid":7}}`))
	}()
	lock, err := s.lock(t.Context(), 1, 8)
	if lock != nil || err == nil || err.Error() != "locked by process 7" {
		t.Errorf("the next port: %v, %v; want its own answer", lock, err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("the port's name is kept")
	}
	if got = append(got, <-asked); s.close() != nil || next(t, c) != "" {
		t.Error("the connection does not end")
	}
	if want := []string{protocol.Lock, protocol.Unlock, protocol.Lock}; !slices.Equal(got, want) {
		t.Errorf("by this connection it asked for %q, want %q", got, want)
	}
}
