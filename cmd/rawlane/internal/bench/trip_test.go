package bench

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// noon is when tests begin, by the clock of node 0. Node 1's is an hour ahead.
var noon = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

const ahead = time.Hour

func at(us int) time.Time { return noon.Add(time.Duration(us) * time.Microsecond) }

func stampAt(us int) transport.Stamp { return transport.Stamp{Software: at(us)} }

// sleeper is a round trip of 100 µs: node 0 calls at 0, its driver has the message at 10 and node
// 1's at 15; node 1 is awake at 35, polls at 40, calls at 43, and its driver has the echo at 50,
// node 0's at 57; node 0 polls at 90 without having slept, and has the echo at 100.
func sleeper(t *testing.T) (trip, turn) {
	t.Helper()
	var out trip
	var u turn
	late := func(a arrival) arrival { // by node 1's clock
		a.stamp.Software, a.polled = a.stamp.Software.Add(ahead), a.polled.Add(ahead)
		if !a.woken.IsZero() {
			a.woken = a.woken.Add(ahead)
		}
		return a
	}
	called := at(43).Add(ahead)
	if !out.departed(at(0), departure{frames: 1, stamp: stampAt(10)}) ||
		!out.arrived(arrival{frames: 1, stamp: stampAt(57), woken: at(2), polled: at(90)}, at(100)) ||
		!u.arrived(late(arrival{frames: 1, stamp: stampAt(15), woken: at(35), polled: at(40)}), called) ||
		!u.departed(called, departure{frames: 1, stamp: transport.Stamp{Software: at(50).Add(ahead)}}) {
		t.Fatal("a round trip whose stamps are in order is refused")
	}
	out.between, out.whole = 47*time.Microsecond, 100*time.Microsecond
	return out, u
}

// A round trip is split though the clocks of the two nodes differ, and the parts are all of it.
func TestParts(t *testing.T) {
	out, u := sleeper(t)
	got, hardware, ok := parts(out, u)
	want := [numParts]time.Duration{10, 12, 20, 5, 3, 7, 0, 33, 10}
	var sum time.Duration
	for i := range want {
		want[i] *= time.Microsecond
		sum += got[i]
	}
	if !ok || got != want || hardware != 0 || sum != out.whole {
		t.Errorf("%v %v, sum %v; want %v", got, ok, sum, want)
	}
	out.hardware, u.hardware = 45*time.Microsecond, 37*time.Microsecond
	if _, hardware, _ := parts(out, u); hardware != 8*time.Microsecond {
		t.Errorf("between the NICs %v, want 8µs", hardware)
	}
	for _, far := range []time.Duration{time.Second, 50 * time.Microsecond} { // one was set, or is wrong
		out.hardware = far
		if _, hardware, _ := parts(out, u); hardware != 0 {
			t.Errorf("between the NICs %v, and of the wire 12µs", hardware)
		}
	}
	out.hardware, u.hardware = 37*time.Microsecond, 45*time.Microsecond
	if _, hardware, _ := parts(out, u); hardware != 0 {
		t.Errorf("between the NICs %v", hardware)
	}
	out.hardware = 0
	if _, hardware, _ := parts(out, u); hardware != 0 {
		t.Errorf("one NIC stamps, and between them are %v", hardware)
	}
}

// What contradicts itself is refused: a clock was set, or another frame passed.
func TestParts_Refused(t *testing.T) {
	good := arrival{frames: 1, stamp: stampAt(10), woken: at(12), polled: at(20)}
	for name, change := range map[string]func(*arrival){
		"two frames came":      func(a *arrival) { a.frames = 2 },
		"none came":            func(a *arrival) { a.frames = 0 },
		"no stamp":             func(a *arrival) { a.stamp = transport.Stamp{} },
		"the NIC's alone":      func(a *arrival) { a.stamp = transport.Stamp{Hardware: at(10)} },
		"stamped after it":     func(a *arrival) { a.stamp = stampAt(21) },
		"polled after the end": func(a *arrival) { a.polled = at(31) },
	} {
		a, h := good, half{}
		change(&a)
		if h.arrived(a, at(30)) {
			t.Errorf("%s: taken as %+v", name, h)
		}
	}
	var h half
	if !h.arrived(good, at(30)) || h != (half{wake: 2000, receive: 8000, program: 10000}) {
		t.Errorf("%+v", h)
	}
	for name, d := range map[string]departure{
		"two frames": {frames: 2, stamp: stampAt(10)}, "no stamp": {frames: 1}, "before the call": {frames: 1, stamp: stampAt(-1)},
	} {
		if h.departed(at(0), d) {
			t.Errorf("%s: taken as %+v", name, h)
		}
	}
	out, u := sleeper(t)
	out.between = u.wake + u.receive + u.program + u.send - 1
	if _, _, ok := parts(out, u); ok {
		t.Error("node 1 takes longer than node 0 waits, and that is taken")
	}
	for by, want := range map[time.Duration]bool{
		time.Second: false, 2 * time.Microsecond: false, -2 * time.Microsecond: false, // as clocks are set
		time.Microsecond: true, -time.Microsecond: true, // as they are slewed
	} {
		out, u := sleeper(t)
		out.between += by
		if _, _, ok := parts(out, u); ok != want {
			t.Errorf("node 0's clock was set by %v meanwhile, and that is taken: %v", by, ok)
		}
	}
}

func TestRecord(t *testing.T) {
	want := turn{half{1, 1 << 40, 3, 4}, 5}
	b := appendRecord(nil, 77, want)
	if number, got := parseRecord(b); len(b) != recordLen || number != 77 || got != want {
		t.Errorf("%d bytes, %d, %+v", len(b), number, got)
	}
}
