package auth

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// asked lets time pass, and returns where n asks meanwhile, and after how long. Nobody answers.
func (n *node) asked(now *monotime.Time, d time.Duration) (origins []uint32, after []time.Duration) {
	begin := *now
	for end := now.Add(d); ; {
		at, ok := n.v.Deadline()
		if !ok || end.Before(at) {
			*now = end
			return origins, after
		}
		*now = at
		for _, s := range n.v.Advance(at, nil) {
			origins, after = append(origins, s.Origin), append(after, at.Sub(begin).Round(time.Millisecond))
		}
	}
}

// A station that is searched for is asked where a frame came from, and where the link has it, in turns,
// though it is known to be alive: for as long as a challenge is answered, or until that is settled. An
// answer does not end that. Of more than four places the last ones are asked.
func TestSearch_AsksInTurns(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	expect(t, b, "one")
	search := func(origin uint32) Send {
		t.Helper()
		out := b.v.Search(w.now, a.mac, origin, nil)
		if len(out) != 1 || out[0].Origin != origin || out[0].Dst != a.mac || !out[0].Body.Has(wire.ContactChallenge) {
			t.Fatalf("%+v, want a challenge to origin %d", out, origin)
		}
		return out[0]
	}
	first := search(7)
	before := b.answers
	w.deliver(b.seal(w.now, []Send{first})...)
	if b.answers != before+1 {
		t.Errorf("%d answers", b.answers-before)
	}
	origins, after := b.asked(&w.now, 100*time.Millisecond)
	if want := []uint32{0, 7, 0, 7}; !slices.Equal(origins, want) {
		t.Errorf("asked at %d, %v, want %d", origins, after, want)
	}
	for n := range uint32(maxOrigins) {
		search(10 + n)
	}
	if origins, _ = b.asked(&w.now, 500*time.Millisecond); !slices.Equal(origins[:8], []uint32{0, 12, 0, 11, 0, 10, 0, 13}) {
		t.Errorf("asked at %d", origins)
	}
	b.v.Settle(a.mac)
	if origins, after = b.asked(&w.now, time.Minute); len(origins) > 0 {
		t.Errorf("settled, and asked at %d, %v", origins, after)
	}
	search(7)
	_, after = b.asked(&w.now, time.Minute)
	if n := len(after); n < 15 || after[n-1] >= askLife {
		t.Errorf("asked %d times, the last one %v later", n, after[n-1])
	}
	b.v.Settle(transport.MAC{2, 9}) // of which nobody is asked
}

// A search goes on where its station turns out to be a new incarnation, by another challenge. The budget
// of challenges holds for searches.
func TestSearch_OutlivesItsStation(t *testing.T) {
	a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
	again := newNode(t, "a again", 1, false, secret(1))
	w := newNetwork(a, b)
	w.deliver(a.send(b.mac, "one"))
	out := b.v.Search(w.now, a.mac, 7, nil)
	answers := again.receive(w.now, n0(b.seal(w.now, out)))
	if b.receive(w.now, n0(answers)); len(b.sends) != 2 || b.sends[0].Body.Challenge == out[0].Body.Challenge {
		t.Errorf("%+v, want another challenge, and an answer", b.sends)
	}
	if origins, _ := b.asked(&w.now, 20*time.Millisecond); !slices.Equal(origins, []uint32{0, 7}) {
		t.Errorf("asked at %d", origins)
	}
	for b.v.challenges.Take(int64(w.now.Since())) {
	}
	if out := b.v.Search(w.now, a.mac, 8, nil); len(out) > 0 {
		t.Errorf("beyond the budget: %+v", out)
	}
}

// A challenge that came from elsewhere is answered there, and where the link has the station: once, by
// two frames. One that came from there is answered there alone, and so is one of a node that is not
// known to be alive.
func TestContact_AnswersAlsoWhereTheStationIs(t *testing.T) {
	for _, c := range []struct {
		known, elsewhere bool
		want             []bool // of each answer: it goes to where the link has the station
	}{{true, true, []bool{true, false}}, {true, false, []bool{false}}, {false, true, []bool{false}}} {
		a, b := newNode(t, "a", 1, false, secret(1)), newNode(t, "b", 2, false, secret(1))
		w := newNetwork(a, b)
		if c.known {
			w.deliver(b.send(a.mac, "one"))
			expect(t, a, "one")
		}
		f := n0(b.seal(w.now, b.v.Search(w.now, a.mac, 7, nil)))
		for turn, want := range [][]bool{c.want, nil} {
			var h wire.Header
			var asked wire.Auth
			wire.ParseAuth(f.bytes, &h, &asked)
			r := Frame{Addresses: f.Addresses, Bytes: f.bytes, Elsewhere: c.elsewhere}
			_, out := a.v.Contact(w.now, &r, &asked, nil)
			var got []bool
			counters := map[uint64]bool{}
			for _, s := range out {
				got, counters[s.Counter] = append(got, s.Known), true
				if s.Dst != b.mac || !s.Answer || !s.Body.Has(wire.ContactResponse) {
					t.Errorf("%+v: %+v is no answer", c, s)
				}
			}
			if c.known && !slices.Equal(got, want) || turn == 0 && (!slices.Equal(got, want) || len(counters) != len(out)) {
				t.Errorf("%+v, turn %d: answers %v, want %v", c, turn, got, want)
			}
		}
	}
}

// The sum over a place is of one frame and one cluster alone, and of no place that is not known.
func TestPlaceSum(t *testing.T) {
	k := NewKey(secret(1), cluster)
	at := transport.Place{10: 0xff, 11: 0xff, 12: 10, 15: 1, 16: 0x6b, 17: 0x09} // 10.0.0.1:27401
	sum := k.PlaceSum(at, 1, 2)
	if got := hex.EncodeToString(sum[:]); got != "21bc4a974462e9" {
		t.Errorf("%s: it is part of the format", got)
	}
	elsewhere := at
	elsewhere[17]++
	for name, other := range map[string]wire.PlaceSum{
		"place": k.PlaceSum(elsewhere, 1, 2), "incarnation": k.PlaceSum(at, 2, 2), "counter": k.PlaceSum(at, 1, 3),
		"cluster": NewKey(secret(1), cluster+1).PlaceSum(at, 1, 2), "key": NewKey(secret(2), cluster).PlaceSum(at, 1, 2),
	} {
		if other == sum {
			t.Errorf("another %s has the same", name)
		}
	}
	if none := k.PlaceSum(transport.Place{}, 1, 2); none != (wire.PlaceSum{}) {
		t.Errorf("%x of no place", none)
	}
	for _, c := range []struct {
		says, from transport.Place
		want       bool
	}{{at, at, true}, {at, elsewhere, false}, {at, transport.Place{}, false}, {transport.Place{}, at, false}, {transport.Place{}, transport.Place{}, false}} {
		b := make([]byte, wire.ContactLen)
		(&wire.ContactBody{Place: k.PlaceSum(c.says, 1, 2)}).Put(b)
		f := Frame{Payload: b, key: k}
		if got := f.IsFrom(c.from, &wire.Auth{Incarnation: 1, Counter: 2}); got != c.want {
			t.Errorf("it says %x, and comes from %x: %v", c.says, c.from, got)
		}
	}
}
