//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// converse has a link send another so many frames, one by one, and checks that they come in order.
func converse(t *testing.T, from, to *Link, n int) {
	t.Helper()
	for i := range n {
		payload := fmt.Appendf(nil, "%d of %v", i, from.mac)
		sent, err := from.Send([]transport.Frame{{Dst: to.mac, EtherType: transport.EtherTypeDefault, Payload: payload}})
		if sent != 1 || err != nil {
			t.Fatalf("sent %d, %v", sent, err)
		}
		if got := await(t, to); got != string(payload) {
			t.Fatalf("%q came, want %q", got, payload)
		}
	}
}

// await returns the payload of the next frame.
func await(t *testing.T, l *Link) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var frames [1]transport.Frame
	for {
		n, err := l.Poll(frames[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return string(frames[0].Payload)
		}
		if err := l.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// conversing returns a pair of links that are connected to each other.
func conversing(t *testing.T) (a, b *Link) {
	t.Helper()
	a, b = linked(t)
	converse(t, a, b, firstStreak)
	converse(t, b, a, firstStreak)
	for _, l := range []*Link{a, b} {
		if !l.socket.near.up {
			t.Fatalf("%v is not connected behind %d datagrams", l.Name(), firstStreak)
		}
	}
	return a, b
}

// Behind a streak of datagrams the kernel hands both what is sent and what comes to the connection.
func TestConnection(t *testing.T) {
	a, b := conversing(t)
	before := [2]int{a.socket.in.fromNear, a.socket.in.fromOthers}
	converse(t, a, b, 50)
	converse(t, b, a, 50)
	after := [2]int{a.socket.in.fromNear, a.socket.in.fromOthers}
	if near, others := after[0]-before[0], after[1]-before[1]; near != 50 || others != 0 {
		t.Errorf("%d datagrams by the connection and %d by the link's own socket, want 50 and none", near, others)
	}
	if _, err := b.Send(plain(a.mac, 100, 500)); err != nil { // trains
		t.Fatal(err)
	}
	count(t, a, 100)
	if _, err := b.Send(plain(a.mac, 100, 500)); err != nil {
		t.Fatal(err)
	}
	count(t, a, 100)
}

// A port stays the link's own beside a connection.
func TestConnection_PortIsNotShared(t *testing.T) {
	a, _ := conversing(t)
	if l, err := Open(a.Addr().String(), Config{MAC: numbered(9)}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("opened %v, %v; want EADDRINUSE", l, err)
	}
	fd, err := unix.Socket(a.socket.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, sockaddr(a.Addr())); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a socket that shares ports: %v, want EADDRINUSE", err)
	}
}

// third opens a link that knows another, and that it knows.
func third(t *testing.T, l *Link) *Link {
	t.Helper()
	c, err := Open("127.0.0.1:0", Config{MAC: numbered(3)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.AddStation(Station{Addr: l.Addr().String(), MAC: l.mac}); err != nil {
		t.Fatal(err)
	}
	if err := l.AddStation(Station{Addr: c.Addr().String(), MAC: c.mac}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Others are heard beside the connection, which ends when they send a good deal of all. The next one
// takes a longer streak.
func TestConnection_Others(t *testing.T) {
	a, b := conversing(t)
	c := third(t, a)
	converse(t, c, a, 10)
	converse(t, a, c, 10)
	if near := &a.socket.near; !near.up || near.unwanted.Load() {
		t.Error("the connection ends by 10 datagrams of another")
	}
	converse(t, c, a, crowdedOf)
	if !a.socket.near.unwanted.Load() {
		t.Errorf("the connection stays, though another sends %d datagrams", crowdedOf)
	}
	converse(t, a, b, 1)
	if a.socket.near.up {
		t.Error("the connection is still there")
	}
	converse(t, b, a, firstStreak)
	converse(t, c, a, 10)
	for _, again := range []struct {
		streak int
		up     bool
	}{{2*firstStreak - 2, false}, {1, true}} {
		converse(t, a, b, again.streak)
		if up := a.socket.near.up; up != again.up {
			t.Errorf("behind %d more datagrams there is a connection: %v, want %v", again.streak, up, again.up)
		}
	}
	converse(t, b, a, 10)
	converse(t, c, a, 10)
}

// A station that floods its connection hides nobody.
func TestConnection_FloodHidesNobody(t *testing.T) {
	a, b := conversing(t)
	c := third(t, a)
	converse(t, a, c, 1) // and it knows
	if _, err := c.Send(plain(a.mac, 1, 99)); err != nil {
		t.Fatal(err)
	}
	var frames [1]transport.Frame
	for range 10 * otherLooks {
		if _, err := b.Send(plain(a.mac, 1, 500)); err != nil { // there is always one
			t.Fatal(err)
		}
		for got := 0; got == 0; {
			n, err := a.Poll(frames[:])
			if err != nil {
				t.Fatal(err)
			}
			if got = n; n == 1 && frames[0].Src == c.mac {
				return
			}
		}
	}
	t.Errorf("another's frame has not come in %d polls", 10*otherLooks)
}

// The connection becomes one to another station behind a longer streak of datagrams for it.
func TestConnection_ToAnother(t *testing.T) {
	a, b := conversing(t)
	c := third(t, a)
	converse(t, a, c, 2*firstStreak)
	if near := &a.socket.near; !near.up || near.to.addrPort() != c.Addr() {
		t.Errorf("connected (%v) to %v, want %v", near.up, near.to.addrPort(), c.Addr())
	}
	converse(t, c, a, 10)
	converse(t, b, a, 10)
}

// The connection of a link of all addresses has the one that leads to its station, whatever led to
// the one before.
func TestConnection_AddressOfTheWay(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	links := map[string]*Link{}
	for _, c := range []struct {
		name, listen string
		node         int
	}{{"all", "0.0.0.0:7401", 0}, {"here", "127.0.0.1:7402", 0}, {"there", testbed.IP(1, 0).String() + ":7401", 1}} {
		err := bed.Node(c.node).Do(func() (err error) {
			links[c.name], err = Open(c.listen, Config{MAC: numbered(len(links) + 1)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer links[c.name].Close()
	}
	all := links["all"]
	streak := firstStreak
	for _, c := range []struct{ to, from string }{
		{"here", "127.0.0.1"}, {"there", testbed.IP(0, 0).String()}, {"here", "127.0.0.1"},
	} {
		to := links[c.to]
		if err := all.AddStation(Station{Addr: to.Addr().String(), MAC: to.mac}); err != nil {
			t.Log(err) // known already
		}
		converse(t, all, to, streak)
		streak *= 2
		sa, err := unix.Getsockname(all.socket.near.fd)
		if err != nil {
			t.Fatal(err)
		}
		if from := netip.AddrFrom4(sa.(*unix.SockaddrInet4).Addr).String(); !all.socket.near.up || from != c.from {
			t.Errorf("connected (%v) from %v, want %v", all.socket.near.up, from, c.from)
		}
		converse(t, to, all, 10)
	}
}

// A peer that has ended stops neither sends nor waits, and is heard again when it is back.
func TestConnection_PeerEnds(t *testing.T) {
	a, b := conversing(t)
	at := b.Addr().String()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if n, err := a.Send(plain(b.mac, 1, 100)); n != 1 || err != nil {
			t.Fatalf("sent %d, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := a.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
		cancel()
		if n, err := a.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
			t.Errorf("Poll: %d, %v", n, err)
		}
	}
	again, err := Open(at, Config{MAC: b.mac})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.AddStation(Station{Addr: a.Addr().String(), MAC: a.mac}); err != nil {
		t.Fatal(err)
	}
	converse(t, a, again, 10)
	converse(t, again, a, 10)
}

// What the system does not send by the connection goes by the link's own socket, and the connection
// ends.
func TestConnection_Refused(t *testing.T) {
	a, b := conversing(t)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	if err := unix.Dup3(null, a.socket.near.fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	converse(t, a, b, 2)
	if a.socket.near.up {
		t.Error("the connection is still there")
	}
	if _, err := a.Send(plain(b.mac, 100, 500)); err != nil {
		t.Fatal(err)
	}
	count(t, b, 100)
	waitsWell(t, a)
	converse(t, b, a, 10)
	converse(t, a, b, 4*firstStreak)
}

// waitsWell checks that a wait for what does not come ends by its context.
func waitsWell(t *testing.T, l *Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for range 2 { // the first may be for what another wait has left
		if err := l.Wait(ctx); err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait: %v", err)
			}
			return
		}
	}
	t.Error("waits end, and nothing has come")
}

// Where there is no way to a station there is no connection, nor a socket that could have what others
// send.
func TestConnect_NoWay(t *testing.T) {
	a, b := linked(t)
	waitsWell(t, a)
	far := a.socket.address(netip.MustParseAddrPort("192.0.2.1:7401")) // not from loopback's address
	if a.socket.connect(&far) {
		t.Skip("there is a way")
	}
	if fd := a.socket.near.fd; fd >= 0 {
		t.Errorf("socket %d is open", fd)
	}
	waitsWell(t, a)
	converse(t, a, b, 2*firstStreak)
	converse(t, b, a, 10)
}

// A link whose frames are stamped has no connection: the stamps are the link's own socket's.
func TestConnection_Stamps(t *testing.T) {
	a, b := conversing(t)
	if err := a.StampFrames(true); err != nil {
		t.Fatal(err)
	}
	converse(t, a, b, 4*firstStreak)
	converse(t, b, a, 4)
	if a.socket.near.up {
		t.Error("there is a connection")
	}
	if err := a.StampFrames(false); err != nil {
		t.Fatal(err)
	}
	converse(t, a, b, 4*firstStreak)
	if !a.socket.near.up {
		t.Error("there is none again")
	}
}

// There is no connection to a group.
func TestConnect_Group(t *testing.T) {
	a, b := linked(t)
	group := a.socket.address(netip.MustParseAddrPort("239.1.2.3:7401"))
	if a.socket.connect(&group) {
		t.Error("connected")
	}
	converse(t, a, b, 2)
}

// The connection hears no group, also before it is one.
func TestConnection_HearsNoGroups(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := Open(listen, Config{MAC: numbered(1)})
		if err != nil {
			t.Log(err) // a system without IPv6
			continue
		}
		defer l.Close()
		level, option := unix.IPPROTO_IP, unix.IP_MULTICAST_ALL
		if l.socket.family == unix.AF_INET6 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL
		}
		for level, option := range map[int]int{unix.IPPROTO_IP: unix.IP_MULTICAST_ALL, level: option} {
			if all, err := unix.GetsockoptInt(l.socket.near.fd, level, option); all != 0 || err != nil {
				t.Errorf("%s: level %d: hears %d, %v; want 0", listen, level, all, err)
			}
		}
	}
}

// Drops of the connection count among the link's.
func TestConnection_Drops(t *testing.T) {
	a, b := conversing(t)
	for a.Counters().RxDropped == 0 {
		if _, err := b.Send(plain(a.mac, 64, 1000)); err != nil && !errors.Is(err, transport.ErrBusy) {
			t.Fatal(err)
		}
	}
	dropped := a.Counters().RxDropped
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if n := a.Counters().RxDropped; n < dropped {
		t.Errorf("%d drops once it is closed, %d before", n, dropped)
	}
}
