package udp

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Introductions, byte by byte, and what is none.
func TestIntroduction_Golden(t *testing.T) {
	at4, at6 := netip.MustParseAddrPort("10.0.0.1:258"), netip.MustParseAddrPort("[fd00::1]:9")
	b := appendStation(appendStation(nil, numbered(1), at4), numbered(2), at6)
	want := "\x02\x00\x00\x00\x00\x01\x04\x0a\x00\x00\x01\x01\x02" +
		"\x02\x00\x00\x00\x00\x02\x10\xfd" + string(make([]byte, 14)) + "\x01\x00\x09"
	if string(b) != want {
		t.Errorf("%x, want %x", b, want)
	}
	mac, at, rest, ok := cutStation(b)
	if mac != numbered(1) || at != at4 || !ok || string(rest) != want[13:] {
		t.Errorf("%v %v, %x, %v", mac, at, rest, ok)
	}
	if mac, at, rest, ok = cutStation(rest); mac != numbered(2) || at != at6 || !ok || len(rest) != 0 {
		t.Errorf("%v %v, %x, %v", mac, at, rest, ok)
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "a part of a MAC": b[:5], "no length": b[:6], "no address": b[:7], "a part of a port": b[:12],
		"every address": appendStation(nil, numbered(1), netip.MustParseAddrPort("0.0.0.0:1")),
		"a group":       appendStation(nil, numbered(1), netip.MustParseAddrPort("224.0.0.1:1")),
		"no port":       appendStation(nil, numbered(1), netip.MustParseAddrPort("10.0.0.1:0")),
		"5 bytes":       {2, 0, 0, 0, 0, 1, 5, 10, 0, 0, 1, 1, 0, 9},
	} {
		if mac, at, _, ok := cutStation(bad); ok {
			t.Errorf("%s: %v %v", name, mac, at)
		}
	}
}

// What an introduction says is believed of others alone, where the link can send to; and of 32 at most.
func TestIntroduction_Believed(t *testing.T) {
	local := netip.MustParseAddrPort("10.0.0.1:7401")
	l := &Link{local: local, mac: numbered(0), socket: new(socket)}
	at := netip.MustParseAddrPort("10.0.0.2:7401")
	var b []byte
	for _, mac := range []transport.MAC{l.mac, transport.Broadcast, numbered(1), numbered(1)} {
		b = appendStation(b, mac, at)
	}
	b = appendStation(b, numbered(2), netip.MustParseAddrPort("[fd00::1]:9"))
	b = appendStation(b, numbered(3), at)
	l.introduced(append(b, "what follows"...))
	if known := l.stations.load().known; len(known) != 2 || known[0].mac != numbered(1) || known[1].mac != numbered(3) || known[0].at != at {
		t.Errorf("%d stations: %+v", len(known), known)
	}
	b = nil
	for n := range 40 {
		b = appendStation(b, numbered(100+n), at)
	}
	l.introduced(b)
	if known := l.stations.load().known; len(known) != 2+32 || known[33].mac != numbered(131) {
		t.Errorf("%d stations", len(known))
	}
}

// An introduction does not say of which interface a link-local address is: of the link's own.
func TestIntroduction_LinkLocal(t *testing.T) {
	l := &Link{local: netip.MustParseAddrPort("[fe80::1%7]:9"), zone: "7", socket: new(socket)}
	l.introduced(appendStation(nil, numbered(1), netip.MustParseAddrPort("[fe80::2]:9")))
	if s := l.stations.find(numbered(1)); s == nil || s.at != netip.MustParseAddrPort("[fe80::2%7]:9") {
		t.Errorf("%+v", s)
	}
}

// What is no introduction makes nobody known, whatever the link's family.
func TestIntroduction_Garbage(t *testing.T) {
	for _, local := range []string{"10.0.0.1:7401", "[fd00::1]:7401"} {
		l := &Link{local: netip.MustParseAddrPort(local), mac: numbered(0), socket: new(socket)}
		for n := range 40 {
			l.introduced(bytes.Repeat([]byte{2}, n))
		}
		if known := l.stations.load().known; len(known) != 0 {
			t.Errorf("%s: %d stations, such as %v at %v", local, len(known), known[0].mac, known[0].at)
		}
	}
}

// peer is a socket of the test's in place of a station's link.
type peer struct {
	mac  transport.MAC
	conn *net.UDPConn
}

func newPeer(t *testing.T, n int) *peer {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{numbered(n), conn}
}

func (p *peer) at() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// say sends a frame to a link.
func (p *peer) say(t *testing.T, l *Link, f transport.Frame) {
	t.Helper()
	f.Src = p.mac
	if _, err := p.conn.WriteToUDPAddrPort(f.AppendTo(nil), l.Addr()); err != nil {
		t.Fatal(err)
	}
}

// next returns the next frame that has come.
func (p *peer) next(t *testing.T) transport.Frame {
	t.Helper()
	b := make([]byte, 2000)
	_ = p.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := p.conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := transport.ParseFrame(b[:n])
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drained polls until the last frame of a test, which is for the link alone, and returns how many came.
func drained(t *testing.T, l *Link) (n int) {
	t.Helper()
	in := make([]transport.Frame, 64)
	for end := time.Now().Add(10 * time.Second); ; {
		k, err := l.Poll(in)
		if err != nil || time.Now().After(end) {
			t.Fatal(err)
		}
		for _, f := range in[:k] {
			n++
			if f.Dst == l.MAC() {
				return n
			}
		}
	}
}

// On a link of a short MTU, too, a newcomer is told of all others: of as many in a frame as fit.
func TestIntroductions_FitTheMTU(t *testing.T) {
	const others = 8
	for mtu, want := range map[int][]int{50: {3, 3, 2}, 52: {4, 4}, 13: {1, 1, 1, 1, 1, 1, 1, 1}} {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1), MTU: mtu})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		sink, newcomer := newPeer(t, 200), newPeer(t, 50)
		for n := range others {
			if err := l.AddStation(Station{Addr: sink.at().String(), MAC: numbered(100 + n)}); err != nil {
				t.Fatal(err)
			}
		}
		newcomer.say(t, l, plainFrame(transport.Broadcast))
		newcomer.say(t, l, plainFrame(l.MAC()))
		drained(t, l)
		if refused := l.Counters().TxRefused; refused != 0 {
			t.Fatalf("MTU %d: %d introductions were refused", mtu, refused)
		}
		var told []int
		for range want {
			told = append(told, len(newcomer.next(t).Payload)/13)
		}
		if !slices.Equal(told, want) {
			t.Errorf("MTU %d: told of %d stations, want %d", mtu, told, want)
		}
	}
}

// One that is heard by a frame for all is introduced to each of the others, and they to it, 32 at a
// time, eight times: introductions may be lost. A frame for one station introduces nobody.
func TestIntroductions_AreSent(t *testing.T) {
	const others = 40
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sink, newcomer := newPeer(t, 200), newPeer(t, 50)
	for n := range others {
		if err := l.AddStation(Station{Addr: sink.at().String(), MAC: numbered(100 + n)}); err != nil {
			t.Fatal(err)
		}
	}
	all, one := plainFrame(transport.Broadcast), plainFrame(l.MAC())
	newcomer.say(t, l, one)
	drained(t, l)
	var want []byte
	for n := range others {
		want = appendStation(want, numbered(100+n), sink.at())
	}
	for round := range 12 {
		newcomer.say(t, l, all)
		newcomer.say(t, l, one)
		if n := drained(t, l); n != 2 {
			t.Fatalf("%d frames", n)
		}
		if round >= 8 {
			continue
		}
		var told []byte
		for _, stations := range []int{32, 8} {
			f := newcomer.next(t)
			if f.EtherType != introductionType || f.Dst != newcomer.mac || f.Src != l.MAC() {
				t.Fatalf("%+v", f)
			}
			if n := len(f.Payload) / 13; n != stations {
				t.Errorf("%d stations in a frame, want %d", n, stations)
			}
			told = append(told, f.Payload...)
		}
		if !bytes.Equal(told, want) {
			t.Errorf("%x, want %x", told, want)
		}
		for n := range others {
			f := sink.next(t)
			if f.EtherType != introductionType || f.Dst != numbered(100+n) ||
				!bytes.Equal(f.Payload, appendStation(nil, newcomer.mac, newcomer.at())) {
				t.Fatalf("%+v", f)
			}
		}
	}
	for _, p := range []*peer{sink, newcomer} { // nothing is behind that
		to := numbered(100)
		if p == newcomer {
			to = newcomer.mac
		}
		if n, err := l.Send([]transport.Frame{plainFrame(to)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if f := p.next(t); f.EtherType == introductionType {
			t.Errorf("introduced once more: %+v", f)
		}
	}
}

// A station that was introduced as often as may be, and is heard by a frame for all, is told of the
// others all the same, each 5 s at most: it may have been restarted, and know nobody. They are not
// told of it: they know where it is.
func TestIntroductions_AfterARestart(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nobody := netip.MustParseAddrPort("127.0.0.1:9")
	for n := range 40 {
		l.learn(numbered(100+n), nobody)
	}
	introductions := func(n int) int {
		before := l.Counters().TxFrames
		for range n {
			f := plainFrame(transport.Broadcast)
			f.Src = numbered(2)
			if !l.accept(f.AppendTo(nil), nobody, &f) {
				t.Fatal("a frame is not handed out")
			}
		}
		return int(l.Counters().TxFrames - before)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after       time.Duration
			heard, want int
		}{
			{0, 100, 8 * (40 + 2)}, {4999 * time.Millisecond, 100, 0}, {time.Millisecond, 100, 2},
			{4999 * time.Millisecond, 100, 0}, {time.Hour, 100, 2},
		} {
			time.Sleep(c.after) // virtual
			if n := introductions(c.heard); n != c.want {
				t.Errorf("%v later: %d introductions, want %d", c.after, n, c.want)
			}
		}
	})
}

// Stations of which a program or an introduction has said where they are get no introduction for each
// frame for all: they are told of the others once in 5 s, and the others of four of them a second. So
// it is with keys, where such a station has proved itself; one that was elsewhere is introduced.
func TestIntroductions_OfThoseWhoAreKnown(t *testing.T) {
	const many = 40
	at, elsewhere := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	for _, by := range []string{"the program", "an introduction", "an introduction, proved", "a lie, proved"} {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		from, proved := at, strings.HasSuffix(by, ", proved")
		if proved {
			l.Authenticates(0)
		}
		if by == "a lie, proved" {
			from = elsewhere
		}
		for n := range many {
			mac := numbered(100 + n)
			if by == "the program" {
				if err := l.AddStation(Station{Addr: at.String(), MAC: mac}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			l.introduced(appendStation(nil, mac, at))
			if f := plainFrame(l.mac); proved {
				f.Src, f.Payload = mac, []byte("proof")
				if !l.accept(f.AppendTo(nil), from, &f) {
					t.Fatal("a frame is not handed out")
				}
				l.Answered(&f, true)
				l.Requests() // nobody else is told yet
			}
		}
		all := func() int {
			before := l.Counters().TxFrames
			for n := range many {
				f := plainFrame(transport.Broadcast)
				f.Src = numbered(100 + n)
				if !l.accept(f.AppendTo(nil), from, &f) {
					t.Fatal("a frame is not handed out")
				}
				l.Authentic(&f)
			}
			return int(l.Counters().TxFrames-before) + len(l.Requests())
		}
		const told, spread = many * 2, many - 1
		want := []int{told + 4*spread, 0, told + 4*spread, 0}
		if from == elsewhere { // eight times, and told now and then afterwards
			want = []int{many * (2 + spread), many * (2 + spread), many * (2 + spread), many * (2 + spread)}
		}
		synctest.Test(t, func(t *testing.T) {
			for i, after := range []time.Duration{time.Minute, 4 * time.Second, time.Second, time.Second} {
				time.Sleep(after) // virtual
				if n := all(); n != want[i] {
					t.Errorf("by %s, %v later: %d introductions, want %d", by, after, n, want[i])
				}
			}
		})
	}
}

// Whoever asks in the names of many, stations are told of the others again 64 at once, and 20 a second.
func TestIntroductions_AgainAreBounded(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 200 {
		l.learn(numbered(100+n), netip.MustParseAddrPort("127.0.0.1:9"))
	}
	for _, s := range l.stations.load().known {
		s.told.Store(maxTold)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{time.Minute, 64}, {time.Second, 20}, {0, 0}, {time.Minute, 64}} {
			time.Sleep(c.after) // virtual
			before := l.Counters().TxFrames
			for _, s := range l.stations.load().known {
				l.introduce(s)
			}
			if n := int(l.Counters().TxFrames-before) / 7; n != c.want { // 199 others
				t.Errorf("%v later: %d stations are told, want %d", c.after, n, c.want)
			}
		}
	})
}

// A newcomer is told of as many as there are, be it one, and gets no introduction of nobody.
func TestIntroductions_Sizes(t *testing.T) {
	for _, c := range []struct {
		others int
		want   []int
	}{{0, nil}, {1, []int{1}}, {32, []int{32}}, {33, []int{32, 1}}} {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		newcomer := newPeer(t, 50)
		for n := range c.others {
			l.learn(numbered(100+n), l.Addr())
		}
		newcomer.say(t, l, plainFrame(transport.Broadcast))
		newcomer.say(t, l, plainFrame(l.MAC()))
		drained(t, l)
		if n, err := l.Send([]transport.Frame{plainFrame(newcomer.mac)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		var told []int
		for f := newcomer.next(t); f.EtherType == introductionType; f = newcomer.next(t) {
			told = append(told, len(f.Payload)/13)
		}
		if !slices.Equal(told, c.want) {
			t.Errorf("of %d others it is told of %v, want %v", c.others, told, c.want)
		}
	}
}

func plainFrame(to transport.MAC) transport.Frame {
	return transport.Frame{Dst: to, EtherType: transport.EtherTypeDefault, Payload: make([]byte, 46)}
}

// A station that has proved itself is known for good, though it was the oldest of the tentative ones.
func TestStations_ProvenStay(t *testing.T) {
	for _, proven := range []int{0, 1, maxTentative - 1} {
		var s stations
		for n := range maxTentative {
			s.add(&station{mac: numbered(n), tentative: true})
		}
		s.move(&station{mac: numbered(proven)})
		for n := range maxTentative {
			s.add(&station{mac: numbered(1000 + n), tentative: true})
		}
		if table := s.load(); s.find(numbered(proven)) == nil || len(table.known) != 1 || len(table.other) != maxTentative ||
			table.other[0].mac != numbered(1000) {
			t.Errorf("station %d: %d known, %d tentative", proven, len(table.known), len(table.other))
		}
	}
}
