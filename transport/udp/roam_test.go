package udp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// places is a link with keys for which stations are at places of the test's.
type places struct {
	*Link
	t *testing.T
}

func place(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(n))
}

// newPlaces returns a link that takes station 2, if any, to be at place 20.
func newPlaces(t *testing.T, known bool) places {
	t.Helper()
	cfg := Config{MAC: numbered(1)}
	if known {
		cfg.Stations = []Station{{Addr: place(20).String(), MAC: numbered(2)}}
	}
	l, err := Open("127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	l.Authenticates(48)
	return places{l, t}
}

// hears hands a frame of station 2 out that comes from a place.
func (p places) hears(at int) (f transport.Frame) {
	p.t.Helper()
	f = plainFrame(p.mac)
	f.Src = numbered(2)
	if !p.accept(f.AppendTo(nil), place(at), &f) {
		p.t.Fatal("a frame is not handed out")
	}
	return f
}

// authentic is hears of an authentic frame.
func (p places) authentic(at int) {
	p.t.Helper()
	f := p.hears(at)
	p.Authentic(&f)
}

// answered is hears of an answer.
func (p places) answered(at int, direct bool) (settled bool) {
	p.t.Helper()
	f := p.hears(at)
	return p.Answered(&f, direct)
}

// is fails unless station 2 is at a place, or unknown: 0.
func (p places) is(at int, when string) {
	p.t.Helper()
	s := p.stations.find(numbered(2))
	if at == 0 && s != nil || at != 0 && (s == nil || s.at != place(at)) {
		p.t.Errorf("%s: the station is %+v, want place %d", when, s, at)
	}
}

// asks fails unless station 2 is to be asked at these places, and returns the frames that ask.
func (p places) asks(when string, want ...int) {
	p.t.Helper()
	var got []address
	for _, r := range p.Requests() {
		if r.Introduction == nil {
			got = append(got, goesTo(p.Link, transport.Frame{Dst: r.To, Answers: &transport.Frame{Src: r.To, Origin: r.Origin}})...)
		}
	}
	var all []netip.AddrPort
	for _, n := range want {
		all = append(all, place(n))
	}
	if !slices.Equal(got, addressesOf(p.Link, all...)) {
		p.t.Errorf("%s: asked at %v, want places %d", when, got, want)
	}
}

// A relay that sends on what a station has sent, and what it is asked, leads nobody to where he is:
// the station answers from its own place, too. It is asked anew each two seconds.
func TestDoubt_OfARelay(t *testing.T) {
	for _, known := range []bool{true, false} {
		p := newPlaces(t, known)
		synctest.Test(t, func(t *testing.T) {
			home := 20
			if !known {
				p.authentic(66)
				p.asks("at first", 66)
				if p.answered(66, false) {
					t.Error("nobody asks a station any more that nobody knows")
				}
				p.is(0, "by the relay alone")
				if !p.answered(home, true) {
					t.Error("a direct answer settles nothing")
				}
			}
			for second := range 10 {
				p.authentic(66)
				if second%2 == 0 {
					p.asks("relayed", 66)
				}
				p.answered(66, false)
				time.Sleep(10 * time.Millisecond) // virtual
				if !p.answered(home, second%2 == 0) {
					t.Error("an answer from where it is settles nothing")
				}
				time.Sleep(980 * time.Millisecond)
				p.authentic(66)
				p.answered(66, false)
				p.is(home, fmt.Sprintf("second %d", second))
				p.asks("again")
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// A station that answers directly from another place is there at once, and the others are told; and
// back again.
func TestDoubt_OfOneThatMoves(t *testing.T) {
	p := newPlaces(t, true)
	if err := p.AddStation(Station{Addr: place(30).String(), MAC: numbered(3)}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{21, 20, 21} {
		p.authentic(at)
		p.asks("authentic", at)
		if !p.answered(at, true) {
			t.Error("a direct answer settles nothing")
		}
		p.is(at, "answered")
		var told []string
		for _, r := range p.Requests() {
			told = append(told, fmt.Sprintf("%v: %x", r.To, r.Introduction))
		}
		want := []string{fmt.Sprintf("%v: %x", numbered(3), appendStation(nil, numbered(2), place(at))),
			fmt.Sprintf("%v: %x", numbered(2), appendStation(nil, numbered(3), place(30)))}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
}

// One whose answers come from another place than they say, as addresses are translated on the way, is
// there if it is silent where it was, or nowhere before, for a second: whatever comes in between.
func TestDoubt_OfATranslation(t *testing.T) {
	for _, known := range []bool{true, false} {
		p := newPlaces(t, known)
		synctest.Test(t, func(t *testing.T) {
			was := 0
			if known {
				was = 20
			}
			p.authentic(77)
			p.asks("heard", 77)
			for n := range 10 {
				for range maxMoved { // a stream
					p.authentic(77)
				}
				if p.answered(77, false) {
					t.Error("settled at once")
				}
				p.is(was, fmt.Sprintf("%d tenths of a second later", n))
				time.Sleep(time.Second / 10) // virtual
			}
			if !p.answered(77, false) {
				t.Error("not settled after a second")
			}
			p.is(77, "a second later")
		})
	}
}

// An introduction leads nobody away from a station that is known: it has the station asked there, and
// counts if that is where it is. Where none is known it counts until the station is heard from
// elsewhere.
func TestDoubt_OfAnIntroduction(t *testing.T) {
	for _, c := range []struct {
		known, direct bool
		answers, want int
	}{
		{true, true, 25, 25}, {true, false, 25, 20}, {true, false, 20, 20}, {true, true, 26, 26},
		{false, false, 25, 25}, {false, true, 25, 25}, {false, false, 26, 25}, {false, true, 26, 26},
	} {
		p, what := newPlaces(t, c.known), fmt.Sprintf("%+v", c)
		synctest.Test(t, func(t *testing.T) {
			p.Introduced(appendStation(nil, numbered(2), place(25)))
			if c.known {
				p.is(20, what)
				for range 2 * maxMoved { // which strangers send meanwhile
					p.hears(66)
				}
				p.asks(what, 25)
			} else {
				p.is(25, what)
				p.asks(what)
			}
			p.answered(c.answers, c.direct)
			p.is(c.want, what)
			if tentative := p.stations.find(numbered(2)).tentative; tentative != (!c.known && c.answers != c.want) {
				t.Errorf("%s: tentative %v", what, tentative)
			}
		})
	}
}

// A station that is heard from where another one has said that it is, is asked there once; introductions
// of it say nothing new then.
func TestDoubt_NoneOfWhatWasSaid(t *testing.T) {
	p := newPlaces(t, false)
	p.Introduced(appendStation(nil, numbered(2), place(25)))
	p.authentic(25)
	p.asks("heard where it was said to be", 25)
	p.answered(25, false)
	p.Introduced(appendStation(nil, numbered(2), place(25)))
	p.authentic(25)
	p.asks("known")
	if s := p.stations.find(numbered(2)); s.tentative || s.at != place(25) {
		t.Errorf("%+v", s)
	}
}

// There are 256 doubts, the last ones, each of its own origin; 500 a second are raised, and 256 at once.
func TestDoubts_AreBounded(t *testing.T) {
	p := newPlaces(t, true)
	var all []transport.Request
	synctest.Test(t, func(t *testing.T) {
		for n := range 2 * maxDoubts {
			if n == maxDoubts {
				p.authentic(999)
				time.Sleep(time.Second) // virtual
			}
			p.authentic(1000 + n)
		}
		all = p.Requests()
	})
	if len(all) != 2*maxDoubts {
		t.Fatalf("%d requests", len(all))
	}
	for n, want := range map[int]int{0: 20, maxDoubts - 1: 20, maxDoubts: 1000 + maxDoubts, 2*maxDoubts - 1: 1000 + 2*maxDoubts - 1} {
		f := transport.Frame{Dst: numbered(2), Answers: &transport.Frame{Src: numbered(2), Origin: all[n].Origin}}
		if got := goesTo(p.Link, f); !slices.Equal(got, addressesOf(p.Link, place(want))) {
			t.Errorf("doubt %d: asked at %v, want place %d", n, got, want)
		}
	}
}

// The place that a frame leaves is that where it comes from, as the other end sees it: also of a link
// on all addresses, and of an answer. Of such a link it is not known for a station that is not.
func TestDeparture_IsWhereItComesFrom(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		a, err := Open(listen, Config{MAC: numbered(1)})
		if err != nil {
			t.Log(listen, err) // a system without IPv6
			continue
		}
		defer a.Close()
		loopback := netip.MustParseAddr("127.0.0.1")
		if a.Addr().Addr().Is6() {
			loopback = netip.IPv6Loopback()
		}
		b, err := Open(netip.AddrPortFrom(loopback, 0).String(), Config{MAC: numbered(2), Stations: []Station{
			{Addr: netip.AddrPortFrom(loopback, a.Addr().Port()).String(), MAC: numbered(1)}}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, l := range []*Link{a, b} {
			l.Authenticates(0)
		}
		one := plainFrame(a.mac)
		send := func(from, to *Link, f transport.Frame) (got transport.Frame) {
			t.Helper()
			if n, err := from.Send([]transport.Frame{f}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			in := make([]transport.Frame, 1)
			for end := time.Now().Add(10 * time.Second); ; {
				if n, err := to.Poll(in); n == 1 {
					return in[0]
				} else if err != nil || time.Now().After(end) {
					t.Fatal("no frame", err)
				}
			}
		}
		got := send(b, a, one)
		if from, at := b.Departure(&one), a.CameFrom(&got); from != at || at == (transport.Place{}) {
			t.Errorf("%s: it leaves %x, and comes from %x", listen, from, at)
		}
		answer := plainFrame(b.mac)
		if at := a.Departure(&answer); (at == transport.Place{}) != a.Addr().Addr().IsUnspecified() {
			t.Errorf("%s: for a station that is not known it leaves %x", listen, at)
		}
		answer.Answers = &got
		from := a.Departure(&answer)
		back := send(a, b, answer)
		if at := b.CameFrom(&back); from != at || at == (transport.Place{}) {
			t.Errorf("%s: the answer leaves %x, and comes from %x", listen, from, at)
		}
	}
}
