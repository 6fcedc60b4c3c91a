package grant_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/xdp"
)

// patience is how long what must happen may take.
const patience = 20 * time.Second

// impostor listens in place of the service, and answers each connection's requests by answer, until
// that returns false.
func impostor(t *testing.T, answer func(c *net.UnixConn) bool) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // until the listener is closed
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			for answer(c) {
			}
			_ = c.Close()
		}
	}()
	return socket
}

// reply answers a request with a text and descriptors.
func reply(text string, fds ...int) func(c *net.UnixConn) bool {
	return func(c *net.UnixConn) bool {
		if _, err := c.Read(make([]byte, protocol.MaxMessage)); err != nil {
			return false
		}
		_, _, err := c.WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil)
		return err == nil
	}
}

func open(t *testing.T, socket string) error {
	t.Helper()
	return ask(t, socket, grant.Request{Interface: "eth0"})
}

func ask(t *testing.T, socket string, r grant.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := grant.Open(ctx, socket, r)
	if err == nil {
		_ = g.Close()
	}
	return err
}

// A service that sends something else than two packet sockets and what belongs to them gets no
// link, and leaves no descriptor behind.
func TestOpenRefusesImpostors(t *testing.T) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	const good = `"interface":"eth0","index":3,"mac":"02:00:00:00:00:01","ether_type":34997`
	for _, c := range []struct {
		text string
		fds  []int
		want string
	}{
		{`{`, nil, "a reply that is none"},
		{`{}`, nil, "answered something else (0 descriptors"},
		{`{}`, []int{null, null}, "answered something else (2 descriptors"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1}}`, nil, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1}}`, []int{null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":0,"tx_queues":1}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1099511627776,"tx_queues":1}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":3,"slot_size":2048}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":1,"slot_size":2048}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":-4,"slot_size":2048}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":4,"slot_size":1024}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":4,"slot_size":2047}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":131072,"slot_size":2048}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1,"tx_queues":1,"slots":4,"slot_size":2}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":2000,"tx_queues":1,"slots":4,"slot_size":2048}}`, []int{null, null}, "answered something else"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1,"slots":4,"slot_size":2048}}`, []int{null, null}, "is no packet socket"},
		{`{"open":{` + good + `,"mtu":1500,"tx_queues":1}}`, []int{null, null}, "is no packet socket"},
		{`{"error":{"cause":"denied","text":"the reason"}}`, []int{null, null}, "operation not permitted: the reason"},
	} {
		socket := impostor(t, reply(c.text, c.fds...))
		before := testbed.Descriptors(t)
		err := open(t, socket)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "grant of eth0 by "+socket+": ") {
			t.Errorf("%s with %d descriptors: %v, want %q", c.text, len(c.fds), err, c.want)
		}
		for start := time.Now(); testbed.Descriptors(t) > before; time.Sleep(time.Millisecond) { // the impostor hangs up, too
			if time.Since(start) > patience {
				t.Fatalf("%s: %d descriptors are left", c.text, testbed.Descriptors(t)-before)
			}
		}
	}
}

// A packet without bytes, which reads like the connection's end, may bring descriptors all the
// same: they are given back.
func TestOpenRefusesDescriptorsWithNothing(t *testing.T) {
	r, w, err := os.Pipe() // whose reader hears of its end once nobody has the writer
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	socket := impostor(t, func(c *net.UnixConn) bool {
		if _, err := c.Read(make([]byte, protocol.MaxMessage)); err != nil {
			return false
		}
		rights := unix.UnixRights(int(w.Fd()))
		h := unix.Msghdr{Control: &rights[0]} // package unix would add a byte
		h.SetControllen(len(rights))
		raw, _ := c.SyscallConn() // it does not fail
		_ = raw.Control(func(fd uintptr) {
			if _, _, e := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), 0); e != 0 {
				t.Error(e)
			}
		})
		_ = w.Close() // the client's is the last one
		return false
	})
	if err := open(t, socket); err == nil || !strings.Contains(err.Error(), "hung up") {
		t.Errorf("%v, want that it hung up", err)
	}
	_ = r.SetReadDeadline(time.Now().Add(patience))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v: the client keeps what it was passed", err)
	}
}

// The causes of a refusal are errors of package transport.
func TestOpenErrors(t *testing.T) {
	for cause, want := range map[protocol.Cause]error{
		protocol.Denied: transport.ErrPermission, protocol.Limited: transport.ErrPermission,
		protocol.NoInterface: transport.ErrNoInterface, protocol.InterfaceDown: transport.ErrInterfaceDown,
		protocol.NotSupported: transport.ErrNotSupported,
	} {
		err := open(t, impostor(t, reply(fmt.Sprintf(`{"error":{"cause":%q,"text":"why"}}`, cause))))
		if !errors.Is(err, want) || !strings.HasSuffix(err.Error(), ": why") {
			t.Errorf("%s: %v, want %v", cause, err, want)
		}
	}
	err := open(t, impostor(t, reply(`{"error":{"cause":"failed","text":"why"}}`)))
	if errors.Is(err, transport.ErrPermission) || !strings.HasSuffix(fmt.Sprint(err), ": why") {
		t.Errorf("failed: %v", err)
	}
	err = open(t, impostor(t, reply(`{"error":{"cause":"occupied","text":"x","pid":7,"program":"p"}}`)))
	var occupied *xdp.OccupiedError
	if !errors.As(err, &occupied) || *occupied != (xdp.OccupiedError{Program: "p", PID: 7, Interface: "eth0"}) {
		t.Errorf("occupied: %v", err)
	}
	err = open(t, impostor(t, reply(`{"error":{"cause":"port_locked","text":"x","pid":7}}`)))
	var locked *transport.LockedError
	if !errors.As(err, &locked) || locked.PID != 7 {
		t.Errorf("locked: %v", err)
	}
	if err := open(t, impostor(t, func(*net.UnixConn) bool { return false })); err == nil || !strings.Contains(err.Error(), "hung up") {
		t.Errorf("a service that hangs up: %v", err)
	}
	if err := open(t, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "systemctl start rawlane-grant") {
		t.Errorf("no service: %v", err)
	}
}

// A service that refuses the connection replies and hangs up before it has read the request: the
// program is told the reason all the same.
func TestOpenIsToldWhy(t *testing.T) {
	for range 200 {
		err := open(t, impostor(t, func(c *net.UnixConn) bool {
			_, _ = c.Write([]byte(`{"error":{"cause":"limited","text":"enough"}}`))
			return false
		}))
		if !errors.Is(err, transport.ErrPermission) || !strings.HasSuffix(err.Error(), "enough") {
			t.Fatal(err)
		}
	}
}

// A service that does not answer ends no later than the context.
func TestOpenEndsWithItsContext(t *testing.T) {
	socket := impostor(t, func(c *net.UnixConn) bool {
		_, err := c.Read(make([]byte, protocol.MaxMessage))
		return err == nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := grant.Open(ctx, socket, grant.Request{Interface: "eth0"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the service does not answer") {
		t.Errorf("%v", err)
	}
}

// Nor does a link xdp, which waits for the service to hang up when it is closed: whose context has
// ended has no time for that. The connection is closed, not for writing alone.
func TestOpenXDP_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := make(chan error, 1)
	socket := impostor(t, func(c *net.UnixConn) bool {
		if _, err := c.Read(make([]byte, protocol.MaxMessage)); err == nil {
			cancel()
			return true
		}
		_, err := c.Write([]byte("{}"))
		end <- err
		return false
	})
	_, err := grant.Open(ctx, socket, grant.Request{Interface: "eth0", XDP: true})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the service does not answer") {
		t.Errorf("%v", err)
	}
	if err := <-end; !errors.Is(err, unix.EPIPE) {
		t.Errorf("when it hears of the end, the service writes: %v; want that nobody is there", err)
	}
}

// Where a socket is refused, the service that the environment names is asked; without one the
// refusal stays as it is.
func TestLink_AsksTheService(t *testing.T) {
	refusal := fmt.Errorf("ring eth0: open: %w", transport.ErrPermission)
	open := func(r grant.Request) error {
		_, err := grant.Link(nil, r, func(string, *afpacket.Granted) (*transport.Link, error) { return nil, refusal })
		return err
	}
	r := grant.Request{Interface: "eth0", Ring: true}
	t.Setenv(grant.EnvSocket, "")
	if grant.Socket() != grant.DefaultSocket {
		t.Errorf("the socket is %s", grant.Socket())
	}
	if _, err := os.Stat(grant.DefaultSocket); errors.Is(err, fs.ErrNotExist) {
		if err := open(r); err != refusal { //nolint:errorlint // the very value
			t.Errorf("no service: %v", err)
		}
	}
	t.Setenv(grant.EnvSocket, impostor(t, reply(`{"error":{"cause":"denied","text":"add a line"}}`)))
	err := open(r)
	if !errors.Is(err, transport.ErrPermission) || !strings.HasPrefix(err.Error(), "ring eth0: open: no CAP_NET_RAW here; grant of eth0 by ") ||
		!strings.HasSuffix(err.Error(), ": add a line") {
		t.Errorf("refused twice: %v", err)
	}
	t.Setenv(grant.EnvSocket, impostor(t, reply(`{"error":{"cause":"occupied","text":"x","pid":7}}`)))
	err = open(grant.Request{Interface: "eth0", XDP: true})
	if !strings.HasPrefix(fmt.Sprint(err), "xdp eth0: open: no CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF here; grant of eth0 by ") ||
		!strings.Contains(err.Error(), "of process 7") {
		t.Errorf("occupied: %v", err)
	}
	t.Setenv(grant.EnvSocket, filepath.Join(t.TempDir(), "none"))
	err = open(r)
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "start the service") {
		t.Errorf("no service where the environment says: %v", err)
	}
}
