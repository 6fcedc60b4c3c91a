package cenju_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim/cenju"
)

// rate is the simulated throughput of transfers of size bytes.
func rate(c cenju.Config, m cenju.Mode, size int) cenju.Rate {
	return cenju.Throughput(size, c.Simulate(m, size))
}

// near reports whether a is b, give or take a share.
func near(a, b cenju.Rate, share float64) bool { return math.Abs(float64(a/b-1)) <= share }

// The curve that the paper's parameters give, by the closed form, worked out by hand.
func TestCENJU_6_3_NotPipelined_Curve(t *testing.T) {
	c := cenju.Paper()
	for _, w := range []struct {
		size int
		want cenju.Rate
	}{
		{512, 23.0}, {1 << 10, 28.9}, {2 << 10, 33.1}, {4 << 10, 35.7}, {6 << 10, 36.0}, {8 << 10, 34.9},
		{16 << 10, 32.5}, {64 << 10, 31.0},
	} {
		if got := rate(c, cenju.NotPipelined, w.size); math.Abs(float64(got-w.want)) > .06 {
			t.Errorf("%d bytes: %.2f MB/s, want %v", w.size, got, w.want)
		}
	}
	if got := c.Limit(cenju.NotPipelined); math.Abs(float64(got-30.5)) > .06 {
		t.Errorf("limit %.2f MB/s, want 30.5", got)
	}
}

// The paper: a peak at 6 to 8 KB, and about 31 MB/s in the end.
func TestCENJU_6_3_NotPipelined_PeakAndLimit(t *testing.T) {
	c := cenju.Paper()
	var most cenju.Rate
	for size := 512; size <= 16<<10; size += 512 {
		most = max(most, rate(c, cenju.NotPipelined, size))
	}
	for size := 512; size <= 16<<10; size += 512 {
		got := rate(c, cenju.NotPipelined, size)
		if peak := size >= 5<<10 && size <= 6<<10; peak && got < most-.05 {
			t.Errorf("%d bytes: %.2f MB/s, want the peak, %.2f", size, got, most)
		}
		if outside := size < 4608 || size >= 8<<10; outside && got > .995*most {
			t.Errorf("%d bytes: %.2f MB/s, the peak is %.2f: want it within 4.5 to 8 KB", size, got, most)
		}
	}
	if got := rate(c, cenju.NotPipelined, cenju.MaxSize); !near(got, 31, .03) {
		t.Errorf("large transfers: %.2f MB/s, want about 31", got)
	}
}

// The paper: invalidation behind a transfer costs nothing beside the next one, about 36 MB/s.
func TestCENJU_6_2_Pipelined(t *testing.T) {
	for size := 512; size <= cenju.MaxSize; size *= 2 {
		if got := rate(cenju.Paper(), cenju.Pipelined, size); !near(got, 36, .02) {
			t.Errorf("%d bytes: %.2f MB/s, want 36", size, got)
		}
	}
}

// The paper: with an invalidation before each piece of 8 KB, 34.7 MB/s from 8 KB on.
func TestCENJU_6_1_RemoteWrite(t *testing.T) {
	for _, kb := range []int{8, 12, 16, 24, 32, 64, 128} {
		if got := rate(cenju.Paper(), cenju.RemoteWrite, kb<<10); !near(got, 34.7, .03) {
			t.Errorf("%d KB: %.2f MB/s, want 34.7", kb, got)
		}
	}
	small := rate(cenju.Paper(), cenju.RemoteWrite, 1<<10)
	if small > 30 {
		t.Errorf("1 KB: %.2f MB/s, want less than large transfers have", small)
	}
}

// The paper: where it is not cut, a remote write has its peak at about 8 KB, as without a pipeline:
// the FIFO makes it (figure 14).
func TestCENJU_6_3_RemoteWriteUncut(t *testing.T) {
	c := cenju.Paper()
	for kb, want := range map[int]cenju.Rate{6: 36.0, 8: 34.9, 16: 32.5, 128: 30.7} {
		if got := rate(c, cenju.RemoteWriteUncut, kb<<10); math.Abs(float64(got-want)) > .06 {
			t.Errorf("%d KB: %.2f MB/s, want %v", kb, got, want)
		}
		cut := c
		cut.Piece = cenju.MaxSize
		if a, b := c.Simulate(cenju.RemoteWriteUncut, kb<<10), cut.Simulate(cenju.RemoteWrite, kb<<10); a != b {
			t.Errorf("%d KB: %v, and %v in pieces that are longer", kb, a, b)
		}
	}
	if got := c.Limit(cenju.RemoteWriteUncut); math.Abs(float64(got-30.5)) > .06 {
		t.Errorf("limit %.2f MB/s, want 30.5", got)
	}
}

// Figures 12 and 13: the network matters for large transfers, the receiver for small ones and the
// peak, the invalidation for all, the delay for small ones. The FIFO, which is our own sweep, matters
// at the peak.
func TestCENJU_6_3_Sweeps(t *testing.T) {
	sizes := []int{1 << 10, 6 << 10, 64 << 10}
	moves := map[string][3]bool{ // small, at the peak, large
		"network":      {false, true, true},
		"receiver":     {true, true, false},
		"invalidation": {true, true, true},
		"delay":        {true, true, false},
		"fifo":         {false, true, false},
	}
	range3 := map[string][3][2]cenju.Rate{}
	for _, s := range cenju.Paper().Sweeps() {
		if err := s.Config.Validate(); err != nil {
			t.Errorf("%s %v: %v", s.Parameter, s.Value, err)
		}
		all := range3[s.Parameter]
		for i, size := range sizes {
			got := rate(s.Config, cenju.NotPipelined, size)
			if all[i][0] == 0 || got < all[i][0] {
				all[i][0] = got
			}
			all[i][1] = max(all[i][1], got)
		}
		range3[s.Parameter] = all
	}
	if len(range3) != len(moves) {
		t.Errorf("swept %d parameters, want %d", len(range3), len(moves))
	}
	for parameter, want := range moves {
		for i, moved := range want {
			low, high := range3[parameter][i][0], range3[parameter][i][1]
			if moved != (high > 1.03*low) {
				t.Errorf("%s at %d bytes: %.2f to %.2f MB/s; want a change: %v", parameter, sizes[i], low, high, moved)
			}
		}
	}
}

// The parts of both latencies, added up.
func TestCENJU_5_Latency(t *testing.T) {
	sum := func(steps []cenju.Step) (all time.Duration) {
		for _, s := range steps {
			all += s.Takes
		}
		return all
	}
	steps := cenju.HardwareLatency()
	last := len(steps) - 1
	if got := sum(steps[:last]); last != 6 || got < 6*time.Microsecond || got > 7*time.Microsecond {
		t.Errorf("hardware %v in %d steps, want about 7us in 6", got, last)
	}
	user := cenju.UserLatency()
	if got := sum(user); got != 33*time.Microsecond {
		t.Errorf("user %v, want 33us, half of about 65us", got)
	}
	if got := user[2].Takes - steps[last].Takes; got != 7*time.Microsecond {
		t.Errorf("sender's start to the interrupt, without that: %v, want 7us", got)
	}
}

// machines are Configs by chance, and what is sent on them.
func machines(seed uint64, count int, each func(name string, c cenju.Config, m cenju.Mode, size int)) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range count {
		c := cenju.Config{
			Network: cenju.Rate(10 + rng.IntN(90)), Receiver: cenju.Rate(10 + rng.IntN(90)),
			Invalidation: cenju.Rate(20 + rng.IntN(400)), Delay: time.Duration(rng.IntN(40)) * time.Microsecond,
			Packet: 64 << rng.IntN(4), Piece: 8 << 10,
		}
		c.FIFO = c.Packet + 16*rng.IntN(400)
		m, size := cenju.Modes[i%len(cenju.Modes)], 16*(1+rng.IntN(1000))
		each(fmt.Sprintf("%d: %+v, %v, %d bytes", i, c, m, size), c, m, size)
	}
}

// The closed form and the simulation agree on any machine, for transfers of one piece.
func TestFormula_AgreesWithSimulation(t *testing.T) {
	machines(1, 200, func(name string, c cenju.Config, m cenju.Mode, size int) {
		c.Piece = max(c.Piece, size)
		if a, b := c.Simulate(m, size), c.Formula(m, size); !near(cenju.Rate(a), cenju.Rate(b), .02) {
			t.Errorf("%s: simulated %v, formula %v", name, a, b)
		}
	})
}

// The closed form adds pieces up: where a small one is behind a large one, whose invalidation it
// waits for, the simulation is slower; where the pieces are equal, it is not.
func TestFormula_AddsUnequalPiecesUp(t *testing.T) {
	c := cenju.Paper()
	for size, slower := range map[int]bool{c.Piece + c.Packet: true, 2 * c.Piece: false} {
		simulated, formula := c.Simulate(cenju.RemoteWrite, size), c.Formula(cenju.RemoteWrite, size)
		if got := float64(simulated) > 1.1*float64(formula); got != slower {
			t.Errorf("%d bytes: simulated %v, formula %v; want it slower by a tenth: %v", size, simulated, formula, slower)
		}
	}
}

// Packets agree with a stream of words of 16 bytes, each of which waits for the room of another one.
func TestSimulate_AgreesWithNaive(t *testing.T) {
	machines(2, 60, func(name string, c cenju.Config, m cenju.Mode, size int) {
		if a, b := c.Simulate(m, size), naive(c, m, size); !near(cenju.Rate(a), cenju.Rate(b), .02) {
			t.Errorf("%s: simulated %v, by words %v", name, a, b)
		}
	})
}

// naive is Config.Simulate by words, in microseconds, in place of packets.
func naive(c cenju.Config, m cenju.Mode, size int) time.Duration {
	const word, transfers = 16, 64
	var left []float64 // when each word has left the FIFO
	var entered, ready, idle, middle float64
	for i := range transfers {
		if i == transfers/2 {
			middle = ready
		}
		for rest := size; rest > 0; rest -= c.Piece {
			piece := rest
			if m == cenju.RemoteWrite {
				piece = min(rest, c.Piece)
			}
			for range piece / word {
				entered += word / float64(c.Network)
				if room := len(left) - c.FIFO/word; room >= 0 {
					entered = max(entered, left[room])
				}
				ready = max(ready+word/float64(c.Receiver), entered)
				left = append(left, ready)
			}
			once := float64(c.Delay)/1e3 + float64(piece)/float64(c.Invalidation)
			switch m {
			case cenju.NotPipelined:
				ready += once
			case cenju.Pipelined:
				ready = max(ready, idle)
				idle = ready + once
			case cenju.RemoteWrite, cenju.RemoteWriteUncut:
				ready = max(ready, idle) + once
				idle = ready + once
			}
			if m != cenju.RemoteWrite {
				break
			}
		}
	}
	return time.Duration((ready - middle) / (transfers / 2) * 1e3)
}

func TestConfig_Validate(t *testing.T) {
	if err := cenju.Paper().Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*cenju.Config){
		"Network of 0 MB/s (want 1 to 100000)":             func(c *cenju.Config) { c.Network = 0 },
		"Receiver of NaN MB/s (want 1 to 100000)":          func(c *cenju.Config) { c.Receiver = cenju.Rate(math.NaN()) },
		"Invalidation of 1e+06 MB/s (want 1 to 100000)":    func(c *cenju.Config) { c.Invalidation = 1e6 },
		"Delay of -1ns (want 0 to 1s)":                     func(c *cenju.Config) { c.Delay = -1 },
		"Packet of 63 bytes (want 64 to 65536)":            func(c *cenju.Config) { c.Packet = 63 },
		"FIFO of 511 bytes (want 512, a packet, to 65536)": func(c *cenju.Config) { c.FIFO = 511 },
		"Piece of 131073 bytes (want 64 to 131072)":        func(c *cenju.Config) { c.Piece = cenju.MaxSize + 1 },
	} {
		c := cenju.Paper()
		change(&c)
		if err := c.Validate(); !errors.Is(err, cenju.ErrInvalid) || err.Error() != "bad machine: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A FIFO that holds more hides a longer invalidation.
func ExampleConfig_Simulate() {
	for _, packets := range []int{1, 3, 6} {
		c := cenju.Paper()
		c.FIFO = packets * c.Packet
		fmt.Printf("%d packets: %.1f MB/s\n", packets, cenju.Throughput(8<<10, c.Simulate(cenju.NotPipelined, 8<<10)))
	}
	// Output:
	// 1 packets: 31.1 MB/s
	// 3 packets: 34.9 MB/s
	// 6 packets: 36.0 MB/s
}
