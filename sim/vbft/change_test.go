package vbft

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/sim/ether"

	"github.com/rawlane/rawlane/vlan/topology"
)

// gigabit is what a program gets of 1 Gbit/s, in MB/s: 117.4.
const gigabit = 125 * float64(ether.Payload) / ether.FullFrame

// scale makes cables slower, where time is short.
func scale() float64 {
	if testing.Short() {
		return 0.1
	}
	return 1
}

func paperChange(t *testing.T, sender, receiver time.Duration) *Change {
	network, err := topology.FatTree(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	rate := topology.Gbps * topology.Rate(scale())
	network.SetRates(rate, rate)
	return &Change{
		Network: ether.Config{Topology: network, Seed: 1}, Old: 1, New: 2,
		Sender: sender, Receiver: receiver, Length: 3 * time.Second, Sample: 100 * time.Millisecond,
	}
}

// phase is the mean of a second but its first 300 ms, in which windows open again.
type phase struct {
	total, first   float64 // MB/s: of all, and of host 0's counterpart
	flooded, least float64 // frames in a sample; MB/s in the sample with the least
}

// phases runs an experiment of three seconds.
func phases(t *testing.T, c *Change) [3]phase {
	t.Helper()
	var p [3]phase
	for i := range p {
		p[i].least = math.Inf(1)
	}
	err := c.Run(nil, func(s ChangeSample) error {
		if s.At%time.Second < 300*time.Millisecond {
			return nil
		}
		at, mb := &p[s.At/time.Second], float64(s.Total())/c.Sample.Seconds()/1e6
		at.total += mb / 7
		at.first += float64(s.Received[0]) / c.Sample.Seconds() / 1e6 / 7
		at.flooded += float64(s.Flooded) / 7
		at.least = min(at.least, mb)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*want }

// Figure 9 in three seconds: two paths are full; host 0 changes at 1 s, and its flood takes from
// all others; its counterpart follows at 2 s, and three paths are full.
func TestVFREC_5_2_AChangeOfOneEndFloodsTheNetwork(t *testing.T) {
	line := gigabit * scale()
	p := phases(t, paperChange(t, time.Second, 2*time.Second))
	if before := p[0]; !near(before.total, 2*line, .01) || before.flooded != 0 {
		t.Errorf("at first %.1f MB/s, %.0f flooded; want two cables' %.1f (the paper: about 235), none", before.total, before.flooded, 2*line)
	}
	// The cables on VID 2 carry nothing else, so host 0 gets one alone, and fills with its copies
	// the cable of each other host.
	if between := p[1]; between.total > .6*p[0].total || !near(between.first, line, .01) || between.flooded < 4e4*scale() {
		t.Errorf("then %.1f MB/s, %.1f of it host 0's, %.0f flooded; want a fall below %.1f, a cable's %.1f, five switches' 8,100 frames",
			between.total, between.first, between.flooded, .6*p[0].total, line)
	}
	if after := p[2]; !near(after.total, 3*line, .02) || !near(after.first, line, .01) || after.flooded != 0 {
		t.Errorf("at last %.1f MB/s, %.1f of it host 0's, %.0f flooded; want three cables' %.1f, one's, none",
			after.total, after.first, after.flooded, 3*line)
	}
}

// Both ends at once, as behind a barrier: a few frames flood, and nobody else notices.
func TestVFREC_5_2_BothEndsTogetherCostNothing(t *testing.T) {
	line := gigabit * scale()
	c := paperChange(t, time.Second, time.Second)
	p := phases(t, c)
	if p[1].total < p[0].total || p[1].flooded != 0 || !near(p[2].total, 3*line, .02) {
		t.Errorf("%.1f, %.1f and %.1f MB/s, %.0f flooded; want no fall, and three cables' %.1f at the end",
			p[0].total, p[1].total, p[2].total, p[1].flooded, 3*line)
	}
	flooded, least := uint64(0), math.Inf(1)
	if err := c.Run(nil, func(s ChangeSample) error {
		if s.At >= time.Second {
			flooded += s.Flooded
			least = min(least, float64(s.Total())/c.Sample.Seconds()/1e6)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if flooded > 1000 || least < .9*p[0].total {
		t.Errorf("%d flooded in all, and one sample has %.1f MB/s: a dip", flooded, least)
	}
}

// The receiver first, as in the paper's order B: then its acks flood, which are small.
func TestVFREC_4_3_AReceiverThatChangesFirstFloodsAcks(t *testing.T) {
	line := gigabit * scale()
	p := phases(t, paperChange(t, 2*time.Second, time.Second))
	if p[1].flooded < 1000*scale() || p[1].total < .95*p[0].total || !near(p[2].total, 3*line, .02) {
		t.Errorf("%.1f, %.1f and %.1f MB/s, %.0f flooded; want acks that flood, hardly a fall, and three cables' %.1f at the end",
			p[0].total, p[1].total, p[2].total, p[1].flooded, 3*line)
	}
}

func TestChange_EndsWhenTold(t *testing.T) {
	stop, samples := errors.New("stop"), 0
	err := paperChange(t, 0, 0).Run(nil, func(ChangeSample) error {
		samples++
		return stop
	})
	if !errors.Is(err, stop) || samples != 1 {
		t.Errorf("%v after %d samples", err, samples)
	}
}

// A sample may take minutes to compute: whoever wants the run to end does not wait for it.
func TestChange_EndsWithinASample(t *testing.T) {
	stop, c := errors.New("stop"), paperChange(t, 0, 0)
	c.Sample = c.Length
	checks := 0
	err := c.Run(func() error {
		checks++
		return stop
	}, func(ChangeSample) error {
		t.Error("the sample was taken to its end")
		return nil
	})
	if !errors.Is(err, stop) || checks != 1 {
		t.Errorf("%v after %d checks", err, checks)
	}
}

func TestChange_SaysWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(*Change){
		"change: network: no topology":                                func(c *Change) { c.Network.Topology = nil },
		"VID 1 to 9: the topology lacks one (it has [1 2 3 4])":       func(c *Change) { c.New = 9 },
		"3s in samples of 0s (want one at least, and 1h0m0s at most)": func(c *Change) { c.Sample = 0 },
		"3s in samples of 700ms (want a whole number of them":         func(c *Change) { c.Sample = 700 * time.Millisecond },
		"changes at -1ns and 0s: before the start":                    func(c *Change) { c.Sender = -1 },
		"change: 3 hosts (want an even number)":                       func(c *Change) { c.Network.Topology, _ = topology.Flat(3) },
		"change: network: window of 5 bytes (want 1448, what a frame": func(c *Change) { c.Network.Window = 5 },
	} {
		c := paperChange(t, 0, 0)
		spoil(c)
		if err := c.Run(nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
