package udp

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// A station for which the table has no room is heard all the same.
func TestPoll_TheTableIsFull(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	known, newcomer := newPeer(t, 2), newPeer(t, 3)
	all := []*station{{mac: known.mac, at: known.at(), address: l.socket.address(known.at())}}
	for n := range maxStations - 1 {
		all = append(all, &station{mac: numbered(1000 + n)})
	}
	l.stations.put(all...)
	for i, want := range []int{2, 2} {
		newcomer.say(t, l, plainFrame(transport.Broadcast))
		known.say(t, l, plainFrame(l.MAC()))
		if n := drained(t, l); n != want {
			t.Errorf("authenticated: %v, and %d frames are handed out, want %d", i == 1, n, want)
		}
		l.Authenticates(0)
	}
}

// Where there are as many stations as may be, a newcomer that is heard, or has proved itself, has the
// place of the one that was silent longest, for a minute at least, and that the program did not give.
// One that is only told of has no place then.
func TestStations_GiveWay(t *testing.T) {
	for _, keys := range []bool{false, true} {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at := netip.MustParseAddrPort("127.0.0.1:9")
		hear := func(n int) {
			t.Helper()
			l.stations.tick() // as 64 polls do
			f := plainFrame(l.mac)
			f.Src, f.Payload = numbered(n), []byte("here")
			if !l.accept(f.AppendTo(nil), at, &f) {
				t.Fatalf("keys %v: station %d is not handed out", keys, n)
			}
			l.Answered(&f, true)
		}
		has := func(n int) bool { return l.stations.load().byMAC[numbered(n)] != nil }
		want := func(what string, n int, want bool) {
			t.Helper()
			if len(l.stations.load().known) != maxStations || len(l.stations.load().byMAC) != maxStations || has(n) != want {
				t.Errorf("keys %v, %s: of %d, %d is known: %v", keys, what, len(l.stations.load().known), n, has(n))
			}
		}
		synctest.Test(t, func(t *testing.T) {
			if keys {
				l.Authenticates(0)
			}
			if err := l.AddStation(Station{Addr: "127.0.0.1:10", MAC: numbered(2)}); err != nil {
				t.Fatal(err)
			}
			var all []*station
			for n := range maxStations - 1 {
				all = append(all, &station{mac: numbered(1000 + n), at: at})
			}
			l.stations.put(all...)
			hear(9000)
			want("at once", 9000, false)
			time.Sleep(time.Minute - time.Second) // virtual
			for n := range maxStations - 3 {      // all but the first two
				hear(1002 + n)
			}
			hear(9000)
			want("before the minute", 9000, false)
			time.Sleep(time.Second)
			hear(1000)
			l.introduced(appendStation(nil, numbered(9001), at))
			want("told of", 9001, false)
			hear(9002)
			want("a minute later", 9002, true)
			want("silent longest", 1001, false)
			hear(9003)
			want("no other is silent", 9003, false)
			time.Sleep(time.Hour)
			for n := range 10 {
				hear(20000 + n)
			}
			want("one of many newcomers", 20009, true)
			want("given", 2, true)
			time.Sleep(time.Hour)
			if err := l.AddStation(Station{Addr: "127.0.0.1:11", MAC: numbered(3)}); err != nil {
				t.Error(err)
			}
			want("added", 3, true)
		})
	}
}
