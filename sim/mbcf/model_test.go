package mbcf

import (
	"math"
	"testing"
	"time"
)

// Times by hand, of hosts that cost nothing: frames go over two cables one behind another, and no
// frame is shorter than Ethernet's least.
func TestLatency_ByHand(t *testing.T) {
	m := Model{MPI: Layer{Header: 38}}
	for _, c := range []struct {
		bytes int
		want  time.Duration
	}{
		{0, 2 * 84 * byteTime},
		{8, 2 * 84 * byteTime},
		{9, 2 * 85 * byteTime},
		{1408, 2 * 1484 * byteTime},
		{1409, (2*1484 + 84) * byteTime}, // the second frame is at the switch before the first has left
		{2816, 3 * 1484 * byteTime},
	} {
		if got := m.Latency(&m.MPI, c.bytes); got != c.want {
			t.Errorf("%d bytes: %v, want %v", c.bytes, got, c.want)
		}
	}
	m.MPI.Host, m.MPI.HostEmpty, m.MPI.PerByte = 30*time.Microsecond, 20*time.Microsecond, 10*time.Nanosecond
	if got, want := m.Latency(&m.MPI, 0), 20*time.Microsecond+2*84*byteTime; got != want {
		t.Errorf("0 bytes: %v, want %v", got, want)
	}
	if got, want := m.Latency(&m.MPI, 2816), 30*time.Microsecond+14080*time.Nanosecond+3*1484*byteTime; got != want {
		t.Errorf("2816 bytes: %v, want %v: the second frame is made while the first is on the wire", got, want)
	}
}

// A stream has the wire to itself, or waits: for the host, or for acknowledgements.
func TestFullDuplex_ByHand(t *testing.T) {
	m := Model{MPI: Layer{Header: 38}, AckDelay: 10 * time.Microsecond, Window: 1}
	frame := 1484 * byteTime
	check := func(what string, bytes int, interval time.Duration) {
		t.Helper()
		want := float64(bytes) / 1e6 / interval.Seconds()
		if got := m.FullDuplex(&m.MPI, bytes); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: %.3f MB/s, want %.3f", what, got, want)
		}
	}
	check("one frame at a time", 1408, 2*frame+10*time.Microsecond+2*ack)
	m.Window = 8
	check("the wire", 1408, frame)
	check("the wire, of two frames", 2816, 2*frame)
	m.MPI.Gap, m.MPI.GapBytes, m.MPI.GapPerByte = 20*time.Microsecond, 1000, 10*time.Nanosecond
	check("the host", 1000, 1076*byteTime+20*time.Microsecond)
	check("part of the host", 1408, frame+15920*time.Nanosecond)
	check("the host, hidden", 5632, 4*frame)
}

// Acknowledgements collide with data: half duplex is slower than the wire, and than full duplex.
// One seed gives one result.
func TestHalfDuplex_CollisionsCost(t *testing.T) {
	m := Fitted()
	one, again, other := m.HalfDuplex(&m.MPI, 65536, 1), m.HalfDuplex(&m.MPI, 65536, 1), m.HalfDuplex(&m.MPI, 65536, 2)
	if one != again || one == other {
		t.Errorf("%v and %v of one seed, %v of another", one, again, other)
	}
	if full := m.FullDuplex(&m.MPI, 65536); one > .97*full {
		t.Errorf("half duplex %.2f MB/s, full duplex %.2f", one, full)
	}
}
