package reliable

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// In steady state nothing is allocated, with and without loss.
func TestAllocs(t *testing.T) {
	for name, drop := range map[string]int{"no loss": 0, "one in 7 is lost": 7} {
		ends, now := twoOpen(t)
		n := 0
		arrives := func() bool { n++; return drop == 0 || n%drop != 0 }
		round := func() {
			for range 10 {
				ends[0].Reserve(Requests, 100)
			}
			ends.exchange(t, now, arrives)
			now = now.Add(10 * time.Microsecond)
			for _, c := range ends {
				c.Advance(now)
			}
		}
		for range 1000 {
			round()
		}
		if a := testing.AllocsPerRun(1000, round); a != 0 {
			t.Errorf("%s: %v allocations", name, a)
		}
		if c := *ends[1].cfg.Counters; c.Delivered < 1500 || drop > 0 && c.OutOfOrder == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// twoEnds are two ends without a network.
type twoEnds [2]*Conn

// twoOpen returns two open ends.
func twoOpen(tb testing.TB) (ends twoEnds, now monotime.Time) {
	now = monotime.At(time.Second)
	for i := range ends {
		memory := NewMemory(1500)
		ends[i] = New(Config{
			Incarnation: uint32(i + 1), FrameSize: 1500, PeerTimeout: DefaultPeerTimeout, Counters: new(Counters),
			Alloc: memory.Alloc, Free: memory.Free,
		})
	}
	ends[0].Reserve(Requests, 100)
	for range 10 {
		ends.exchange(tb, now, func() bool { return true })
	}
	if ends[1].cfg.Counters.Delivered != 1 {
		tb.Fatal("not open")
	}
	return ends, now
}

var frames [MaxBatch][]byte

// exchange has each end send what it has to, and the other receive what arrives.
func (e *twoEnds) exchange(tb testing.TB, now monotime.Time, arrives func() bool) {
	for i, c := range e {
		for n := c.NextBatch(now, &frames); n > 0; n = c.NextBatch(now, &frames) {
			for _, b := range frames[:n] {
				if arrives() {
					receive(tb, e[1-i], now, b)
				}
			}
		}
	}
}

// receive delivers all records.
func receive(tb testing.TB, c *Conn, now monotime.Time, b []byte) {
	var h Header
	if err := Parse(b, &h); err != nil {
		tb.Fatal(err)
	}
	if c.Handle(now, &h, b[HeaderLen:]) != Deliver {
		return
	}
	c.Delivered(h.Lane)
	for _, ok := c.Buffered(h.Lane); ok; _, ok = c.Buffered(h.Lane) {
		c.Delivered(h.Lane)
	}
}

// A record's way: reserved, sent, delivered and acknowledged, without a network.
func BenchmarkConn(b *testing.B) {
	for _, size := range []int{16, 64, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			ends, now := twoOpen(b)
			b.ReportAllocs()
			for b.Loop() {
				if ends[0].Reserve(Requests, size) != nil && ends[0].Available(Requests, size) >= size {
					continue
				}
				ends.exchange(b, now, func() bool { return true })
			}
		})
	}
}
