package afpacket

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// stationsTest is stations, the time, and the numbers of offers, which count.
type stationsTest struct {
	*stations
	t    *testing.T
	now  monotime.Time
	last uint64
}

func newStationsTest(t *testing.T) *stationsTest {
	s := &stationsTest{t: t, now: monotime.At(time.Hour)}
	s.stations = newStations(func() uint64 { s.last += 2; return s.last })
	return s
}

// expect sends like f and checks whether it may go as a train and whether there is an offer, which
// it returns.
func (s *stationsTest) expect(f *transport.Frame, train, offered bool) uint64 {
	s.t.Helper()
	st, offer := s.takes(s.now, f)
	if (st != nil) != train || (offer != 0) != offered {
		s.t.Fatalf("at %v: train %v, offer %v; want %v, %v", s.now.Since()-time.Hour, st != nil, offer != 0, train, offered)
	}
	return offer
}

// answer has a station answer an offer as it would.
func (s *stationsTest) answer(from transport.MAC, vid int32, offer uint64) {
	s.t.Helper()
	sent := control{vid: vid, number: offer}
	there := newStations(nil)
	b := sent.append(nil)
	if _, whole := there.receive(trainOffer, transport.MAC{2, 9}, b[:controlLen]); whole {
		s.t.Fatal("half an offer is whole")
	}
	c, whole := there.receive(trainOffer, transport.MAC{2, 9}, b[controlLen:])
	if !whole || c.number != offer || c.vid != vid {
		s.t.Fatalf("%+v, %v", c, whole)
	}
	c.ordered = true
	b = c.append(nil)
	s.receive(trainAnswer, from, b[:controlLen])
	if c, whole = s.receive(trainAnswer, from, b[controlLen:]); !whole {
		s.t.Fatal("not a whole answer")
	}
	s.answered(s.now, &c)
}

var (
	stationA = transport.MAC{2, 0, 0, 0, 0, 1}
	stationB = transport.MAC{2, 0, 0, 0, 0, 2}
)

// The table of the states, row by row.
func TestStations(t *testing.T) {
	s := newStationsTest(t)
	f := &transport.Frame{Dst: stationA}
	offer := s.expect(f, false, true)
	s.expect(f, false, false) // no answer yet, and too early for another offer
	s.now = s.now.Add(firstRetry)
	second := s.expect(f, false, true)
	if second == offer {
		t.Error("the same offer again")
	}
	s.now = s.now.Add(firstRetry)
	s.expect(f, false, false) // the next one is due twice as late
	s.answer(stationA, -1, offer)
	s.expect(f, false, false) // an old offer's answer
	s.answer(stationB, -1, second)
	s.expect(f, false, false) // another station's
	s.answer(stationA, 7, second)
	s.expect(f, false, false) // another path's
	s.answer(stationA, -1, second)
	s.now = s.now.Add(renewal - 2*firstRetry)
	s.expect(f, true, false) // the next offer is due after renewal
	s.now = s.now.Add(2 * firstRetry)
	third := s.expect(f, true, true)
	s.now = s.now.Add(renewal)
	s.expect(f, true, true)
	s.answer(stationA, -1, third) // late: another offer is open
	s.now = s.now.Add(provenFor - 2*renewal - 1)
	s.expect(f, true, true)
	s.now = s.now.Add(1)
	s.expect(f, false, false) // no answer for too long
	s.now = s.now.Add(renewal)
	s.expect(f, false, true)
	s.now = s.now.Add(renewal)
	s.expect(f, false, false) // again twice as late
	s.now = s.now.Add(renewal)
	s.answer(stationA, -1, s.expect(f, false, true))
	s.expect(f, true, false)
}

// A station that takes no trains any more gets frames as they are long before protocols above give
// a peer up, which is after 2 s.
func TestStations_WhoTakesNoneAnyMore(t *testing.T) {
	s := newStationsTest(t)
	f := &transport.Frame{Dst: stationA}
	s.answer(stationA, -1, s.expect(f, false, true))
	for began := s.now; ; s.now = s.now.Add(time.Millisecond) {
		st, _ := s.takes(s.now, f)
		if st == nil {
			break
		}
		if s.now.Sub(began) >= time.Second {
			t.Fatal("trains go to it after a second without an answer")
		}
	}
}

// A station to which a train was refused is asked again after a second: the error may pass.
func TestStations_RefusedTrain(t *testing.T) {
	s := newStationsTest(t)
	f := &transport.Frame{Dst: stationA}
	s.answer(stationA, -1, s.expect(f, false, true))
	offer := s.last
	st, _ := s.takes(s.now, f)
	st.refused(s.now)
	s.expect(f, false, false)
	s.answer(stationA, -1, offer)
	s.now = s.now.Add(lastRetry - 1)
	s.expect(f, false, false)
	s.now = s.now.Add(1)
	s.answer(stationA, -1, s.expect(f, false, true))
	s.expect(f, true, false)
}

// An answer counts once: who repeats it does not keep a station that is gone.
func TestStations_AnAnswerCountsOnce(t *testing.T) {
	s := newStationsTest(t)
	f := &transport.Frame{Dst: stationA}
	offer := s.expect(f, false, true)
	s.answer(stationA, -1, offer)
	s.now = s.now.Add(provenFor - time.Millisecond)
	for _, number := range []uint64{offer, 0, 1} { // nor does who answers what was not asked
		s.answered(s.now, &control{kind: trainAnswer, from: stationA, vid: -1, number: number})
	}
	s.now = s.now.Add(time.Millisecond)
	s.expect(f, false, true)
}

// To a station by another VLAN is another path.
func TestStations_PathsAreApart(t *testing.T) {
	s := newStationsTest(t)
	plain := &transport.Frame{Dst: stationA}
	tagged := &transport.Frame{Dst: stationA, OptionalTag: transport.Tagged(transport.Tag{VID: 7})}
	zero := &transport.Frame{Dst: stationA, OptionalTag: transport.Tagged(transport.Tag{})}
	s.answer(stationA, 7, s.expect(tagged, false, true))
	s.expect(tagged, true, false)
	tagged.Tag.PCP = 5
	s.expect(tagged, true, false)
	s.expect(plain, false, true)
	s.answer(stationA, 0, s.expect(zero, false, true))
	s.expect(zero, true, false)
	s.expect(plain, false, false)
}

// Only so many stations are remembered; others get frames as they are.
func TestStations_AreBounded(t *testing.T) {
	s := newStationsTest(t)
	for i := range maxStations {
		s.expect(&transport.Frame{Dst: transport.MAC{2, 1, byte(i >> 16), byte(i >> 8), byte(i)}}, false, true)
	}
	s.expect(&transport.Frame{Dst: stationA}, false, false)
	if len(s.byKey) != maxStations {
		t.Errorf("%d stations", len(s.byKey))
	}
	s.now = s.now.Add(forgetAfter / 2)
	inUse := &transport.Frame{Dst: transport.MAC{2, 1}}
	s.expect(inUse, false, true)
	s.now = s.now.Add(forgetAfter/2 - 1)
	s.expect(&transport.Frame{Dst: stationA}, false, false)
	s.now = s.now.Add(forgetAfter) // since it was tried last
	s.expect(inUse, false, true)
	s.expect(&transport.Frame{Dst: stationA}, false, true)
	if len(s.byKey) != 2 {
		t.Errorf("%d stations, want the two that frames go to", len(s.byKey))
	}
}

// An offer has a number, which is not 0, whatever chance says.
func TestStations_OffersAreNumbered(t *testing.T) {
	s := newStations(func() uint64 { return 0 })
	if _, offer := s.takes(monotime.At(time.Hour), &transport.Frame{Dst: stationA}); offer == 0 {
		t.Error("no offer")
	}
}

// Where offers of many stations come at once, each in two packets, their segments may be mixed.
func TestStations_OffersThatCross(t *testing.T) {
	s := newStations(nil)
	stations := make([]transport.MAC, maxHalves)
	offer := func(i int) []byte { return (&control{vid: -1, number: uint64(2*i + 1)}).append(nil) }
	for i := range stations {
		stations[i] = transport.MAC{2, 1, byte(i >> 8), byte(i)}
		s.receive(trainOffer, stations[i], offer(i)[:controlLen])
	}
	for i, from := range stations {
		c, whole := s.receive(trainOffer, from, offer(i)[controlLen:])
		if !whole || c.from != from || c.number != uint64(2*i+1) {
			t.Errorf("station %d: %+v, whole %v", i, c, whole)
		}
	}
}

// Both segments of an offer must come, the first one first.
func TestStations_HalfAnOfferIsNone(t *testing.T) {
	c := control{vid: 5, number: 77, ordered: true}
	b := c.append(nil)
	first, second := b[:controlLen], b[controlLen:]
	other := (&control{vid: 5, number: 79}).append(nil)[controlLen:]
	for _, c := range []struct {
		name     string
		segments [][]byte
		want     bool
	}{
		{"both", [][]byte{first, second}, true},
		{"the first", [][]byte{first}, false},
		{"the second", [][]byte{second}, false},
		{"the first twice", [][]byte{first, first}, false},
		{"the second twice", [][]byte{first, second, second}, false},
		{"the second first", [][]byte{second, first}, false},
		{"the first twice, the second twice", [][]byte{first, first, second, second}, false},
		{"halves of two", [][]byte{first, other}, false},
		{"a short one", [][]byte{first, second[:controlLen-1]}, false},
		{"a long one", [][]byte{first, append(second[:controlLen:controlLen], 0)}, false},
		{"an index of 2", [][]byte{first, append([]byte{2}, second[1:]...)}, false},
	} {
		s, got := newStations(nil), false
		for _, b := range c.segments {
			var part control
			if part, got = s.receive(trainOffer, stationA, b); got &&
				(part != control{kind: trainOffer, from: stationA, vid: 5, number: 77, ordered: true}) {
				t.Errorf("%s: %+v", c.name, part)
			}
		}
		if got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	s := newStations(nil)
	s.receive(trainOffer, stationA, first)
	if _, whole := s.receive(trainOffer, stationB, second); whole {
		t.Error("halves of two stations")
	}
	s.receive(trainOffer, stationA, first)
	if _, whole := s.receive(trainAnswer, stationA, second); whole {
		t.Error("halves of two kinds")
	}
}

// A control message arrives as it was sent, with all that it says.
func TestControl_ArrivesAsItWasSent(t *testing.T) {
	for _, vid := range []int32{-1, 0, 1, 0x123, 4095} {
		for _, ordered := range []bool{true, false} {
			s := newStations(nil)
			c := control{kind: trainAnswer, from: stationA, vid: vid, ordered: ordered, number: 0x1122334455667788}
			b := c.append(nil)
			if _, whole := s.receive(c.kind, c.from, b[:controlLen]); whole {
				t.Errorf("%+v: whole after a half", c)
			}
			if got, whole := s.receive(c.kind, c.from, b[controlLen:]); !whole || got != c {
				t.Errorf("%+v, whole %v; want %+v", got, whole, c)
			}
		}
	}
}

// The bytes are those of docs/wire-format.md.
func TestControl_Golden(t *testing.T) {
	c := control{vid: 5, ordered: true, number: 0x1122334455667788}
	const want = "0003000500000000" + "1122334455667788" + "0103000500000000" + "1122334455667788"
	if got := hex.EncodeToString(c.append(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
