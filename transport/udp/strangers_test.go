package udp

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Stations of which another one has said where they are get few of the frames for all until they are
// heard, 200 a second and 256 at once, and none of those for groups.
func TestTentative_GetFewFramesForAll(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	l.Introduced(appendStation(nil, numbered(2), netip.MustParseAddrPort("127.0.0.1:9")))
	copies := func(to transport.MAC) int {
		l.out.datagrams = l.out.datagrams[:0]
		for range 1000 {
			f := plainFrame(to)
			l.address(0, &f)
		}
		return len(l.out.datagrams)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after time.Duration
			to    transport.MAC
			want  int
		}{
			{0, transport.MAC{1, 2, 3}, 0}, {0, transport.Broadcast, 256}, {time.Second, transport.Broadcast, 200},
			{time.Minute, transport.Broadcast, 256}, {0, transport.Broadcast, 0},
		} {
			time.Sleep(c.after) // virtual
			if n := copies(c.to); n != c.want {
				t.Errorf("%v later: %d copies for %v, want %d", c.after, n, c.to, c.want)
			}
		}
	})
}

// With keys no stranger changes what a link knows, nor gets a copy of anything, by frames of stations
// that he makes up, or that are known, nor by introductions of these. A frame is handed out, may be
// answered to where it came from, and makes its station known if that answers.
func TestStrangers_ChangeNothing(t *testing.T) {
	known, at := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1), Stations: []Station{{Addr: known.String(), MAC: numbered(2)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	before, malformed := l.stations.load(), uint64(0)
	var made transport.Frame
	for _, src := range []transport.MAC{numbered(3), numbered(2)} {
		for _, dst := range []transport.MAC{l.mac, transport.Broadcast} {
			f := plainFrame(dst)
			f.Src = src
			if !l.accept(f.AppendTo(nil), at, &f) {
				t.Fatal("a frame is not handed out")
			}
			if src == numbered(3) && dst == l.mac {
				made = f
			}
			f = transport.Frame{Dst: dst, Src: src, EtherType: introductionType, Payload: appendStation(nil, numbered(4), at)}
			if malformed++; l.accept(f.AppendTo(nil), known, &f) {
				t.Error("an introduction is handed out")
			}
		}
	}
	if c := l.Counters(); l.stations.load() != before || c.RxMalformed != malformed || c.TxFrames != 0 || len(l.Requests()) != 0 {
		t.Errorf("%+v, want %d malformed and nothing else; the table is the same: %v", c, malformed, l.stations.load() == before)
	}
	for _, c := range []struct {
		f    transport.Frame
		want []netip.AddrPort
	}{
		{plainFrame(transport.Broadcast), []netip.AddrPort{known}}, {plainFrame(numbered(3)), nil},
		{transport.Frame{Dst: made.Src, Answers: &made}, []netip.AddrPort{at}},
	} {
		if got := goesTo(l, c.f); !slices.Equal(got, addressesOf(l, c.want...)) {
			t.Errorf("a frame for %v goes to %v, want %v", c.f.Dst, got, c.want)
		}
	}
	if !l.Answered(&made, true) || l.stations.find(numbered(3)) == nil {
		t.Error("one that has proved itself is not known")
	}
}

// goesTo returns where a link sends a frame.
func goesTo(l *Link, f transport.Frame) (all []address) {
	l.out.datagrams = nil
	l.address(0, &f)
	for _, d := range l.out.datagrams {
		all = append(all, *d.to)
	}
	return all
}

func addressesOf(l *Link, places ...netip.AddrPort) (all []address) {
	for _, at := range places {
		all = append(all, l.socket.address(at))
	}
	return all
}

// Of the frames that come from elsewhere than their station is, the last 256 can move it by an answer,
// also after another Poll.
func TestMoves_AreBounded(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	before := netip.MustParseAddrPort("127.0.0.1:9")
	if err := l.AddStation(Station{Addr: before.String(), MAC: numbered(2)}); err != nil {
		t.Fatal(err)
	}
	elsewhere := func(n int) netip.AddrPort { return netip.AddrPortFrom(before.Addr(), uint16(1000+n)) }
	frames := make([]transport.Frame, 257)
	for n := range frames {
		f := plainFrame(l.MAC())
		f.Src = numbered(2)
		if !l.accept(f.AppendTo(nil), elsewhere(n), &frames[n]) {
			t.Fatalf("frame %d is not handed out", n)
		}
	}
	if n, err := l.Poll(nil); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	for _, c := range []struct {
		frame int
		want  netip.AddrPort
	}{{0, before}, {256, elsewhere(256)}, {1, elsewhere(1)}} {
		l.Answered(&frames[c.frame], true)
		if at := l.stations.find(numbered(2)).at; at != c.want {
			t.Errorf("frame %d is an answer, and the station at %v, want %v", c.frame, at, c.want)
		}
	}
}

// A station that has moved is where its last answer came from directly, also if that is where it was
// before, and it has sent one frame from elsewhere.
func TestMoves_ThereAndBack(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	home, elsewhere := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	if err := l.AddStation(Station{Addr: home.String(), MAC: numbered(2)}); err != nil {
		t.Fatal(err)
	}
	for i, at := range []netip.AddrPort{home, home, elsewhere, home, elsewhere, elsewhere, home} {
		if n, err := l.Poll(nil); n != 0 || err != nil { // the next one
			t.Fatal(n, err)
		}
		f := plainFrame(l.MAC())
		f.Src = numbered(2)
		var got transport.Frame
		if !l.accept(f.AppendTo(nil), at, &got) {
			t.Fatalf("frame %d is not handed out", i)
		}
		l.Answered(&got, true)
		if is := l.stations.find(numbered(2)).at; is != at {
			t.Errorf("frame %d came from %v, and the station is at %v", i, at, is)
		}
	}
}

// A frame of no station, as one of the unset address, makes none known; nor does an introduction.
func TestStations_HaveAnAddress(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from := netip.MustParseAddrPort("127.0.0.1:9")
	f := plainFrame(l.MAC())
	f.Src = transport.MAC{}
	var got transport.Frame
	if l.accept(f.AppendTo(nil), from, &got) {
		t.Errorf("taken: %v", got)
	}
	l.introduced(appendStation(nil, transport.MAC{}, from))
	if table := l.stations.load(); len(table.known) > 0 {
		t.Errorf("known: %v", table.known[0])
	}
}
