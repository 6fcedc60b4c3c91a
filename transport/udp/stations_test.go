package udp

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

func numbered(n int) transport.MAC { return transport.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

// Strangers can fill neither the table nor the place of those who are known.
func TestStations_AreBounded(t *testing.T) {
	var s stations
	if !s.add(&station{mac: numbered(0)}) || s.add(&station{mac: numbered(0), tentative: true}) {
		t.Fatal("a station is there once")
	}
	for n := 1; n <= 2*maxTentative; n++ {
		if !s.add(&station{mac: numbered(n), tentative: true}) {
			t.Fatal(n)
		}
	}
	table := s.load()
	if len(table.other) != maxTentative || len(table.known) != 1 || s.find(numbered(maxTentative)) != nil ||
		s.find(numbered(maxTentative+1)) == nil {
		t.Errorf("%d tentative stations, %d known; want the newest %d, and 1", len(table.other), len(table.known), maxTentative)
	}
	s.move(&station{mac: numbered(2 * maxTentative)}) // it has proved itself
	s.move(&station{mac: numbered(1)})                // so has this one, which strangers had driven out
	if table := s.load(); len(table.other) != maxTentative-1 || len(table.known) != 3 {
		t.Errorf("%d tentative, %d known", len(table.other), len(table.known))
	}
	var many []*station
	for n := range maxStations - 10 { // one by one each is a new table
		many = append(many, &station{mac: numbered(10000 + n)})
	}
	s.put(many...)
	for n := range 20 {
		s.add(&station{mac: numbered(20000 + n)})
	}
	if table := s.load(); len(table.known) != 4096 {
		t.Errorf("%d known, want at most 4096", len(table.known))
	}
}

// What introductions say costs the same whoever is known: one change of the table for all stations of
// one, and a copy of the tentative ones alone. What says nothing new changes nothing.
func TestStations_WhatIntroductionsCost(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:7401")
	l := &Link{local: at, mac: numbered(0), socket: new(socket)}
	var all []*station
	for n := range 1000 {
		all = append(all, &station{mac: numbered(1 + n)})
	}
	l.stations.put(all...)
	l.Authenticates(0)
	known, next := l.stations.load().known, 10_000
	name := func() (b []byte) {
		for range maxIntroduced {
			b = appendStation(b, numbered(next), at)
			next++
		}
		return b
	}
	for range 10 {
		l.introduced(name())
	}
	if n := testing.AllocsPerRun(10, func() { l.introduced(name()) }); n > 150 { // with those of the test
		t.Errorf("%v allocations for %d stations", n, maxIntroduced)
	}
	table, last := l.stations.load(), numbered(next-1)
	if &table.known[0] != &known[0] || len(table.other) != maxTentative || l.stations.find(last) == nil {
		t.Errorf("the known stations were copied, or %d tentative ones", len(table.other))
	}
	l.introduced(appendStation(appendStation(nil, last, at), numbered(1000), at))
	if l.stations.load() != table {
		t.Error("nothing new changed the table")
	}
}

// A station that is heard, where many are known, costs no more than a copy of the table: it is not
// sorted anew, nor are all looked at for the seeds.
func TestStations_HeardOneByOne(t *testing.T) {
	var s stations
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const many = 1000
	for n := range many { // in no order
		s.add(&station{mac: numbered(n * 7 % many)})
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 25<<20 {
		t.Errorf("%d MiB for %d stations", n>>20, many)
	}
	table := s.load()
	if !slices.IsSortedFunc(table.known, func(a, b *station) int { return a.mac.Compare(b.mac) }) {
		t.Error("copies leave in another order")
	}
	if len(table.known) != many || len(table.byMAC) != many {
		t.Errorf("%d known, %d found by address; want %d", len(table.known), len(table.byMAC), many)
	}
	moved := &station{mac: numbered(500)}
	s.move(moved)
	if table := s.load(); len(table.known) != many || table.known[500] != moved || s.find(moved.mac) != moved {
		t.Error("a station that moved is not in its place")
	}
}

// A link takes as many stations as it may know in one change of its table: it has no copy for each. One
// more is too many, and one that is there twice is told.
func TestOpen_ManyStations(t *testing.T) {
	var all []Station
	for n := range maxStations {
		all = append(all, Station{Addr: fmt.Sprintf("127.1.%d.%d:7401", n>>8, n&0xff)})
	}
	open := func(stations ...Station) (err error) {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(1), MTU: 1400, Stations: stations})
		if err == nil {
			err = l.Close()
		}
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := open(append(all, Station{Addr: "127.0.0.1:7401", MAC: numbered(1)})...) // itself does not count
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Error(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MiB for %d stations", n>>20, maxStations)
	}
	for _, c := range []struct{ one, want string }{
		{"127.0.0.1:7401", "there are 4096 already, as many as may be"},
		{all[7].Addr, StationMAC(all[7].Addr).String() + " is known already"},
	} {
		if err := open(append(all, Station{Addr: c.one})...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.one, err, c.want)
		}
	}
}

// Where a program says where a station is, what a stranger said of it counts for nothing.
func TestAddStation_InPlaceOfATentativeOne(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	l.introduced(appendStation(nil, numbered(2), netip.MustParseAddrPort("127.0.0.1:9")))
	p := newPeer(t, 2)
	if err := l.AddStation(Station{Addr: p.at().String(), MAC: p.mac}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Send([]transport.Frame{plainFrame(p.mac)}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	p.next(t)
	if err := l.AddStation(Station{Addr: p.at().String(), MAC: p.mac}); err == nil || len(l.stations.load().other) != 0 {
		t.Errorf("a station that is known was added again, or is tentative: %v", err)
	}
}

// An introduction to a station that has not proved itself counts though another was believed before,
// which may be a stranger's; to one that is known it does not.
func TestIntroduction_OfATentativeOne(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	lie, truth := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	for n := range maxTentative { // as many as there may be
		l.introduced(appendStation(nil, numbered(100+n), lie))
	}
	for _, at := range []netip.AddrPort{truth, lie, truth} {
		l.introduced(appendStation(nil, numbered(100), at))
		if s := l.stations.find(numbered(100)); s == nil || s.at != at || !s.tentative {
			t.Errorf("%+v, want it at %v", s, at)
		}
		if table := l.stations.load(); len(table.other) != maxTentative || len(table.otherByMAC) != maxTentative {
			t.Errorf("%d tentative stations, and %d", len(table.other), len(table.otherByMAC))
		}
	}
	l.stations.move(&station{mac: numbered(100), at: truth})
	l.introduced(appendStation(nil, numbered(100), lie))
	if s := l.stations.find(numbered(100)); s.at != truth || len(l.stations.load().other) != maxTentative-1 {
		t.Errorf("%+v, want it at %v", s, truth)
	}
}

// A station that proves itself is known, though as many as may be were introduced meanwhile.
func TestAnswered_DrivenOut(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	at, f := netip.MustParseAddrPort("127.0.0.1:9"), plainFrame(l.MAC())
	f.Src = numbered(2)
	if !l.accept(f.AppendTo(nil), at, &f) {
		t.Fatal("a frame is not handed out")
	}
	for n := range maxTentative {
		l.Introduced(appendStation(nil, numbered(1000+n), at))
	}
	l.Answered(&f, true)
	if s := l.stations.find(numbered(2)); s == nil || s.tentative || s.at != at {
		t.Errorf("%+v", s)
	}
}

// A station that was just heard cannot send for another one that is known: that one is elsewhere.
func TestPoll_ForAnother(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	liar, victim := newPeer(t, 2), newPeer(t, 3)
	as := func(n int) *peer { return &peer{numbered(n), liar.conn} }
	one := plainFrame(l.MAC())
	for _, p := range []*peer{victim, liar} {
		p.say(t, l, one)
		drained(t, l)
	}
	for range 3 {
		as(3).say(t, l, one) // right behind its own
		liar.say(t, l, one)
		if n := drained(t, l); n != 1 {
			t.Errorf("%d frames, want its own", n)
		}
	}
	for _, p := range []*peer{as(4), victim} { // a second station there, and the one that is elsewhere
		p.say(t, l, one)
		drained(t, l)
	}
	if c := l.Counters(); c.RxMalformed != 3 || c.RxFrames != 7 {
		t.Errorf("%+v, want 3 malformed of 10", c)
	}
}

// A link may be among its own stations, and is none of them: it sends nothing to itself.
func TestStations_OwnIsNone(t *testing.T) {
	own, other := Station{Addr: "127.0.0.1:9", MAC: numbered(1)}, Station{Addr: "127.0.0.1:10", MAC: numbered(2)}
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1), Stations: []Station{own, other, own}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if err := l.AddStation(own); err != nil {
			t.Error(err)
		}
	}
	if known := l.stations.load().known; len(known) != 1 || known[0].mac != other.MAC {
		t.Errorf("%d stations, want the other one alone", len(known))
	}
}

// A frame for a station that is not known is lost, and goes to no other one.
func TestSend_ToNobody(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := newPeer(t, 2)
	if err := l.AddStation(Station{Addr: p.at().String(), MAC: p.mac}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Send([]transport.Frame{plainFrame(numbered(3)), plainFrame(p.mac)}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if f := p.next(t); f.Dst != p.mac {
		t.Errorf("a frame for %v came", f.Dst)
	}
}

// A frame from elsewhere than its station is, where frames are authenticated, is answered there, and
// there alone: until it has proved that its station is there.
func TestAnswer_FromElsewhere(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	before, now := newPeer(t, 2), newPeer(t, 2)
	if err := l.AddStation(Station{Addr: before.at().String(), MAC: before.mac}); err != nil {
		t.Fatal(err)
	}
	text := func(s string) []transport.Frame {
		return []transport.Frame{{Dst: before.mac, EtherType: transport.EtherTypeDefault, Payload: []byte(s)}}
	}
	for _, p := range []*peer{before, now} {
		f := plainFrame(l.MAC())
		f.Payload = []byte{7} // the shortest that tells frames apart
		p.say(t, l, f)
		in := make([]transport.Frame, 1)
		for n, end := 0, time.Now().Add(10*time.Second); n == 0; {
			if n, err = l.Poll(in); err != nil || time.Now().After(end) {
				t.Fatal("no frame", err)
			}
		}
		answer := text("answer")
		answer[0].Answers = &in[0]
		if n, err := l.Send(answer); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if f := p.next(t); string(f.Payload) != "answer" {
			t.Errorf("%q", f.Payload)
		}
		for _, s := range []string{"at once", "proved"} {
			to := before
			if s == "proved" {
				l.Answered(&in[0], true)
				to = p
			}
			if n, err := l.Send(text(s)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if f := to.next(t); string(f.Payload) != s {
				t.Errorf("%q, want %q", f.Payload, s)
			}
		}
	}
}

func TestPublicAddr(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "192.168.0.1": false, "100.64.0.1": false, "169.254.1.1": false,
		"203.0.113.5": true, "100.128.0.1": true, "::1": false, "fe80::1": false, "fd00::1": false, "2001:db8::1": true,
		"::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true,
	} {
		if got := isPublic(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: public %v, want %v", addr, got, want)
		}
		at := netip.MustParseAddr(addr)
		if got, is := publicAddr(at, false); got != at || is != want {
			t.Errorf("a link on %s: %v, public %v, want %v", addr, got, is, want)
		}
	}
}

// An address that is written in the same way is the same station everywhere.
func TestStationMAC(t *testing.T) {
	a, b := StationMAC("10.0.0.1:7401"), StationMAC("10.0.0.2:7401")
	if a == b || a != StationMAC("10.0.0.1:7401") || a.IsMulticast() || !a.IsLocal() {
		t.Errorf("%v and %v", a, b)
	}
	if want := (transport.MAC{0x62, 0xd5, 0xd0, 0xa1, 0x77, 0x18}); a != want {
		t.Errorf("%v, want %v: it is part of the format", a, want)
	}
	for short, full := range map[string]string{
		"10.0.0.1": "10.0.0.1:27401", "fd00::1": "[fd00::1]:27401", "[fd00::1]": "[fd00::1]:27401", "node2": "node2:27401",
		"::ffff:10.0.0.1": "10.0.0.1:27401", "[::ffff:10.0.0.1]:7": "10.0.0.1:7",
	} {
		if StationMAC(short) != StationMAC(full) {
			t.Errorf("%s and %s are two stations", short, full)
		}
	}
}

// Whatever an introduction says, the table has whole stations only, and what was appended is read.
func FuzzIntroduction(f *testing.F) {
	at := netip.MustParseAddrPort("10.0.0.1:7401")
	f.Add(appendStation(appendStation(nil, numbered(1), at), numbered(2), netip.MustParseAddrPort("[fd00::1]:9")))
	f.Add(appendStation(appendStation(nil, numbered(1), at), numbered(1), netip.MustParseAddrPort("10.0.0.2:7401")))
	f.Add([]byte{})
	f.Add(appendStation(nil, numbered(1), at)[:10]) // cut off
	for _, nobody := range []string{"0.0.0.0:1", "224.0.0.1:1", "10.0.0.1:0"} {
		f.Add(appendStation(nil, numbered(1), netip.MustParseAddrPort(nobody)))
	}
	f.Add([]byte{2, 0, 0, 0, 0, 1, 3, 10, 0, 1, 0, 9}) // an address of 3 bytes
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; ; {
			mac, at, next, ok := cutStation(rest)
			if !ok {
				break
			}
			if again := appendStation(nil, mac, at); !bytes.HasPrefix(rest, again) || len(again)+len(next) != len(rest) {
				t.Fatalf("%x: %v %v", rest, mac, at)
			}
			rest = next
		}
		l := &Link{local: at, socket: new(socket)}
		l.introduced(b)
		if n := len(l.stations.load().known); n > maxIntroduced {
			t.Fatalf("%d stations", n)
		}
		known := l.stations.load()
		l.authenticated.Store(true)
		l.introduced(b)
		for rest := b; len(rest) > 16; rest = rest[1:] { // other stations, and other places
			l.introduced(rest)
		}
		if table := l.stations.load(); len(table.known) != len(known.known) || len(table.other) > maxTentative {
			t.Fatalf("%d stations are known, and %d tentative", len(table.known), len(table.other))
		}
	})
}
