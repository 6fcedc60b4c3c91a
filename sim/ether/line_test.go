package ether

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
)

// gigabit is a line of 1 Gbit/s, 8 ns a byte, on which so many full frames may wait.
func gigabit(frames int64) *line {
	const byteTime = 8 * femto
	return &line{byteTime: byteTime, queueLimit: frames * FullFrame * byteTime, latency: time.Microsecond}
}

func TestLine_ServesInOrderAndDropsTheRest(t *testing.T) {
	const frameTime = FullFrame * 8 * time.Nanosecond
	l, full := gigabit(3), &frame{payload: Payload}
	for i, c := range []struct {
		at, arrival time.Duration // 0: dropped
	}{
		{0, frameTime},
		{0, 2 * frameTime},
		{0, 3 * frameTime},
		{0, 0},
		{frameTime - 1, 0}, // one nanosecond too early
		{frameTime, 4 * frameTime},
		{frameTime, 0},
		{10 * frameTime, 11 * frameTime}, // idle since long
	} {
		at, taken := l.send(monotime.At(c.at), full)
		if want := monotime.At(c.arrival + time.Microsecond); taken != (c.arrival > 0) || taken && at != want {
			t.Errorf("frame %d, at %v: arrives %v, %t; want %v", i, c.at, at, taken, want)
		}
	}
	if l.dropped != 3 || l.inFlight.len() != 5 {
		t.Errorf("%d dropped, %d flying", l.dropped, l.inFlight.len())
	}
}

// A small frame finds room where a full one does not.
func TestLine_CountsBytes(t *testing.T) {
	l := gigabit(2)
	now := monotime.At(0)
	l.send(now, &frame{payload: Payload})
	l.send(now, &frame{ack: true})
	if _, taken := l.send(now, &frame{payload: Payload}); taken {
		t.Error("a full frame beside one and an ack, where two have room")
	}
	if _, taken := l.send(now, &frame{ack: true}); !taken {
		t.Error("an ack found no room")
	}
	// 18 + 52 and the payload, FCS, preamble and gap
	if a, b := (&frame{}).wireBytes(), (&frame{payload: Payload}).wireBytes(); a != 94 || b != 1542 {
		t.Errorf("an ack takes %d bytes, a full frame %d; want 94 and 1542", a, b)
	}
}

func TestRing_FirstInFirstOut(t *testing.T) {
	var r ring
	in, out := uint64(0), uint64(0)
	for round := range 200 {
		for range round % 40 {
			r.push(&frame{seq: in})
			in++
		}
		for range min(round%37, r.len()) {
			if f := r.pop(); f.seq != out {
				t.Fatalf("%d, want %d", f.seq, out)
			}
			out++
		}
		if r.len() != int(in-out) {
			t.Fatalf("%d in the ring, want %d", r.len(), in-out)
		}
	}
}

// A timer fires once, when it was last set to, however often it was moved back and forth.
func TestTimer_FiresWhenLastSet(t *testing.T) {
	ms := func(d int) monotime.Time { return monotime.At(time.Duration(d) * time.Millisecond) }
	for _, c := range []struct {
		name  string
		set   [][2]int // at, to; to 0: stop
		want  []int
		looks int // events that it takes
	}{
		{"once", [][2]int{{0, 5}}, []int{5}, 1},
		{"later", [][2]int{{0, 5}, {3, 9}, {4, 20}}, []int{20}, 2},
		{"earlier", [][2]int{{0, 50}, {3, 9}}, []int{9}, 2},
		{"later, earlier, later", [][2]int{{0, 5}, {1, 50}, {2, 10}, {3, 20}}, []int{20}, 2},
		{"stopped", [][2]int{{0, 5}, {3, 0}}, nil, 1},
		{"stopped and set", [][2]int{{0, 5}, {3, 0}, {4, 6}}, []int{6}, 2},
		{"earlier, and again beyond what it was at first", [][2]int{{0, 50}, {1, 9}, {20, 100}}, []int{9, 100}, 3},
		{"the same instant", [][2]int{{0, 5}, {1, 5}, {2, 5}}, []int{5}, 1},
		{"what has passed", [][2]int{{7, 5}}, []int{7}, 1},
	} {
		var q sim.Queue
		var fired []int
		var tm timer
		tm.init(&q, func() { fired = append(fired, int(q.Now().Since()/time.Millisecond)) })
		for _, s := range c.set {
			q.At(ms(s[0]), func() {
				if s[1] == 0 {
					tm.stop()
				} else {
					tm.set(ms(s[1]))
				}
			})
		}
		if looks := q.Run(ms(1000)) - len(c.set); !slices.Equal(fired, c.want) || looks != c.looks {
			t.Errorf("%s: fired at %v after %d events, want %v after %d", c.name, fired, looks, c.want, c.looks)
		}
	}
}
