package reliable

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Nothing is allocated in steady state, with frames that are lost and come early, given a pool.
func TestAllocs(t *testing.T) {
	for name, drop := range map[string]int{"all arrive": 0, "one in 7 is lost": 7} {
		ends, now := twoOpen(t)
		n := 0
		round := func() {
			for range 10 {
				ends[0].Reserve(now, Requests, 100)
			}
			for i, c := range ends {
				for b := c.NextFrame(now); b != nil; b = c.NextFrame(now) {
					if n++; drop == 0 || n%drop != 0 {
						receive(t, ends[1-i], now, b)
					}
					c.Sent(now)
				}
			}
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
		if c := ends[1].Counters(); c.Delivered < 1500 || drop > 0 && c.OutOfOrder == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// twoOpen returns two ends that know each other, with pools.
func twoOpen(tb testing.TB) (ends [2]*Conn, now monotime.Time) {
	now = monotime.At(time.Second)
	for i := range ends {
		var spare [][]byte
		ends[i] = New(Config{Incarnation: uint32(i + 1), FrameSize: 1500, Free: func(b []byte) { spare = append(spare, b) },
			Alloc: func() []byte {
				if len(spare) == 0 {
					return make([]byte, 1500)
				}
				b := spare[len(spare)-1]
				spare = spare[:len(spare)-1]
				return b
			}})
	}
	ends[0].Reserve(now, Requests, 100)
	for range 10 {
		for i, c := range ends {
			for b := c.NextFrame(now); b != nil; b = c.NextFrame(now) {
				receive(tb, ends[1-i], now, b)
				c.Sent(now)
			}
		}
	}
	if ends[1].Counters().Delivered != 1 {
		tb.Fatal("not open")
	}
	return ends, now
}

// receive takes all records.
func receive(tb testing.TB, c *Conn, now monotime.Time, b []byte) {
	var h Header
	if err := Parse(b, &h); err != nil {
		tb.Fatal(err)
	}
	if handle(c, now, &h, b[HeaderLen:]) != Deliver {
		return
	}
	c.Delivered(h.Lane)
	for _, ok := c.Buffered(h.Lane); ok; _, ok = c.Buffered(h.Lane) {
		c.Delivered(h.Lane)
	}
}

// A record's way: reserved, sent, taken and acknowledged, without a network.
func BenchmarkConn(b *testing.B) {
	for _, size := range []int{16, 64, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			ends, now := twoOpen(b)
			b.ReportAllocs()
			for b.Loop() {
				if ends[0].Reserve(now, Requests, size) != nil && ends[0].Available(Requests, size) >= size {
					continue
				}
				for i, c := range ends {
					for f := c.NextFrame(now); f != nil; f = c.NextFrame(now) {
						c.Sent(now)
						receive(b, ends[1-i], now, f)
					}
				}
			}
		})
	}
}
