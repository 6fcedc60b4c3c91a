//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// What the kernel keeps for a link is what its Config says, also past the limit for ordinary users;
// it doubles it for its own needs.
func TestOpen_Buffers(t *testing.T) {
	probe, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(probe)
	if err := unix.SetsockoptInt(probe, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<20); err != nil {
		t.Skip("needs CAP_NET_ADMIN:", err)
	}
	for _, c := range []struct {
		set, receives int
	}{{0, 8 << 20}, {100_000, 100_000}, {64 << 20, 64 << 20}} {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1), ReceiveBuffer: c.set})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for option, want := range map[int]int{unix.SO_RCVBUF: 2 * c.receives, unix.SO_SNDBUF: 2 * (4 << 20)} {
			if size, err := unix.GetsockoptInt(l.socket.fd, unix.SOL_SOCKET, option); size != want || err != nil {
				t.Errorf("ReceiveBuffer %d: %d bytes for option %d, want %d (%v)", c.set, size, option, want, err)
			}
		}
	}
}

// An ordinary user's socket has what the system gives.
func TestSetBuffer_OfAnOrdinaryUser(t *testing.T) {
	a, _ := linked(t)
	const refused = -1 // no such option
	a.socket.setBuffer(unix.SO_RCVBUF, refused, 50_000)
	if size, err := unix.GetsockoptInt(a.socket.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); size != 100_000 || err != nil {
		t.Errorf("%d bytes, want 100,000 (%v)", size, err)
	}
}

// A link of a group that is on no interface, or on one that there is not, is not opened, and says why.
func TestOpen_GroupOnNoInterface(t *testing.T) {
	for name, want := range map[string]string{"no-such": "no such device", "": "invalid network interface name"} {
		_, err := Open("127.0.0.1:0", Config{MAC: numbered(1), Group: netip.MustParseAddr("239.1.1.1"), Interface: name})
		if err == nil || !strings.Contains(err.Error(), "join 239.1.1.1") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("interface %q: %v, want %q", name, err, want)
		}
	}
}

// Where the process has no descriptor left for a link, Open says so, and leaves none behind.
func TestOpen_WithoutDescriptors(t *testing.T) {
	a, _ := linked(t)
	free := func() int { // the next descriptor
		fd, err := unix.Dup(a.socket.fd)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		return fd
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	first := free()
	for left := range 2 { // none, or one for the socket
		lower := unix.Rlimit{Cur: uint64(first + left), Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
			t.Fatal(err)
		}
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(3)})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if l != nil || !errors.Is(err, unix.EMFILE) {
			t.Errorf("with %d descriptors: %v, want EMFILE", left, err)
		}
		if n := free(); n != first {
			t.Errorf("with %d descriptors: %d is free before, %d after", left, first, n)
		}
	}
}

// The zone of an address is an interface's number, or its name.
func TestZone(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	for addr, want := range map[string]int{
		"fe80::1%lo": lo.Index, "fe80::1%7": 7, "fe80::1": 0, "fe80::1%no-such-interface": 0,
	} {
		if n := zone(netip.MustParseAddr(addr)); n != uint32(want) {
			t.Errorf("%s: %d, want %d", addr, n, want)
		}
	}
}

// A message without a stamp, as one that came before stamping began, has not that of the message
// before it.
func TestInbox_NoStamp(t *testing.T) {
	a, _ := linked(t)
	in := &a.socket.in
	in.stamped.Store(true)
	in.stamp.Software = time.Unix(1, 0)
	in.msgs[0].Hdr.SetControllen(0)
	in.open()
	if in.stamp != (transport.Stamp{}) {
		t.Errorf("%+v", in.stamp)
	}
}

// told is a context that tells when somebody is about to await its end.
type told struct {
	context.Context
	once sync.Once
	used chan struct{}
}

func (c *told) Done() <-chan struct{} {
	c.once.Do(func() { close(c.used) })
	return c.Context.Done()
}

// Wake-ups that are masked and unmasked end a Wait if there is something to poll, such as the rest
// of what has come together, and only then.
func TestMaskWakeups_WhatIsLeft(t *testing.T) {
	a, b := linked(t)
	wait := func(most time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		return b.Wait(ctx)
	}
	for _, masked := range []bool{true, false} {
		b.MaskWakeups(masked)
		if err := wait(10 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("masked %v: Wait ended with %v, and nothing came", masked, err)
		}
	}
	if n, err := a.Send(plain(b.MAC(), 3, 100)); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if err := wait(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Poll(make([]transport.Frame, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if !b.socket.pending() {
		t.Fatal("frames that were sent together came one by one")
	}
	b.MaskWakeups(true)
	if err := wait(10 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("masked: Wait ended with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	asleep, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.Wait(&told{Context: ctx, used: asleep}) }()
	select {
	case <-asleep: // it has found that they are masked
	case err := <-ended:
		t.Fatalf("masked: Wait ended with %v", err)
	}
	b.MaskWakeups(false)
	if err := <-ended; err != nil {
		t.Errorf("unmasked, with frames there: %v", err)
	}
}

// A frame for all of which a copy has left is on its way, though another copy was refused. That is
// no error of the frame behind it, which goes, too.
func TestSend_ACopyIsRefused(t *testing.T) {
	a, b := linked(t)
	refused(a, transport.MAC{6})
	frames := append(plain(transport.Broadcast, 1, 100), plain(b.MAC(), 1, 100)...)
	if n, err := a.Send(frames); n != 2 || err != nil {
		t.Errorf("%d, %v; want both", n, err)
	}
	count(t, b, 2)
	if c := a.Counters(); c.TxFrames != 2 || c.TxRefused != 1 {
		t.Errorf("%+v", c)
	}
}

// A path is probed by five packets, 100 ms apart, of the length that the system takes for right: of
// a loopback interface the longest that there are.
func TestPathMTU_Probes(t *testing.T) {
	for _, c := range []struct {
		host        string
		mtu, length int // of the packets, and of what is in them
	}{{"127.0.0.1", 65535, 65507}, {"::1", 65536, 65488}} {
		at := netip.AddrPortFrom(netip.MustParseAddr(c.host), 0)
		fd, err := unix.Socket(familyOf(at.Addr()), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, sockaddr(at)); err != nil {
			t.Skip(err) // no IPv6
		}
		probed := &socket{fd: fd}
		port, err := probed.port()
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.AddrPortFrom(at.Addr(), port).String()
		b := make([]byte, 1<<17)
		came := func() (n int) {
			n, _, _ = unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
			return n
		}
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			begun := time.Now()
			go func() {
				mtu, err := PathMTU(t.Context(), addr)
				if mtu != c.mtu || err != nil || time.Since(begun) != 500*time.Millisecond {
					t.Errorf("%s: %d, %v after %v; want %d after 500 ms", addr, mtu, err, time.Since(begun), c.mtu)
				}
				ended <- err
			}()
			for k := range 5 {
				synctest.Wait()
				n := came()
				f, err := transport.ParseFrame(b[:max(n, 0)])
				if n != c.length || err != nil || f.Dst != StationMAC(addr) || f.EtherType != introductionType || came() >= 0 {
					t.Errorf("%s: probe %d has %d bytes, want %d, and to be one introduction: %v to %v (%v)",
						addr, k, n, c.length, f.EtherType, f.Dst, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if <-ended; came() >= 0 {
				t.Error("a sixth probe")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			defer cancel()
			if _, err := PathMTU(ctx, addr); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the context's end", err)
			}
		})
	}
}

// A connection is made behind as many datagrams, whether they go one by one, or side by side in
// trains.
func TestConnection_BehindTrains(t *testing.T) {
	const n, size = 44, 1000
	for _, gap := range []int{1, 0} {
		a, b := linked(t)
		room := a.TrainHeadroom()
		memory := make([]byte, n*(room+size+gap))
		var frames []transport.Frame
		for i := range n {
			m := memory[i*(room+size+gap):]
			frames = append(frames, transport.Frame{
				Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Headroom: m[:room], Payload: m[room:][:size],
			})
		}
		sent := 0
		for ; !a.socket.near.up && sent < 100*n; sent += n {
			if k, err := a.Send(frames); k != n || err != nil {
				t.Fatal(k, err)
			}
			count(t, b, n)
		}
		if sent >= 2*firstStreak+n {
			t.Errorf("%d bytes between: connected behind %d datagrams, want %d", gap, sent, firstStreak)
		}
	}
}
