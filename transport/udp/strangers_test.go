package udp

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Stations that have not proved themselves get few of the frames for all, 200 a second and 256 at
// once, and none of those for groups.
func TestStrangers_GetFewFramesForAll(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates()
	l.learn(numbered(2), netip.MustParseAddrPort("127.0.0.1:9"))
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

// However many stations strangers make up, with frames of theirs or introductions, the table changes
// 500 times a second, and 256 times at once. A frame of one that was not learned for that is handed
// out, answered to where it came from, and makes its station known if it is authentic.
func TestStrangers_ChangeTheTableSeldom(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates()
	next, at := 0, netip.MustParseAddrPort("127.0.0.1:9")
	var last transport.Frame
	hear := func() {
		f := plainFrame(l.mac)
		f.Src, f.Payload = transport.MAC{2, 1, 0, 0, byte(next >> 8), byte(next)}, []byte("made up")
		next++
		if !l.accept(f.AppendTo(nil), at, &last) {
			t.Fatal("a frame is not handed out")
		}
	}
	hearOf := func() {
		mac := transport.MAC{2, 2, 0, 0, byte(next >> 8), byte(next)}
		next++
		l.introduced(&transport.Frame{Payload: appendStation(nil, mac, at)})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after time.Duration
			do    func()
			want  int
		}{{0, hear, 256}, {time.Second / 10, hearOf, 50}, {time.Second / 10, hear, 50}, {time.Minute, hearOf, 256}, {0, hear, 0}} {
			time.Sleep(c.after) // virtual
			changes := 0
			for range 1000 {
				before := l.stations.load()
				if c.do(); l.stations.load() != before {
					changes++
				}
			}
			if changes != c.want {
				t.Errorf("%v later: %d changes, want %d", c.after, changes, c.want)
			}
		}
	})
	l.out.datagrams = nil
	l.address(0, &transport.Frame{Dst: last.Src, Answers: &last})
	if l.stations.find(last.Src) != nil || len(l.out.datagrams) != 1 || *l.out.datagrams[0].to != l.socket.address(at) {
		t.Errorf("it was learned, or is answered by %v", l.out.datagrams)
	}
	if l.Authentic(&last); l.stations.find(last.Src) == nil {
		t.Error("one that has proved itself is not known")
	}
}

// Of the frames that come from elsewhere than their station is, the last 256 can move it, also after
// another Poll.
func TestMoves_AreBounded(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates()
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
		l.Authentic(&frames[c.frame])
		if at := l.stations.find(numbered(2)).at; at != c.want {
			t.Errorf("frame %d is authentic, and the station at %v, want %v", c.frame, at, c.want)
		}
	}
}

// A station that has moved is where its last authentic frame came from, also if that is where it was
// before, and it has sent one frame from elsewhere.
func TestMoves_ThereAndBack(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates()
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
		l.Authentic(&got)
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
	l.introduced(&transport.Frame{Payload: appendStation(nil, transport.MAC{}, from)})
	if table := l.stations.load(); len(table.known) > 0 {
		t.Errorf("known: %v", table.known[0])
	}
}
