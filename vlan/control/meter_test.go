package control

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func meterOf(t *testing.T) (*topology.Topology, meter) {
	t.Helper()
	network, err := topology.Parse("flat:3")
	if err != nil {
		t.Fatal(err)
	}
	return network, newMeter(network)
}

// A node is missing in a period without a sample of it, and its last rates go on to count. By which
// VIDs it sends meanwhile is not known.
func TestMeterMissesNodes(t *testing.T) {
	_, m := meterOf(t)
	now := monotime.At(time.Hour)
	read := func(node int, bytes uint64) {
		t.Helper()
		if err := m.observe(Sample{Node: node, At: now, Sent: []SentTo{{Node: 2, VID: 1, Bytes: bytes}}}); err != nil {
			t.Fatal(err)
		}
	}
	if o, ok := m.endPeriod(); ok || !slices.Equal(o.missing, []bool{true, true, true}) {
		t.Errorf("no sample: %v, %v", o.missing, ok)
	}
	read(0, 1000)
	if o, ok := m.endPeriod(); ok || !slices.Equal(o.missing, []bool{false, true, true}) {
		t.Errorf("one sample: %v, %v", o.missing, ok)
	}
	now = now.Add(time.Second)
	read(0, 2000)
	o, ok := m.endPeriod()
	if !ok || len(o.flows) != 1 || o.flows[0] != (traffic.Flow{From: 0, To: 2, Rate: 8000}) || o.vids[plan.Pair{A: 0, B: 2}] != 1 {
		t.Errorf("two samples: %+v, %v", o, ok)
	}
	for k := range 100 {
		o, ok := m.endPeriod()
		if !o.missing[0] || !ok || len(o.flows) != 1 || o.flows[0].Rate != 8000 || len(o.vids) > 0 {
			t.Errorf("%d periods without a sample: %+v, %v", k+1, o, ok)
		}
	}
	now = now.Add(100 * time.Second)
	read(0, 2000)
	if o, _ := m.endPeriod(); o.missing[0] || len(o.flows) > 0 {
		t.Errorf("it is back, and has sent nothing: %+v", o)
	}
}

// A last rate of a missing node counts until the destination, which sent something back, has sent
// nothing for three periods in a row. One that cannot be read, or never sent anything, says nothing.
func TestMeterForgetsWhatNobodyAnswers(t *testing.T) {
	const node, answers, mute, lost = 0, 1, 2, 3
	network, err := topology.Parse("flat:4")
	if err != nil {
		t.Fatal(err)
	}
	m := newMeter(network)
	sent := make(map[int]map[int]uint64)
	for second, c := range []struct {
		gone bool // node and lost
		back bool // answers sends
		kept int  // flows from node
	}{
		{back: true}, {back: true, kept: 3},
		{gone: true, kept: 3}, {gone: true, kept: 3}, {gone: true, back: true, kept: 3},
		{gone: true, kept: 3}, {gone: true, kept: 3}, {gone: true, kept: 2}, {gone: true, back: true, kept: 2},
		{kept: 3, back: true}, {kept: 3},
		{gone: true, kept: 3}, {gone: true, kept: 3}, {gone: true, kept: 3}, {gone: true, kept: 3}, // it did not answer
	} {
		send := func(from, to int) {
			if sent[from] == nil {
				sent[from] = make(map[int]uint64)
			}
			sent[from][to] += 1000
		}
		for _, to := range []int{answers, mute, lost} {
			send(node, to)
		}
		if send(lost, node); c.back {
			send(answers, node)
		}
		for from := range network.Hosts {
			if c.gone && (from == node || from == lost) {
				continue
			}
			s := Sample{Node: from, At: monotime.At(time.Duration(second) * time.Second)}
			for to, bytes := range sent[from] {
				s.Sent = append(s.Sent, SentTo{Node: to, VID: 1, Bytes: bytes})
			}
			if err := m.observe(s); err != nil {
				t.Fatal(err)
			}
		}
		o, _ := m.endPeriod()
		kept := 0
		for _, f := range o.flows {
			if f.From == node {
				kept++
			}
		}
		if kept != c.kept {
			t.Errorf("second %d: %v, want %d flows of node 0", second, o.flows, c.kept)
		}
	}
}

// Counters that begin anew, as they do with a manager, are none of a burst: neither as the programs
// come back to it one by one, with all that they have counted, nor once they are back.
func TestMeterOfAManagerThatBeginsAnew(t *testing.T) {
	const rate = 1000 // bytes a second to node 1, and as many to node 2
	_, m := meterOf(t)
	for second := range uint64(20) {
		s := Sample{Node: 0, At: monotime.At(time.Duration(second) * time.Second)}
		first, other := second*rate, uint64(0) // of two programs that run for long, and of one that ends
		if second < 10 {
			other = second * rate
		}
		switch { // what the manager knows, which begins anew after 10 s
		case second == 10:
		case second == 11:
			s.Sent = []SentTo{{1, 1, first / 2}}
		default:
			s.Sent = []SentTo{{1, 1, first + other}, {2, 1, first}}
		}
		if err := m.observe(s); err != nil {
			t.Fatal(err)
		}
		o, _ := m.endPeriod()
		for _, f := range o.flows {
			if f.Rate > 2*8*rate {
				t.Errorf("second %d: %v, want no burst", second, f)
			}
		}
		if missing := 10 <= second && second < 15; o.missing[0] != missing {
			t.Errorf("second %d: missing %v", second, o.missing[0])
		}
	}
}

// A destination that is sent to by several VIDs has none of its own, unless nearly all is by one.
func TestMeterFindsTheVIDInUse(t *testing.T) {
	for _, c := range []struct {
		first, second uint64
		want          transport.VID
	}{{1000, 0, 1}, {0, 1000, 2}, {500, 500, several}, {900, 100, 1}, {890, 110, several}, {110, 890, several}, {100, 900, 2}} {
		_, m := meterOf(t)
		for k := range uint64(2) {
			s := Sample{Node: 0, At: monotime.At(time.Duration(k+1) * time.Second),
				Sent: []SentTo{{Node: 1, VID: 1, Bytes: k * c.first}, {Node: 1, VID: 2, Bytes: k * c.second}}}
			if err := m.observe(s); err != nil {
				t.Fatal(err)
			}
			o, ok := m.endPeriod()
			if got := o.vids[plan.Pair{A: 0, B: 1}]; ok && got != c.want {
				t.Errorf("%d and %d bytes: VID %d, want %d", c.first, c.second, got, c.want)
			}
		}
	}
}

// A counter that rises by more than its cable carries is broken: the rate before counts.
func TestMeterDoesNotBelieveTheImpossible(t *testing.T) {
	network, m := meterOf(t)
	bytes := uint64(0)
	var o observation
	for k, rise := range []uint64{0, 4000, 1 << 60, 4000} {
		bytes += rise
		s := Sample{Node: 0, At: monotime.At(time.Duration(2*k+1) * time.Second), Sent: []SentTo{{Node: 1, VID: 1, Bytes: bytes}}}
		if err := m.observe(s); err != nil {
			t.Fatal(err)
		}
		o, _ = m.endPeriod()
		if k > 0 && (len(o.flows) != 1 || o.flows[0].Rate != 16000) {
			t.Errorf("reading %d: %v, want 16 kbit/s (a cable has %v)", k, o.flows, network.Hosts[0].Rate)
		}
	}
}

// What is impossible in two periods in a row is believed as it is counted, until it is possible.
func TestMeterBelievesTheImpossibleTwice(t *testing.T) {
	const gigabit = 125_000_000 // bytes a second
	_, m := meterOf(t)
	bytes := uint64(0)
	for second, c := range []struct{ sent, seen uint64 }{
		{0, 0}, {3, 3}, {5, 3}, {5, 5}, {9, 9}, {2, 2}, {7, 2}, {1, 1}, {8, 1}, {8, 8},
	} {
		bytes += c.sent * gigabit
		s := Sample{Node: 0, At: monotime.At(time.Duration(second) * time.Second), Sent: []SentTo{{Node: 1, VID: 1, Bytes: bytes}}}
		if err := m.observe(s); err != nil {
			t.Fatal(err)
		}
		o, _ := m.endPeriod()
		if want := (traffic.Flow{From: 0, To: 1, Rate: topology.Rate(c.seen) * topology.Gbps}); second > 0 && (len(o.flows) != 1 || o.flows[0] != want) {
			t.Errorf("second %d: %v, want %v", second, o.flows, want)
		}
	}
}

// A node is too fast that sends more than one and a half of its cable's rate, in all, in two periods
// in a row.
func TestMeterFindsNodesThatAreTooFast(t *testing.T) {
	const percent = 1_250_000 // bytes a second
	_, m := meterOf(t)
	first, second := uint64(0), uint64(0)
	for k, c := range []struct {
		by  [2]uint64 // to the others, in percent of the cable
		too bool
	}{{[2]uint64{}, false}, {[2]uint64{80, 80}, false}, {[2]uint64{80, 70}, false}, {[2]uint64{80, 71}, false}, {[2]uint64{80, 71}, true},
		{[2]uint64{500, 0}, true}, {[2]uint64{0, 10}, false}, {[2]uint64{1e9, 0}, false}, {[2]uint64{1, 0}, false}} {
		first, second = first+c.by[0]*percent, second+c.by[1]*percent
		s := Sample{Node: 0, At: monotime.At(time.Duration(k) * time.Second), Sent: []SentTo{{Node: 1, VID: 1, Bytes: first}, {Node: 2, VID: 1, Bytes: second}}}
		if err := m.observe(s); err != nil {
			t.Fatal(err)
		}
		o, _ := m.endPeriod()
		if slices.Equal(o.tooFast, []int{0}) != c.too || !c.too && len(o.tooFast) > 0 {
			t.Errorf("second %d: too fast %v", k, o.tooFast)
		}
	}
}

// The rate to a destination of which one counter is broken, or several are, is that before, once,
// and so is its VID.
func TestMeter_ImpossibleOfSeveralVIDs(t *testing.T) {
	for _, rise := range [][2]uint64{{1 << 60, 1 << 60}, {1 << 60, 95}, {5, 1 << 60}, {5, 95}} {
		_, m := meterOf(t)
		var first, second uint64
		var o observation
		for k, by := range [][2]uint64{{}, {5, 95}, rise} {
			first, second = first+by[0], second+by[1]
			s := Sample{Node: 0, At: monotime.At(time.Duration(k+1) * time.Second),
				Sent: []SentTo{{Node: 1, VID: 1, Bytes: first}, {Node: 1, VID: 2, Bytes: second}}}
			if err := m.observe(s); err != nil {
				t.Fatal(err)
			}
			o, _ = m.endPeriod()
		}
		want := traffic.Matrix{{From: 0, To: 1, Rate: 800}}
		if vid := o.vids[plan.Pair{A: 0, B: 1}]; !slices.Equal(o.flows, want) || vid != 2 {
			t.Errorf("counters that rise by %d: %v by VID %d, want %v by VID 2", rise, o.flows, vid, want)
		}
	}
}

// A counter that is broken counts as before for its destination alone: the rates to the others are
// those of the period.
func TestMeter_ImpossibleToOneNode(t *testing.T) {
	const nodes = 9
	network, err := topology.Parse("flat:9")
	if err != nil {
		t.Fatal(err)
	}
	for broken := 1; broken < nodes; broken++ {
		m := newMeter(network)
		var want traffic.Matrix
		var o observation
		sent := make([]SentTo, 0, nodes)
		for to := 1; to < nodes; to++ {
			sent = append(sent, SentTo{Node: to, VID: 1})
			rate := topology.Rate(8 * 2000 * to)
			if to == broken {
				rate /= 2
			}
			want = append(want, traffic.Flow{From: 0, To: to, Rate: rate})
		}
		for period := range 3 {
			if err := m.observe(Sample{Node: 0, At: monotime.At(time.Duration(period+1) * time.Second), Sent: sent}); err != nil {
				t.Fatal(err)
			}
			o, _ = m.endPeriod()
			for i := range sent {
				sent[i].Bytes += uint64((period + 1) * 1000 * sent[i].Node)
				if period == 1 && sent[i].Node == broken {
					sent[i].Bytes += 1 << 60
				}
			}
		}
		if !slices.Equal(o.flows, want) {
			t.Errorf("the counter of node %d is broken: %v, want %v", broken, o.flows, want)
		}
	}
}

// What was known of a flow is forgotten when it pauses, but not while its node cannot be read.
func TestDemandOfAPausedFlowIsForgotten(t *testing.T) {
	network, _ := meterOf(t)
	e := newDemandEstimator(network)
	flow := traffic.Flow{From: 0, To: 1}
	for _, c := range []struct {
		seen observation
		kept bool
	}{
		{observation{flows: traffic.Matrix{{From: 0, To: 1, Rate: 5}}, missing: make([]bool, 3)}, true},
		{observation{missing: []bool{true, false, false}}, true},
		{observation{missing: make([]bool, 3)}, false},
	} {
		e.known[flow] = 1000
		held := make([]bool, len(c.seen.flows))
		for i := range held {
			held[i] = true
		}
		e.learn(c.seen, held)
		if _, kept := e.known[flow]; kept != c.kept {
			t.Errorf("%+v: kept %v", c.seen, kept)
		}
	}
}

// What is known of a flow that is held back is forgotten if it gets more than 5 % above that.
func TestDemandThatIsExceededIsForgotten(t *testing.T) {
	network, _ := meterOf(t)
	flow := traffic.Flow{From: 0, To: 1}
	for _, c := range []struct {
		rate  topology.Rate
		held  bool
		known topology.Rate // 0: nothing
	}{{1049, true, 1000}, {1050, true, 1000}, {1051, true, 0}, {500, true, 1000}, {1051, false, 1051}, {500, false, 500}} {
		e := newDemandEstimator(network)
		e.known[flow] = 1000
		flows := traffic.Matrix{{From: 0, To: 1, Rate: c.rate}}
		e.learn(observation{flows: flows, missing: make([]bool, 3)}, []bool{c.held})
		if got := e.known[flow]; got != c.known {
			t.Errorf("%v, held back %v: known %v, want %v", c.rate, c.held, got, c.known)
		}
		e.known = make(map[traffic.Flow]topology.Rate)
		e.learn(observation{flows: flows, missing: make([]bool, 3)}, []bool{true})
		if len(e.known) > 0 {
			t.Errorf("%v, held back: known %v, and was not before", c.rate, e.known)
		}
	}
}

// Nodes are those of the network, a destination is another one, and a sample is later than that of
// an earlier period.
func TestMeter_Bounds(t *testing.T) {
	last := monotime.At(time.Hour)
	for _, c := range []struct {
		node, to int
		at       monotime.Time
		good     bool
	}{
		{0, 1, last.Add(1), true}, {0, 2, last.Add(1), true}, {2, 0, last.Add(1), true}, {1, 2, last.Add(1), true},
		{-1, 1, last.Add(1), false}, {3, 1, last.Add(1), false}, {0, -1, last.Add(1), false}, {0, 3, last.Add(1), false},
		{1, 1, last.Add(1), false}, {0, 0, last.Add(1), false}, {0, 1, last, false}, {0, 1, last.Add(-1), false},
	} {
		_, m := meterOf(t)
		for node := range m.nodes {
			if err := m.observe(Sample{Node: node, At: last}); err != nil {
				t.Fatal(err)
			}
		}
		m.endPeriod()
		err := m.observe(Sample{Node: c.node, At: c.at, Sent: []SentTo{{Node: c.to, VID: 1, Bytes: 1}}})
		if (err == nil) != c.good || err != nil && !errors.Is(err, ErrBadSample) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A counter is broken if it rises by more than four times what its cable carries.
func TestMeter_ImpossibleBound(t *testing.T) {
	network, _ := meterOf(t)
	most := 4 * uint64(network.Hosts[0].Rate) / 8
	for _, seconds := range []uint64{1, 5} {
		for bytes, believed := range map[uint64]bool{seconds * most: true, seconds*most + 8: false, seconds * most / 2: true} {
			m := newMeter(network)
			var o observation
			for k := range uint64(2) {
				s := Sample{Node: 0, At: monotime.At(time.Duration(1+k*seconds) * time.Second), Sent: []SentTo{{Node: 1, VID: 1, Bytes: k * bytes}}}
				if err := m.observe(s); err != nil {
					t.Fatal(err)
				}
				o, _ = m.endPeriod()
			}
			if got := len(o.flows) == 1; got != believed {
				t.Errorf("%d bytes in %d s: %v, believed: %v, want %v", bytes, seconds, o.flows, got, believed)
			}
		}
	}
}
