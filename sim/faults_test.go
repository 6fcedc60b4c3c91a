package sim

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Each fault hits as often as it says, to 5 standard deviations of 100,000 frames, and no other
// is counted.
func TestFaults_Rates(t *testing.T) {
	const frames, p = 100_000, .03
	for _, c := range []struct {
		name    string
		faults  Faults
		counted func(c *Counters) *uint64
		arrive  int // for each hit
	}{
		{"loss", Faults{Loss: p}, func(c *Counters) *uint64 { return &c.Lost }, -1},
		{"corrupt", Faults{Corrupt: p}, func(c *Counters) *uint64 { return &c.Corrupted }, -1},
		{"misroute", Faults{Misroute: p}, func(c *Counters) *uint64 { return &c.Misrouted }, -1},
		{"duplicate", Faults{Duplicate: p}, func(c *Counters) *uint64 { return &c.Duplicated }, +1},
		{"reorder", Faults{Reorder: p}, func(c *Counters) *uint64 { return &c.Reordered }, 0},
		{"delay", Faults{Delay: p}, func(c *Counters) *uint64 { return &c.Delayed }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := paper(11)
			config.Faults, config.Seed = c.faults, 7
			r := record(config)
			for range frames / 10 { // a multicast to 10 others: each copy has its chance
				r.Multicast(0, 0, "")
			}
			arrived, got := len(r.run()), r.Counters()
			hits := *c.counted(&got)
			if off := math.Abs(float64(hits) - frames*p); off > 5*math.Sqrt(frames*p*(1-p)) {
				t.Errorf("%d hits of %d frames, want about %v", hits, frames, frames*p)
			}
			if arrived != frames+c.arrive*int(hits) {
				t.Errorf("%d arrived, %d hits", arrived, hits)
			}
			want := Counters{Sent: frames / 10, Delivered: uint64(arrived)}
			if *c.counted(&want) = hits; got != want {
				t.Errorf("counters %+v, want %+v", got, want)
			}
		})
	}
}

func TestFaults_NeverAndAlways(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults Faults
		want   int
	}{
		{"none", Faults{}, 100}, {"all lost", Faults{Loss: 1}, 0}, {"all corrupted", Faults{Corrupt: 1}, 0},
		{"all twice", Faults{Duplicate: 1}, 200}, {"all late", Faults{Reorder: 1, Delay: 1}, 100},
	} {
		config := paper(2)
		config.Faults = c.faults
		r := record(config)
		for range 100 {
			r.Send(0, 1, 0, "")
		}
		if n := len(r.run()); n != c.want {
			t.Errorf("%s: %d arrived, want %d", c.name, n, c.want)
		}
	}
}

func TestFaults_DuplicateArrivesTwice(t *testing.T) {
	c := paper(2)
	c.Faults.Duplicate = 1
	r := record(c)
	r.Send(0, 1, 0, "m")
	r.want(t, arrival{30 * us, 1, 0, 0, "m"}, arrival{39500, 1, 0, 0, "m"})
}

// Frames that are late are late by up to what was asked, uniformly: the mean is half of it.
func TestFaults_Lateness(t *testing.T) {
	const frames, by = 10_000, 100 * us
	for name, faults := range map[string]Faults{
		"reorder": {Reorder: 1, ReorderBy: by},
		"delay":   {Delay: 1, DelayBy: by},
	} {
		c := paper(2)
		c.Faults = faults
		r := record(c)
		var late []time.Duration
		r.on = func(a arrival) { late = append(late, a.at%time.Millisecond-30*us) }
		for i := range frames { // far apart: no frame waits for another
			r.at(time.Duration(i)*time.Millisecond, func() { r.Send(0, 1, 0, "") })
		}
		r.run()
		var sum time.Duration
		for _, d := range late {
			sum += d
		}
		mean := sum / frames
		if slices.Min(late) < 1 || slices.Max(late) > by || slices.Max(late) < by*99/100 || mean < 48*us || mean > 52*us {
			t.Errorf("%s: late by %v to %v, mean %v", name, slices.Min(late), slices.Max(late), mean)
		}
	}
}

// With the defaults, a frame that is reordered is overtaken by its successors, on a network of
// any cost.
func TestFaults_ReorderOvertakes(t *testing.T) {
	for name, c := range map[string]Config{
		"paper": paper(2), "gap": {Nodes: 2, Gap: 20 * us}, "Or dominates": {Nodes: 2, Os: us, Or: 50 * us}, "no costs": {Nodes: 2},
	} {
		c.Faults.Reorder = .1
		r := record(c)
		for i := range 1000 {
			r.Send(0, 1, 0, strconv.Itoa(i))
		}
		overtaken, highest := 0, -1
		for _, a := range r.run() {
			if i, _ := strconv.Atoi(a.m); i < highest {
				overtaken++
			} else {
				highest = i
			}
		}
		if overtaken < 30 || overtaken > int(r.Counters().Reordered) {
			t.Errorf("%s: %d frames overtaken, %d reordered", name, overtaken, r.Counters().Reordered)
		}
	}
}

func TestFaults_OfFramesThatLeaveFromNowOn(t *testing.T) {
	r := record(paper(2))
	for _, m := range []string{"left", "not yet"} {
		r.Send(0, 1, 0, m)
	}
	r.at(4*us, func() { r.SetFaults(Faults{Loss: 1}) })
	r.at(50*us, func() { r.SetFaults(Faults{}); r.Send(0, 1, 0, "after") })
	r.want(t, arrival{30 * us, 1, 0, 0, "left"}, arrival{80 * us, 1, 0, 0, "after"})
}

func TestCut(t *testing.T) {
	r := record(paper(3))
	r.Send(1, 0, 0, "left before")
	r.at(10*us, func() {
		r.Cut(0, 1, true)
		r.Send(0, 1, 0, "cut")
		r.Send(1, 0, 0, "cut, the other way")
		r.Multicast(0, 0, "to 2 alone")
	})
	r.at(100*us, func() { r.Cut(1, 0, false); r.Send(0, 1, 0, "healed") })
	r.want(t, arrival{30 * us, 0, 1, 0, "left before"}, arrival{43 * us, 2, 0, 0, "to 2 alone"}, arrival{130 * us, 1, 0, 0, "healed"})
	if c := r.Counters(); c != (Counters{Sent: 5, Delivered: 3, Cut: 3}) {
		t.Errorf("counters %+v", c)
	}
}

func TestCutOneWay(t *testing.T) {
	r := record(paper(2))
	r.CutOneWay(0, 1, true)
	r.Send(0, 1, 0, "cut")
	r.Send(1, 0, 0, "the other way")
	r.want(t, arrival{30 * us, 0, 1, 0, "the other way"})
}

// A loss takes the frames behind it, too, of its own path alone.
func TestFaults_Burst(t *testing.T) {
	c := paper(3)
	c.Faults = Faults{Loss: .01, Burst: 3}
	r := record(c)
	const frames = 20_000
	for i := range frames {
		r.Send(0, 1+i%2, 0, strconv.Itoa(i/2))
	}
	next, gaps := [3]int{}, map[int]int{}
	for _, a := range r.run() {
		i, _ := strconv.Atoi(a.m)
		gaps[(i-next[a.to])%3]++
		next[a.to] = i + 1
	}
	got := r.Counters()
	if lost := int(got.Lost); lost < 400 || lost > 800 || got.Burst < got.Lost*3/5 || gaps[1]+gaps[2] > 0 {
		t.Errorf("%+v, gaps by their length modulo 3: %v", got, gaps)
	}
}

// Beyond its ring a processor drops what arrives.
func TestFaults_Ring(t *testing.T) {
	c := paper(3)
	c.Faults.Ring = 2
	r := record(c)
	for range 10 { // two senders are faster than one receiver
		r.Send(1, 0, 0, "")
		r.Send(2, 0, 0, "")
	}
	arrived, got := len(r.run()), r.Counters()
	if want := (Counters{Sent: 20, Delivered: uint64(arrived), Lost: uint64(20 - arrived), Overrun: uint64(20 - arrived)}); got != want || arrived < 3 || arrived > 15 {
		t.Errorf("%+v, want %+v", got, want)
	}
}
