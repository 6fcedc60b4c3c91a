//go:build linux && !rawlane_portable

package udp

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Which datagrams leave together: for one station, none longer than the first, none but the last
// shorter, as many as a message and a packet take.
func TestTrain(t *testing.T) {
	a, b := new(address), new(address)
	to := func(to *address, lengths ...int) (ds []datagram) {
		for _, n := range lengths {
			ds = append(ds, datagram{b: make([]byte, n), to: to})
		}
		return ds
	}
	many := func(n, size int) []datagram {
		lengths := make([]int, n)
		for i := range lengths {
			lengths[i] = size
		}
		return to(a, lengths...)
	}
	for _, c := range []struct {
		name       string
		ds         []datagram
		room, want int
	}{
		{"one", to(a, 9), 128, 1},
		{"equal", to(a, 9, 9, 9), 128, 3},
		{"the last is shorter", to(a, 9, 9, 8), 128, 3},
		{"a shorter one is the last", to(a, 9, 8, 8), 128, 2},
		{"a longer one goes next", to(a, 9, 10), 128, 1},
		{"another station", append(to(a, 9, 9), to(b, 9)...), 128, 2},
		{"as many as a kernel takes", many(100, 9), 128, 64},
		{"as many as there is room for", many(100, 9), 5, 5},
		{"as much as a packet takes", many(64, 6500), 128, 10},
		{"a byte more than that", append(many(9, 6500), to(a, 6500)...), 128, 10},
		{"longer together", many(20, 6501), 128, 9},
	} {
		if n := train(c.ds, c.room); n != c.want {
			t.Errorf("%s: %d, want %d", c.name, n, c.want)
		}
	}
}

// Datagrams that lie side by side are one vector, and those between others their own.
func TestGather(t *testing.T) {
	memory := make([]byte, 100)
	for _, c := range []struct {
		name string
		ds   [][]byte
		want []int // lengths
	}{
		{"one", [][]byte{memory[:9]}, []int{9}},
		{"side by side", [][]byte{memory[:9], memory[9:18], memory[18:20]}, []int{20}},
		{"a gap", [][]byte{memory[:9], memory[9:18], memory[19:28], memory[28:30]}, []int{18, 11}},
		{"in another order", [][]byte{memory[9:18], memory[:9]}, []int{9, 9}},
		{"the same twice", [][]byte{memory[:9], memory[:9]}, []int{9, 9}},
	} {
		o := new(couplings)
		for round := range 2 { // behind other vectors, too
			var ds []datagram
			for _, b := range c.ds {
				ds = append(ds, datagram{b: b})
			}
			var lengths []int
			vec := o.gather(ds)
			for i, at := 0, 0; i < len(vec); i++ {
				if vec[i].Base != &c.ds[at][0] {
					t.Errorf("%s: vector %d begins elsewhere", c.name, i)
				}
				lengths = append(lengths, int(vec[i].Len))
				for n := 0; n < int(vec[i].Len); at++ {
					n += len(c.ds[at])
				}
			}
			if !slices.Equal(lengths, c.want) || o.used != (round+1)*len(c.want) {
				t.Errorf("%s: vectors of %d bytes, %d used in all, want %d, %d", c.name, lengths, o.used, c.want,
					(round+1)*len(c.want))
			}
		}
	}
}

// linked opens two links, the first of which knows the second.
func linked(t *testing.T) (a, b *Link) {
	t.Helper()
	for n := range 2 {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(n + 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		a, b = b, l
	}
	if err := a.AddStation(Station{Addr: b.Addr().String(), MAC: b.MAC()}); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func plain(to transport.MAC, n, size int) (frames []transport.Frame) {
	for range n {
		frames = append(frames, transport.Frame{Dst: to, EtherType: transport.EtherTypeDefault, Payload: make([]byte, size)})
	}
	return frames
}

// count polls until n frames have come.
func count(t *testing.T, l *Link, n int) {
	t.Helper()
	in := make([]transport.Frame, 64)
	for came, end := 0, time.Now().Add(10*time.Second); came < n; {
		k, err := l.Poll(in)
		if came += k; err != nil || time.Now().After(end) {
			t.Fatalf("%d of %d frames: %v", came, n, err)
		}
	}
}

// Where the kernel refuses trains, as it does for a socket without checksums, their datagrams leave one
// by one, in order, and so do those that follow. Nothing of the caller's is kept.
func TestTrains_Refused(t *testing.T) {
	a, b := linked(t)
	if err := unix.SetsockoptInt(a.socket.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Skip(err)
	}
	if n, err := a.Send(plain(b.MAC(), 1, 100)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	count(t, b, 1)
	to := a.socket.address(b.Addr())
	if !a.socket.out.takesTrains(&to) {
		t.Error("trains are off before one was refused")
	}
	for range 2 {
		if n, err := a.Send(plain(b.MAC(), 40, 100)); n != 40 || err != nil {
			t.Fatal(n, err)
		}
		count(t, b, 40)
		if a.socket.out.takesTrains(&to) {
			t.Error("trains that were refused are not off")
		}
	}
	for i, v := range a.socket.out.vec {
		if v.Base != nil {
			t.Fatalf("vector %d holds memory of the caller's", i)
		}
	}
	if c := a.Counters(); c.TxFrames != 81 || c.TxRefused != 0 || c.TxFragmented != 0 {
		t.Errorf("%+v", c)
	}
}

// One way that refuses trains, as one through IPsec does, turns them off for no other station. How many
// such ways are known has a bound.
func TestTrains_RefusedOnOneWay(t *testing.T) {
	a, b := linked(t)
	other, err := Open("127.0.0.1:0", Config{MAC: numbered(3)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := a.AddStation(Station{Addr: other.Addr().String(), MAC: other.MAC()}); err != nil {
		t.Fatal(err)
	}
	const n = 20
	couples := func(want ...int) {
		t.Helper()
		toB, toOther := a.socket.address(b.Addr()), a.socket.address(other.Addr())
		for k, to := range []*address{&toB, &toOther} {
			var ds []datagram
			for range n {
				ds = append(ds, datagram{b: make([]byte, 100), to: to})
			}
			if got := a.socket.couple(ds); got != want[k] {
				t.Errorf("station %d: %d frames leave in %d messages, want %d", k, n, got, want[k])
			}
		}
	}
	couples(1, 1)
	if err := unix.SetsockoptInt(a.socket.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Skip(err)
	}
	if sent, err := a.Send(plain(b.MAC(), n, 100)); sent != n || err != nil {
		t.Fatal(sent, err)
	}
	couples(n, 1)
	for i := range maxAlone + 1 {
		to := a.socket.address(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 9))
		a.socket.out.refuses(&to)
	}
	if known := len(a.socket.out.alone); known > maxAlone {
		t.Errorf("%d ways are known to refuse trains, want %d at most", known, maxAlone)
	}
	couples(1, 1) // and are found out anew
}

// A datagram that is refused alone, as too long for its path, and taken after all, since the path has
// changed meanwhile, says nothing of trains.
func TestSingly_OneSaysNothingOfTrains(t *testing.T) {
	a, b := linked(t)
	to := a.socket.address(b.Addr())
	one := []datagram{{b: make([]byte, 100), to: &to}}
	if n, err := a.socket.singly(one); n != 1 || err != nil || !a.socket.out.takesTrains(&to) {
		t.Errorf("%d, %v; takes trains: %v", n, err, a.socket.out.takesTrains(&to))
	}
	if n, err := a.socket.singly(append(one, one...)); n != 2 || err != nil || a.socket.out.takesTrains(&to) {
		t.Errorf("a train was refused, and its %d datagrams were not (%v); takes trains: %v", n, err, a.socket.out.takesTrains(&to))
	}
}

// refused makes a station known whose address is none of the socket's family: no fault of the way to it.
func refused(l *Link, mac transport.MAC) {
	s := &station{mac: mac, at: netip.MustParseAddrPort("192.0.2.1:9")}
	s.address = l.socket.address(s.at)
	s.address.raw.Family = unix.AF_UNIX
	l.stations.add(s)
}

// What the system refuses, as no way to a station is at fault, is an error that says how many frames
// went before, alone and as a train, and stops none behind it.
func TestSend_RefusedAddress(t *testing.T) {
	for _, size := range []int{1, 2} {
		a, b := linked(t)
		refused(a, numbered(3))
		frames := plain(b.MAC(), size, 100)
		frames = append(frames, plain(numbered(3), size, 100)...)
		frames = append(frames, plain(b.MAC(), size, 100)...)
		if n, err := a.Send(frames); n != size || !errors.Is(err, unix.EAFNOSUPPORT) {
			t.Errorf("%d, %v; want %d and a refusal", n, err, size)
		}
		if n, err := a.Send(frames[size:]); n != 0 || !errors.Is(err, unix.EAFNOSUPPORT) {
			t.Errorf("%d, %v; want a refusal", n, err)
		}
		if n, err := a.Send(frames[2*size:]); n != size || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		count(t, b, 2*size)
		if c := a.Counters(); int(c.TxFrames) != 2*size || c.TxRefused != 2 || len(a.socket.out.alone) > 0 {
			t.Errorf("%+v, trains are off for %d", c, len(a.socket.out.alone))
		}
	}
}

// What strangers say of where they are, and what routes refuse, stops no frame that is for others: a
// broadcast by IP (EACCES), port 0 and an address that this one does not reach (EINVAL), alone and as
// a train, introduced or heard. Nor are trains taken for what was refused.
func TestSend_WhatStrangersRefuse(t *testing.T) {
	for _, stranger := range []string{"255.255.255.255:9", "127.0.0.1:0", "192.0.2.1:9"} {
		for _, size := range []int{1, 2} {
			a, b := linked(t)
			a.learn(numbered(0), netip.MustParseAddrPort(stranger)) // its copies leave before b's
			a.introduced(appendStation(nil, numbered(1000), netip.MustParseAddrPort(stranger)))
			frames := append(plain(transport.Broadcast, size, 100), plain(numbered(0), size, 100)...)
			frames = append(frames, plain(b.MAC(), size, 100)...)
			if n, err := a.Send(frames); n != len(frames) || err != nil {
				t.Errorf("%s: %d of %d frames: %v", stranger, n, len(frames), err)
			}
			count(t, b, 2*size)
			if c := a.Counters(); c.TxRefused != 0 || len(a.socket.out.alone) > 0 {
				t.Errorf("%s: %+v, trains are off for %d", stranger, c, len(a.socket.out.alone))
			}
		}
	}
}

// What the system says as the socket is closed is what Close says, each time.
func TestClose_SaysWhatFailed(t *testing.T) {
	a, _ := linked(t)
	fd := a.socket.fd
	defer func() { _ = unix.Close(fd) }()
	a.socket.fd = 1 << 30 // no descriptor
	for range 2 {
		if err := a.Close(); !errors.Is(err, unix.EBADF) {
			t.Errorf("%v", err)
		}
	}
}

// Copies of frames for all take more messages than one call: each station gets each frame.
func TestSend_MoreThanACall(t *testing.T) {
	a, b := linked(t)
	links := []*Link{b}
	for n := range 4 {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(10 + n)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := a.AddStation(Station{Addr: l.Addr().String(), MAC: l.MAC()}); err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	for range 3 {
		if n, err := a.Send(plain(transport.Broadcast, batch+7, 100)); n != batch+7 || err != nil {
			t.Fatal(n, err)
		}
		for _, l := range links {
			count(t, l, batch+7)
		}
	}
}

// Frames for which the kernel has no room are counted, also once the link is closed.
func TestCounters_RxDropped(t *testing.T) {
	a, _ := linked(t)
	b, err := Open("127.0.0.1:0", Config{MAC: numbered(3), ReceiveBuffer: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := a.AddStation(Station{Addr: b.Addr().String(), MAC: b.MAC()}); err != nil {
		t.Fatal(err)
	}
	const sent = 200
	for range sent {
		if n, err := a.Send(plain(b.MAC(), 1, 1000)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	dropped := b.Counters().RxDropped
	if dropped == 0 || dropped >= sent {
		t.Errorf("%d of %d dropped, where there is room for a few", dropped, sent)
	}
	count(t, b, sent-int(dropped))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := b.Counters().RxDropped; n != dropped {
		t.Errorf("%d dropped, after Close %d", dropped, n)
	}
}
