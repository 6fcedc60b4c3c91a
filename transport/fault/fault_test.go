package fault_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/linktest"
)

// pair is two links on a switch, with faults where b receives.
func pair(t testing.TB, cfg fault.Config) (a transport.Link, b *fault.Link) {
	t.Helper()
	return seeded(t, 1, cfg)
}

func seeded(t testing.TB, seed uint64, cfg fault.Config) (a transport.Link, b *fault.Link) {
	t.Helper()
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	b, err = fault.New(links[1], rand.New(rand.NewPCG(seed, 0)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = links[0].Close(), b.Close() })
	return links[0], b
}

func TestLink(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) { a, b := pair(t, fault.Config{}); return a, b })
}

// Frames that Match leaves out pass unharmed, though each takes the path of faults.
func TestLinkWithFaultsForOthers(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
		a, b := pair(t, fault.Config{Loss: 1, Match: func(*transport.Frame) bool { return false }})
		return a, b
	})
}

// hidden is a link that hides its abilities: fault has to mask wake-ups by itself.
type hidden struct{ transport.Link }

func TestLinkAroundOneThatCannotMask(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
		links, err := fabric.Links(2)
		if err != nil {
			t.Fatal(err)
		}
		var pair [2]transport.Link
		for i, l := range links {
			// The links filter groups, and the suite takes hidden ones not to.
			if err := l.Join(transport.MAC{0x03, 0x72, 0x6c, 0, 0, 1}); err != nil {
				t.Fatal(err)
			}
			if pair[i], err = fault.New(hidden{l}, rand.New(rand.NewPCG(1, 2)), fault.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		return pair[0], pair[1]
	})
}

const payloadLen = 60

// exchange sends n numbered frames from a to b, one at a time, and returns copies of the payloads
// that b receives.
func exchange(t testing.TB, a, b transport.Link, n int) (got [][]byte) {
	t.Helper()
	in := make([]transport.Frame, 4)
	for i := range n {
		payload := make([]byte, payloadLen)
		binary.BigEndian.PutUint32(payload, uint32(i))
		if _, err := a.Send([]transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5, Payload: payload}}); err != nil {
			t.Fatal(err)
		}
		got = append(got, poll(t, b, in)...)
	}
	return got
}

func poll(t testing.TB, b transport.Link, in []transport.Frame) (got [][]byte) {
	t.Helper()
	n, err := b.Poll(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range in[:n] {
		got = append(got, slices.Clone(f.Payload))
	}
	return got
}

func number(payload []byte) int { return int(binary.BigEndian.Uint32(payload)) }

const rounds = 4000

// near fails unless a count of rounds draws agrees with a probability, within 5 standard
// deviations.
func near(t *testing.T, what string, got uint64, p float64) {
	t.Helper()
	if want := p * rounds; math.Abs(float64(got)-want) > 5*math.Sqrt(want*(1-p))+1 {
		t.Errorf("%s: %d of %d, want about %.0f", what, got, rounds, want)
	}
}

func TestLoss(t *testing.T) {
	a, b := pair(t, fault.Config{Loss: 0.1})
	got := exchange(t, a, b, rounds)
	c := b.Counts()
	near(t, "lost", c.Lost, 0.1)
	if c.Received != rounds || uint64(len(got)) != rounds-c.Lost || c.Delivered != rounds-c.Lost {
		t.Errorf("%d frames, %+v", len(got), c)
	}
	if !slices.IsSortedFunc(got, func(x, y []byte) int { return number(x) - number(y) }) {
		t.Error("the order changed")
	}
}

func TestDuplicates(t *testing.T) {
	a, b := pair(t, fault.Config{Duplicate: 0.1})
	got := exchange(t, a, b, rounds)
	got = append(got, poll(t, b, make([]transport.Frame, 4))...)
	c := b.Counts()
	near(t, "duplicated", c.Duplicated, 0.1)
	times := make([]int, rounds)
	twice := uint64(0)
	for _, p := range got {
		if times[number(p)]++; times[number(p)] == 2 {
			twice++
		}
	}
	if twice != c.Duplicated || slices.Max(times) != 2 || slices.Min(times) != 1 {
		t.Errorf("%d came twice, counted %d; at least %d and at most %d times", twice, c.Duplicated, slices.Min(times), slices.Max(times))
	}
}

func TestCorruptFlipsOneBit(t *testing.T) {
	a, b := pair(t, fault.Config{Corrupt: 0.5})
	changed := uint64(0)
	for i, p := range exchange(t, a, b, rounds) {
		want := make([]byte, payloadLen)
		binary.BigEndian.PutUint32(want, uint32(i))
		flipped := 0
		for j := range want {
			flipped += bits.OnesCount8(want[j] ^ p[j])
		}
		if flipped > 1 {
			t.Fatalf("frame %d: %d bits differ", i, flipped)
		}
		changed += uint64(flipped)
	}
	if c := b.Counts(); changed != c.Corrupted {
		t.Errorf("%d changed, %d counted", changed, c.Corrupted)
	}
	near(t, "corrupted", changed, 0.5)
}

func TestTruncate(t *testing.T) {
	a, b := pair(t, fault.Config{Truncate: 0.5})
	shorter := uint64(0)
	lengths := make(map[int]bool)
	for _, p := range exchange(t, a, b, rounds) {
		if len(p) < payloadLen {
			shorter++
		}
		lengths[len(p)] = true
	}
	if c := b.Counts(); shorter != c.Truncated || len(lengths) != payloadLen+1 {
		t.Errorf("%d shorter, %d counted; %d lengths", shorter, c.Truncated, len(lengths))
	}
	near(t, "truncated", shorter, 0.5)
}

func TestCut(t *testing.T) {
	a, b := pair(t, fault.Config{})
	b.Cut(true)
	if got := exchange(t, a, b, 3); len(got) != 0 {
		t.Errorf("received %d frames by a cut cable", len(got))
	}
	out := transport.Frame{Dst: a.MAC(), EtherType: 0x88b5, Payload: make([]byte, 60)}
	if n, err := b.Send([]transport.Frame{out, out}); n != 2 || err != nil {
		t.Errorf("Send: %d, %v", n, err)
	}
	out.Payload = make([]byte, b.MTU()+1)
	if n, err := b.Send([]transport.Frame{out}); n != 0 || !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("Send over the MTU: %d, %v", n, err)
	}
	b.Cut(false)
	if got := exchange(t, a, b, 3); len(got) != 3 {
		t.Errorf("healed: %d frames", len(got))
	}
	if n, _ := a.Poll(make([]transport.Frame, 4)); n != 0 {
		t.Errorf("%d frames went out by a cut cable", n)
	}
	if c := b.Counts(); c.Cut != 5 {
		t.Errorf("%+v", c)
	}
	b.Cut(true)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	out.Payload = nil
	if n, err := b.Send([]transport.Frame{out}); n != 0 || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send by a cut and closed link: %d, %v", n, err)
	}
}

// The same seed and the same frames give the same faults; another seed gives others.
func TestSeedDecides(t *testing.T) {
	run := func(seed uint64) (result string) {
		synctest.Test(t, func(t *testing.T) {
			a, b := seeded(t, seed, fault.Config{
				Loss: 0.1, Duplicate: 0.1, Truncate: 0.1, Corrupt: 0.1, Reorder: 0.1, Delay: 0.1, DelayMax: time.Second})
			got := exchange(t, a, b, 500)
			time.Sleep(time.Second) // virtual
			for n := 1; n > 0; {
				more := poll(t, b, make([]transport.Frame, 64))
				got, n = append(got, more...), len(more)
			}
			c := b.Counts()
			if c.Received+c.Duplicated != c.Lost+c.Delivered || int(c.Delivered) != len(got) || c.Received != 500 {
				t.Errorf("seed %d: %d frames came, and the counts do not add up: %+v", seed, len(got), c)
			}
			result = fmt.Sprintf("%x %+v", got, c)
		})
		return result
	}
	first, again, other := run(1), run(1), run(2)
	if first != again {
		t.Error("two runs of seed 1 differ")
	}
	if first == other {
		t.Error("seeds 1 and 2 do the same")
	}
}

func TestConfigFaults(t *testing.T) {
	for _, cfg := range []fault.Config{
		{Loss: -0.1}, {Loss: 1.1}, {Corrupt: math.NaN()}, {Delay: 0.5}, {DelayMin: 2, DelayMax: 1}, {ReorderBy: -1},
	} {
		links, err := fabric.Links(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fault.New(links[0], rand.New(rand.NewPCG(1, 0)), cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
		if _, err := fault.New(links[0], nil, fault.Config{}); err == nil {
			t.Error("no source of chance: no error")
		}
		_, b := pair(t, fault.Config{})
		if err := b.SetConfig(cfg); err == nil {
			t.Errorf("SetConfig %+v: no error", cfg)
		}
	}
}

// Neither an idle link nor one that delays frames allocates, once its memory has grown.
func TestAllocatesNothing(t *testing.T) {
	for _, cfg := range []fault.Config{{}, {Loss: 0.2, Duplicate: 0.2, Truncate: 0.2, Corrupt: 0.2, Reorder: 0.2}} {
		a, b := pair(t, cfg)
		exchange(t, a, b, rounds)
		frames := []transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5, Payload: make([]byte, 60)}}
		in := make([]transport.Frame, 1)
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := a.Send(frames); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Poll(in); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations, want 0", cfg, n)
		}
	}
}

func Example() {
	links, _ := fabric.Links(2)
	rng := rand.New(rand.NewPCG(1, 0)) // the seed
	lossy, err := fault.New(links[1], rng, fault.Config{Loss: 0.25})
	if err != nil {
		fmt.Println(err)
		return
	}
	frames := make([]transport.Frame, 1)
	for range 1000 {
		_, _ = links[0].Send([]transport.Frame{{Dst: lossy.MAC(), EtherType: 0x88b5}})
		_, _ = lossy.Poll(frames)
	}
	c := lossy.Counts()
	fmt.Println(c.Received, c.Lost+c.Delivered, c.Lost > 200 && c.Lost < 300)
	// Output: 1000 1000 true
}
