package csmacd

import (
	"testing"
	"time"
)

const distance = 600 * time.Nanosecond

// A station begins while the hub is idle, and the others wait for its end; those that begin within
// the distance stop.
func TestContend_ByHand(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		ready  []time.Duration
		winner int // or none
		start  time.Duration
	}{
		{[]time.Duration{Never, 0, Never}, 1, 10 * us}, // the hub is idle from 10 us on
		{[]time.Duration{20 * us, Never, 20*us - distance}, 2, 20*us - distance},
		{[]time.Duration{20 * us, Never, 20*us - distance + 1}, -1, 0},
		{[]time.Duration{3 * us, 5 * us, Never}, -1, 0}, // both have waited for the hub
		{[]time.Duration{20 * us, 20 * us, 20 * us}, -1, 0},
	} {
		h := New(3, distance, 1)
		h.Carry(10 * us)
		winner, start, ok := h.Contend(c.ready)
		if ok != (c.winner >= 0) || ok && (winner != c.winner || start != c.start) {
			t.Errorf("ready at %v: station %d from %v on: %v; want %d from %v on", c.ready, winner, start, ok, c.winner, c.start)
		}
		if _, _, ok := h.Contend([]time.Duration{Never, Never, 99 * us}); !ok {
			t.Errorf("ready at %v: then one alone collides", c.ready)
		}
	}
}

// Those that collide wait for as many slots as chance has it, from twice as many each time; one that
// is ready later is not among them.
func TestContend_BackoffDoubles(t *testing.T) {
	h := New(3, distance, 1)
	ready := []time.Duration{0, 0, Never}
	var longest time.Duration
	for n := 1; n < maxAttempts; n++ {
		for i := range h.stations {
			h.stations[i].backoff = 0 // so that both collide again
		}
		if _, _, ok := h.Contend(ready); ok {
			t.Fatalf("collision %d is none", n)
		}
		for i, s := range h.stations[:2] {
			wait := s.backoff - h.idle
			if s.attempts != n || wait%slotTime != 0 || wait/slotTime >= 1<<min(n, maxExponent) {
				t.Errorf("collision %d: station %d has tried %d times and waits for %v", n, i, s.attempts, wait)
			}
			longest = max(longest, wait)
		}
	}
	if longest < 256*slotTime {
		t.Errorf("no backoff above %v", longest)
	}
	if third := h.stations[2]; third.attempts != 0 || third.backoff != 0 {
		t.Errorf("the third station has collided: %+v", third)
	}
	for i := range h.stations {
		h.stations[i].backoff = 0
	}
	if _, _, ok := h.Contend(ready); ok || h.stations[0].attempts != 0 {
		t.Errorf("after the 16th collision: %v, %d attempts of a new frame", ok, h.stations[0].attempts)
	}
}

// All stations of a crowd get their frames through, each in its time: none sends while another does.
func TestContend_Crowd(t *testing.T) {
	const stations, frame = 32, 8 * time.Microsecond
	h := New(stations, distance, 7)
	ready := make([]time.Duration, stations)
	var end time.Duration
	collisions := 0
	for left := stations; left > 0; {
		winner, start, ok := h.Contend(ready)
		if !ok {
			collisions++
			continue
		}
		if start < end {
			t.Fatalf("station %d sends at %v, before the end of another, %v", winner, start, end)
		}
		end = start + frame
		h.Carry(end)
		ready[winner] = Never
		left--
	}
	if h.First(ready) != Never || collisions < stations/4 || end < stations*frame || end > 4*stations*frame {
		t.Errorf("%d stations took %v, with %d collisions", stations, end, collisions)
	}
}
