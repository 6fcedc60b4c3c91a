package ether

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"

	"github.com/rawlane/rawlane/vlan/topology"
)

// bench is a network and its time.
type bench struct {
	t *testing.T
	*Network
	q *sim.Queue
}

func newBench(t *testing.T, spec string, c Config) *bench {
	t.Helper()
	topology, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.Topology = topology
	q := new(sim.Queue)
	n, err := New(q, c)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, n, q}
}

// pass lets time pass, and checks that every frame is accounted for.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.q.Run(b.q.Now().Add(d))
	b.check()
}

func (b *bench) check() {
	b.t.Helper()
	c := b.Counters()
	if c.Sent+c.Copies != c.Delivered+c.NotAddressed+c.Filtered+c.Dropped+c.InFlight {
		b.t.Fatalf("at %v frames are missing, or too many: %+v", b.q.Now(), c)
	}
}

// drain runs until nothing waits any more.
func (b *bench) drain() {
	b.t.Helper()
	for b.q.Step() {
		if b.q.Now().After(monotime.At(MaxTime)) {
			b.t.Fatal("does not end")
		}
	}
	b.check()
	if c := b.Counters(); c.InFlight != 0 {
		b.t.Fatalf("nothing happens any more, but frames are on their way: %+v", c)
	}
}

// What a program gets of a cable is its rate, less headers: 117.4 MB/s of 1 Gbit/s.
func TestFlow_TakesALinksRateLessHeaders(t *testing.T) {
	rates := []topology.Rate{10 * topology.Mbps, 100 * topology.Mbps, topology.Gbps, 10 * topology.Gbps}
	if testing.Short() {
		rates = rates[:3]
	}
	for _, rate := range rates {
		for _, spec := range []string{"flat:2@%v", "vbft:2x2x1@%v"} {
			t.Run(fmt.Sprintf(spec, rate), func(t *testing.T) {
				b := newBench(t, fmt.Sprintf(spec, rate), Config{Exact: true})
				f := b.NewFlow(0, 1, nil)
				f.Send(math.MaxInt64)
				const measured = 200 * time.Millisecond
				b.pass(time.Second / 4)
				before := f.Received()
				b.pass(measured)
				got, want := float64(f.Received()-before), float64(rate)/8*measured.Seconds()*Payload/FullFrame
				if math.Abs(got-want) > 2*Payload {
					t.Errorf("%.0f bytes in %v, want %.0f", got, measured, want)
				}
				if c := f.Counters(); c.Retransmitted != 0 || c.Timeouts != 0 {
					t.Errorf("on an idle network: %+v", c)
				}
			})
		}
	}
}

// Two programs are as far apart as the parts between them say, and with the defaults about 30 us,
// as VFREC §5.1 has it.
func TestFlow_OneNumberTakes30Microseconds(t *testing.T) {
	b := newBench(t, "flat:2", Config{Exact: true})
	b.NewFlow(0, 1, nil).Send(8)
	f := b.NewFlow(0, 1, func(int64) {
		// 18 + 52 + 8 bytes, FCS, preamble and gap, on two cables
		want := 2*DefaultHostLatency + DefaultSwitchLatency + 2*(18+52+8+24)*8*time.Nanosecond
		if got := b.q.Now().Sub(monotime.At(time.Second)); got != want || got < 25*time.Microsecond || got > 30*time.Microsecond {
			t.Errorf("%v, want %v, near 30 us less jitter", got, want)
		}
	})
	b.pass(time.Second)
	f.Send(8)
	b.drain()
	if f.Received() != 8 {
		t.Error("did not arrive")
	}
}

// Flows that meet at a port lose frames, give way, and come to equal shares, nearly: over some
// seconds none has less than half of its own.
func TestFlow_ManyShareALink(t *testing.T) {
	const length = 10 * time.Second
	rate := topology.Gbps
	if testing.Short() {
		rate /= 10
	}
	for senders := 2; senders <= 8; senders *= 2 {
		b := newBench(t, fmt.Sprintf("flat:%d@%v", senders+1, rate), Config{Seed: uint64(senders)})
		flows := make([]*Flow, senders)
		for i := range flows {
			flows[i] = b.NewFlow(i+1, 0, nil)
			flows[i].Send(math.MaxInt64)
		}
		b.pass(length)
		var sum, squares float64
		least := math.Inf(1)
		for _, f := range flows {
			got := float64(f.Received())
			sum, squares, least = sum+got, squares+got*got, min(least, got)
		}
		want := length.Seconds() * float64(rate) / 8 * Payload / FullFrame
		fairness := sum * sum / (float64(senders) * squares) // Jain's index: 1 is equal
		t.Logf("%d senders: %.1f %% of the rate, fairness %.4f, least %.2f of its share, %d frames lost",
			senders, 100*sum/want, fairness, least*float64(senders)/sum, b.Counters().Dropped)
		if sum < .99*want || sum > 1.001*want || fairness < .95 || least*float64(senders) < .5*sum {
			t.Errorf("%d senders: %.3f of the rate, fairness %.3f, least %.2f of its share", senders, sum/want, fairness, least*float64(senders)/sum)
		}
		if b.Counters().Dropped == 0 {
			t.Errorf("%d senders: no queue was ever full", senders)
		}
	}
}

// Acks go by the receiver's table. While the two ends disagree each full frame floods; when they
// agree again none does.
// Source: VFREC §4.3.
func TestNetwork_EndsThatDisagreeFlood(t *testing.T) {
	b := newBench(t, "vbft:2x2x2", Config{Seed: 1})
	f := b.NewFlow(0, 2, nil)
	f.Send(math.MaxInt64)
	b.pass(time.Second)
	flooded, before := b.Counters().Flooded, f.Received()
	if flooded > 20 {
		t.Errorf("%d flooded: more than until the first ack", flooded)
	}
	b.SetVID(0, 2, 2)
	b.pass(time.Second)
	frames := uint64(f.Received()-before) / Payload
	// leaf 0, top 1 and leaf 1 each send a frame everywhere; some hundred were on their way on
	// VID 1 when it changed
	if got := b.Counters().Flooded - flooded; got < 3*frames-500 || got > 3*frames+500 {
		t.Errorf("%d flooded for %d frames, want three times that", got, frames)
	}
	b.SetVID(2, 0, 2)
	b.pass(10 * time.Millisecond)
	flooded = b.Counters().Flooded
	b.pass(time.Second)
	if got := b.Counters().Flooded - flooded; got != 0 {
		t.Errorf("%d flooded after both had changed", got)
	}
}

// Who has said nothing for as long as addresses are kept is looked for everywhere again.
func TestNetwork_ForgetsTheSilent(t *testing.T) {
	b := newBench(t, "flat:3", Config{Seed: 1, Ageing: 2 * time.Second})
	f := b.NewFlow(0, 1, nil)
	for _, c := range []struct {
		after time.Duration
		want  uint64
		why   string
	}{
		{0, 1, "nobody is known"},
		{time.Second, 0, "the ack was a second ago"},
		{time.Second, 0, "and so it was again"},
		{3 * time.Second, 1, "the ack is forgotten"},
	} {
		b.pass(c.after)
		before := b.Counters().Flooded
		f.Send(100)
		b.pass(time.Millisecond)
		if got := b.Counters().Flooded - before; got != c.want {
			t.Errorf("%s: %d frames flooded, want %d", c.why, got, c.want)
		}
	}
}

// The same seed gives the same run, to the last frame; another one another.
func TestNetwork_SameSeedSameRun(t *testing.T) {
	run := func(seed uint64) string {
		b := newBench(t, "vbft:2x2x2", Config{Seed: seed})
		var flows []*Flow
		for i := range 4 {
			flows = append(flows, b.NewFlow(i, (i+2)%4, nil))
			flows[i].Send(math.MaxInt64)
		}
		b.pass(300 * time.Millisecond)
		s := fmt.Sprintf("%+v", b.Counters())
		for _, f := range flows {
			s += fmt.Sprintf(" %+v", f.Counters())
		}
		return s
	}
	first := run(1)
	if again := run(1); again != first {
		t.Errorf("seed 1:\n%s\nand again:\n%s", first, again)
	}
	if other := run(2); other == first {
		t.Errorf("seeds 1 and 2: %s", other)
	}
}

func TestNetwork_AllocatesNothing(t *testing.T) {
	b := newBench(t, "vbft:2x2x2", Config{Seed: 1})
	for i := range 4 {
		b.NewFlow(i, (i+2)%4, nil).Send(math.MaxInt64)
	}
	b.SetVID(0, 2, 2) // some flood
	b.pass(time.Second)
	if n := testing.AllocsPerRun(100, func() {
		for range 1000 {
			b.q.Step()
		}
	}); n != 0 {
		t.Errorf("%v allocs in 1000 events, want 0", n)
	}
	if b.Counters().Dropped == 0 {
		t.Error("nothing was lost: this is not the whole of it")
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	good, err := topology.Flat(2)
	if err != nil {
		t.Fatal(err)
	}
	noVLAN, slow := *good, *good
	noVLAN.VLANs = nil
	slow.Hosts = []topology.Host{{Name: "a", Rate: 1}}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "network: no topology"},
		{Config{Topology: &noVLAN}, "network: the topology has no VLAN (want one at least: frames are tagged)"},
		{Config{Topology: &slow}, "network: host a: a rate of 1 (want 1M to 1T)"},
		{Config{Topology: &topology.Topology{}}, "network: bad topology: no switch (want one at least)"},
		{Config{Topology: good, Queue: 100}, "network: queue of 100 bytes (want 1542, a full frame, to 67108864)"},
		{Config{Topology: good, Window: 1}, "network: window of 1 bytes (want 1448, what a frame carries, to 67108864)"},
		{Config{Topology: good, HostLatency: -1}, "network: latencies of -1ns and 2µs (want 0 to 50ms)"},
	} {
		if _, err := New(new(sim.Queue), c.config); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
