package control

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// The defaults are those that the documents name.
func TestDefaults(t *testing.T) {
	f := FailoverConfig{VIDs: []transport.VID{1}}
	if err := f.complete(); err != nil {
		t.Fatal(err)
	}
	if DefaultProbe != 100*time.Millisecond || f.Probe != DefaultProbe || f.StandbyInterval != time.Second ||
		f.Timeout != 50*time.Millisecond || f.Misses != 3 || f.WaitToRestore != 5*time.Second {
		t.Errorf("%+v", f)
	}
	var c ControllerConfig
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	want := ControllerConfig{Period: time.Second, Weight: 0.5, Gain: 0.1, Cost: 0.002, Hysteresis: 3, MaxChanges: 8, FlapDamping: 10 * time.Second, MinUtilization: 0.1}
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// Each field is taken up to its bounds, and refused beyond them.
func TestControllerConfigBounds(t *testing.T) {
	for _, c := range []struct {
		cfg  ControllerConfig
		good bool
	}{
		{ControllerConfig{Hysteresis: 1}, true}, {ControllerConfig{Hysteresis: 60}, true}, {ControllerConfig{Hysteresis: 61}, false}, {ControllerConfig{Hysteresis: -1}, false},
		{ControllerConfig{MaxChanges: 1}, true}, {ControllerConfig{MaxChanges: -1}, false},
		{ControllerConfig{Weight: 1}, true}, {ControllerConfig{Weight: 1.01}, false}, {ControllerConfig{Weight: -0.1}, false}, {ControllerConfig{Weight: math.NaN()}, false},
		{ControllerConfig{Gain: 0.99}, true}, {ControllerConfig{Gain: 1}, false}, {ControllerConfig{Gain: -0.1}, false},
		{ControllerConfig{Cost: 0.99}, true}, {ControllerConfig{Cost: 1}, false}, {ControllerConfig{Cost: -1}, false},
		{ControllerConfig{MinUtilization: -0.1}, false}, {ControllerConfig{MinUtilization: 5}, true},
		{ControllerConfig{FlapDamping: -1}, false}, {ControllerConfig{FlapDamping: 1}, true}, {ControllerConfig{Period: -1}, false}, {ControllerConfig{Period: 1}, true},
	} {
		if err := c.cfg.complete(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// A pair that changes rests for FlapDamping; if it changes soon after, for twice as long each time,
// up to a bound; long after, for FlapDamping again.
func TestPairsRestLongerEachTime(t *testing.T) {
	c := &Controller{cfg: ControllerConfig{FlapDamping: time.Second}, rests: make(map[plan.Pair]rest)}
	p := plan.Pair{A: 1, B: 2}
	now := monotime.At(time.Hour)
	length := time.Second
	for range 10 {
		c.dampen(now, p)
		if got := c.rests[p].until.Sub(now); got != length {
			t.Fatalf("rests for %v, want %v", got, length)
		}
		now = c.rests[p].until.Add(c.rests[p].length) // just soon enough
		length = min(2*length, 64*time.Second)
	}
	c.dampen(now, p)
	now = c.rests[p].until.Add(c.rests[p].length + 1)
	c.dampen(now, p)
	if got := c.rests[p].until.Sub(now); got != time.Second {
		t.Errorf("long after: rests for %v", got)
	}
	if other := (plan.Pair{A: 1, B: 3}); c.rests[other] != (rest{}) {
		t.Error("another pair rests")
	}
}

func meterOf(t *testing.T) (*topology.Topology, meter) {
	t.Helper()
	network, err := topology.Parse("flat:3")
	if err != nil {
		t.Fatal(err)
	}
	return network, newMeter(network)
}

// A node is missing in a period without a sample of it, its last rates count for three periods, and
// no longer.
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
	for k := range 4 {
		o, _ := m.endPeriod()
		if !o.missing[0] || (len(o.flows) == 1) != (k < 3) {
			t.Errorf("%d periods without a sample: %+v", k+1, o)
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

// The search of a period grows with the flows and the VIDs, up to a bound.
func TestEffort(t *testing.T) {
	for _, c := range [][3]int{{0, 4, 1}, {1, 1, 50}, {10, 4, 2000}, {1 << 20, 4, 1048576}} {
		if got := effort(c[0], c[1]); got != c[2] {
			t.Errorf("%d flows, %d VIDs: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// An advertisement with no path, with more than there can be, or with fewer than it says is none.
func TestAdvertisementsThatAreNone(t *testing.T) {
	body := func(version byte, count, entries int) []byte {
		return append([]byte{version, byte(count), 0, 1, 0, 0, 0, 9}, make([]byte, 2*entries)...)
	}
	for _, c := range []struct {
		name string
		body []byte
		good bool
	}{
		{"one path", body(adVersion, 1, 1), true}, {"as many as there can be", body(adVersion, 64, 64), true}, {"more follows", body(adVersion, 1, 2), true},
		{"empty", nil, false}, {"cut in its head", body(adVersion, 1, 0)[:7], false}, {"no path", body(adVersion, 0, 1), false},
		{"too many", body(adVersion, 65, 65), false}, {"an entry is missing", body(adVersion, 2, 1), false}, {"half an entry", body(adVersion, 1, 1)[:9], false},
		{"another version", body(adVersion+1, 1, 1), false},
	} {
		var ad advertisement
		if got := ad.parse(c.body); got != c.good || got && (ad.choice != 1 || ad.number != 9) {
			t.Errorf("%s: %v, %+v", c.name, got, ad)
		}
	}
}

// Of a peer's probes each newer one counts, and none twice.
func TestHeardTakesEachNewerProbe(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(high, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, low, 10, nil); err != nil {
		t.Fatal(err)
	}
	hear := func(number uint32, choice, want transport.VID) {
		t.Helper()
		body := []byte{adVersion, 3, 0, byte(choice), byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number), 0, 10, 0, 20, 0, 30}
		f.Heard(now, low, 1, body, nil)
		if got, _ := f.VID(low); got != want {
			t.Errorf("probe %d says VID %d: VID %d, want %d", number, choice, got, want)
		}
	}
	hear(5, 20, 20)
	hear(6, 30, 30)
	hear(6, 20, 30)
	hear(5, 10, 30)
	hear(7, 10, 10)
}

// Numbers of probes go on from the time, so that a peer that is removed and set again in one
// incarnation is heard; and answers to probes of before a link went down do not count.
func TestProbesAreNumberedByTime(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.settling(); got != 150*time.Millisecond {
		t.Errorf("settling takes %v, want three timeouts", got)
	}
	for _, at := range []time.Duration{time.Hour, time.Hour + 1500*time.Millisecond, 48 * time.Hour} {
		if _, err := f.SetPeer(monotime.At(at), high, 10, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := f.peers[high].number, uint32(at.Milliseconds()); got != want {
			t.Errorf("at %v: %d, want %d", at, got, want)
		}
		f.RemovePeer(high)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	var old []byte
	for _, s := range f.Advance(now, nil) {
		if s.Body != nil && s.VID == 10 {
			old = slices.Clone(s.Body)
		}
	}
	if old == nil {
		t.Fatal("no probe")
	}
	f.SetLink(now, false, nil)
	f.SetLink(now, true, nil)
	f.Answered(now, high, 10, old, nil)
	if s := f.peers[high].path(10).state; s != PathDown {
		t.Errorf("an answer to a probe of before the link went down: %v", s)
	}
	now = now.Add(10 * time.Millisecond)
	var answered bool
	f.SetLink(now, false, nil)
	for _, s := range f.SetLink(now, true, nil) {
		if s.Body != nil && s.VID == 10 {
			answered = true
			f.Answered(now, high, 10, slices.Clone(s.Body), nil)
			break
		}
	}
	if s := f.peers[high].path(10).state; !answered || s != PathWaitToRestore {
		t.Errorf("an answer to a probe since: %v, %v", answered, s)
	}
}

// All paths are dead and another one than the pair's comes back: the pair moves to it once it has
// answered for the settling time, at the next probe at the latest, and long before it counts as up.
func TestFirstPathThatComesBackIsUsed(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
	if err != nil {
		t.Fatal(err)
	}
	begin := monotime.At(time.Hour)
	if _, err := f.SetPeer(begin, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	f.SetLink(begin, false, nil)
	now, moved := begin, monotime.Time{}
	for steps := f.SetLink(now, true, nil); now.Sub(begin) < 2*time.Second; steps = f.Advance(now, nil) {
		var answered []FailoverStep
		for _, s := range steps {
			switch {
			case s.Body == nil && s.VID != 20:
				t.Errorf("after %v the pair moves to VID %d", now.Sub(begin), s.VID)
			case s.Body == nil:
				moved = now
			case s.VID == 20:
				answered = append(answered, FailoverStep{Body: slices.Clone(s.Body)})
			}
		}
		for _, s := range answered {
			f.Answered(now, high, 20, s.Body, nil)
		}
		var ok bool
		if now, ok = f.Deadline(); !ok {
			t.Fatal("nothing is due")
		}
	}
	if vid, _ := f.VID(high); vid != 20 || moved.Sub(begin) < f.settling() || moved.Sub(begin) > f.settling()+f.cfg.Probe {
		t.Errorf("VID %d, since %v; want 20 after %v, and at the next probe at the latest", vid, moved.Sub(begin), f.settling())
	}
	if s := f.peers[high].path(20).state; s != PathWaitToRestore {
		t.Errorf("the path is %v already", s)
	}
}

// A path that is dead is probed on: nothing else could tell that it is back.
func TestDeadPathsAreProbed(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	steps, err := f.SetPeer(now, high, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	end, probes := now.Add(10*time.Second), 0
	for ok := true; ok && now.Before(end); steps = f.Advance(now, nil) {
		var answered [][]byte
		for _, s := range steps {
			switch {
			case s.Body != nil && s.VID == 20:
				answered = append(answered, slices.Clone(s.Body))
			case s.Body != nil && f.peers[high].path(10).state == PathDown:
				probes++
			}
		}
		for _, body := range answered {
			f.Answered(now, high, 20, body, nil)
		}
		now, ok = f.Deadline()
	}
	if s := f.peers[high].path(10).state; s != PathDown || probes < 8 {
		t.Errorf("the path is %v, and was probed %d times in ten seconds; want it down, and about ten", s, probes)
	}
}

// Of the flows of a full link the large ones are held back, and small ones are not; on a link that
// is not full, none is.
func TestSmallFlowsAreNotHeldBack(t *testing.T) {
	network, err := topology.Parse("vbft:2x1x3@10G/1G")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{VIDs: []transport.VID{1}}
	for i := range network.Hosts {
		p.Nodes = append(p.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: 1})
	}
	paths, err := topology.NewPaths(network)
	if err != nil {
		t.Fatal(err)
	}
	e := newDemandEstimator(network)
	for _, c := range []struct {
		rates [3]topology.Rate // in Mbit/s
		want  []bool
	}{
		{[3]topology.Rate{500, 300, 200}, []bool{true, true, false}},
		{[3]topology.Rate{900, 60, 40}, []bool{true, false, false}},
		{[3]topology.Rate{330, 330, 330}, []bool{true, true, true}},
		{[3]topology.Rate{500, 100, 200}, []bool{false, false, false}},
	} {
		var flows traffic.Matrix
		for k, rate := range c.rates {
			flows = append(flows, traffic.Flow{From: k, To: 3 + k, Rate: rate * topology.Mbps})
		}
		if got := e.held(flows, paths, p); !slices.Equal(got, c.want) {
			t.Errorf("%v Mbit/s: held back %v, want %v", c.rates, got, c.want)
		}
	}
}

// The VIDs are the caller's: a failover sorts a list of its own.
func TestFailoverLeavesTheCallersVIDs(t *testing.T) {
	vids := []transport.VID{30, 10, 20}
	f, err := NewFailover(transport.MAC{2, 0, 0, 0, 0, 1}, FailoverConfig{VIDs: vids})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(vids, []transport.VID{30, 10, 20}) {
		t.Errorf("the caller's are %v now", vids)
	}
	vids[0] = 4000
	if !slices.Equal(f.cfg.VIDs, []transport.VID{10, 20, 30}) {
		t.Errorf("the failover's are %v", f.cfg.VIDs)
	}
}

// A peer that is removed while its pair waits to move leaves no timer: it would be told of, and woken
// for, for ever.
func TestRemovedPeerLeavesNoTimer(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	f.SetLink(now, false, nil)
	for _, s := range f.SetLink(now, true, nil) {
		if s.Body != nil && s.VID == 20 {
			f.Answered(now, high, 20, slices.Clone(s.Body), nil) // it has to hold for a while
		}
	}
	if f.peers[high].timer.at == 0 {
		t.Fatal("the pair does not wait")
	}
	f.RemovePeer(high)
	if at, ok := f.Deadline(); ok {
		t.Errorf("something is due at %v", at)
	}
}

// The first probes of all pairs are spread over the whole time between two: by the sum of the two
// addresses, each at a moment of its own.
func TestFirstProbesAreSpread(t *testing.T) {
	const probe = 256 * time.Millisecond
	begin := monotime.At(time.Hour)
	seen := make(map[time.Duration]bool)
	for b := range 256 {
		f, err := NewFailover(transport.MAC{}, FailoverConfig{VIDs: []transport.VID{10}, Probe: probe})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.SetPeer(begin, transport.MAC{0, 0, 0, 0, 0, byte(b)}, 10, nil); err != nil {
			if b == 0 { // the node itself
				seen[0] = true
				continue
			}
			t.Fatal(err)
		}
		at, ok := f.Deadline()
		if wait := at.Sub(begin); !ok || wait < 0 || wait >= probe || seen[wait] {
			t.Errorf("sum %d: the first probe after %v, seen already: %v", b, wait, seen[wait])
		} else {
			seen[wait] = true
		}
	}
}

// A pair has to use another VID in two periods in a row to count as changed from outside.
func TestExternalChangesLastTwoPeriods(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x2")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for i := range network.Hosts {
		p.Nodes = append(p.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: 1})
	}
	c, err := NewController(monotime.At(0), network, p, ControllerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pair := plan.Pair{A: 0, B: 2}
	for i, c2 := range []struct {
		used, want transport.VID
	}{{2, 1}, {1, 1}, {2, 1}, {several, 1}, {2, 2}, {2, 2}} {
		c.adopt(monotime.At(time.Duration(i)*time.Second), observation{vids: map[plan.Pair]transport.VID{pair: c2.used}})
		if got := c.plan.PairVID(0, 2); got != c2.want {
			t.Errorf("period %d, by VID %d: the plan has VID %d, want %d", i, c2.used, got, c2.want)
		}
	}
}

// The pairs of a link are named in words: one alone, some, and some of many.
func TestSharedNamesPairs(t *testing.T) {
	var pairs []plan.Pair
	for b := range 8 {
		pairs = append(pairs, plan.Pair{A: 0, B: b + 1})
	}
	for n, want := range map[int]string{1: "0-1 alone", 2: "pairs 0-1 and 0-2 shared it", 3: "pairs 0-1, 0-2 and 0-3 shared it",
		6: "pairs 0-1, 0-2, 0-3, 0-4, 0-5 and 0-6 shared it", 8: "pairs 0-1, 0-2, 0-3, 0-4, 0-5, 0-6 and 2 more shared it"} {
		if got := shared(pairs[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
