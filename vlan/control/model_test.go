package control_test

import (
	"math"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// model is a network in which flows share links as TCP does: fairly, and none more than it wants.
// Its nodes count what they send. It runs in steps of virtual time, with a Controller at the end of
// each period.
type model struct {
	top     *topology.Topology
	plan    *plan.Plan
	want    traffic.Matrix
	now     monotime.Time
	bytes   []map[counterKey]float64 // by node
	control *control.Controller
	tell    func(*control.Sample) // of failovers; may be nil

	rates   []float64 // of want's flows, until it or plan changes
	ratesOf *plan.Plan
}

type counterKey struct {
	to  int
	vid transport.VID
}

const period = time.Second

func newModel(top *topology.Topology, plan *plan.Plan, cfg control.ControllerConfig) *model {
	m := &model{top: top, plan: plan, now: monotime.At(time.Hour), bytes: make([]map[counterKey]float64, len(top.Hosts))}
	for i := range m.bytes {
		m.bytes[i] = make(map[counterKey]float64)
	}
	cfg.Period = period
	var err error
	if m.control, err = control.NewController(m.now, top, plan, cfg); err != nil {
		panic(err)
	}
	return m
}

// run lets d pass.
func (m *model) run(d time.Duration) {
	if m.ratesOf != m.plan {
		m.rates, m.ratesOf = maxMin(m.top, m.plan, m.want), m.plan
	}
	for i, rate := range m.rates {
		f := m.want[i]
		m.bytes[f.From][counterKey{f.To, m.plan.PairVID(f.From, f.To)}] += rate * d.Seconds() / 8
	}
	m.now = m.now.Add(d)
}

// wants changes what is wanted.
func (m *model) wants(t traffic.Matrix) {
	if !slices.Equal(t, m.want) {
		m.want, m.ratesOf = t, nil
	}
}

// sample is what a node's counters show.
func (m *model) sample(node int) control.Sample {
	s := control.Sample{Node: node, At: m.now}
	for k, n := range m.bytes[node] {
		s.Sent = append(s.Sent, control.SentTo{Node: k.to, VID: k.vid, Bytes: uint64(n)})
	}
	if m.tell != nil {
		m.tell(&s)
	}
	return s
}

// decide ends a period: counters are read, but those of missing nodes, and what is decided is done.
func (m *model) decide(missing ...int) []control.Decision {
	for node := range m.top.Hosts {
		if !slices.Contains(missing, node) {
			if err := m.control.Observe(m.sample(node)); err != nil {
				panic(err)
			}
		}
	}
	decisions := m.control.Advance(m.now, nil)
	for _, d := range decisions {
		m.set(d.Change.Pair, d.Change.To)
	}
	return decisions
}

func (m *model) set(p plan.Pair, vid transport.VID) {
	plan, err := m.plan.With(map[plan.Pair]transport.VID{p: vid})
	if err != nil {
		panic(err)
	}
	m.plan = plan
}

// worst is the utilisation of the worst link by what is wanted, of which nobody but the model
// knows. Flows that a host's cable could not carry beside its others are not wanted.
func (m *model) worst(plan *plan.Plan) float64 { return worstOf(m.top, m.natural(), plan) }

// natural is what would flow if links between switches had no limits.
func (m *model) natural() traffic.Matrix {
	t := slices.Clone(m.want)
	for i, rate := range maxMin(m.top, nil, m.want) {
		t[i].Rate = topology.Rate(rate)
	}
	return t
}

func worstOf(top *topology.Topology, want traffic.Matrix, plan *plan.Plan) float64 {
	load, err := want.Load(top, plan.PairVID)
	if err != nil {
		panic(err)
	}
	_, u := load.MaxLink()
	return u
}

// maxMin is what each flow gets, by the definition: of all places that are not full, the one with
// the least left for each of its flows is full first; these flows get that, and so on. Without a
// plan, cables of hosts alone are places.
func maxMin(top *topology.Topology, plan *plan.Plan, want traffic.Matrix) []float64 {
	paths, err := topology.NewPaths(top)
	if err != nil {
		panic(err)
	}
	left := map[int]float64{} // by place: hops, then cables up and down, then each flow's own wish
	at := map[int][]int{}
	add := func(place, flow int, capacity topology.Rate) {
		left[place] = float64(capacity)
		at[place] = append(at[place], flow)
	}
	hops, hosts := 2*len(top.Links), len(top.Hosts)
	for i, f := range want {
		if plan != nil {
			path, err := paths.Append(nil, f.From, f.To, plan.PairVID(f.From, f.To))
			if err != nil {
				panic(err)
			}
			for _, h := range path {
				add(h.Index(), i, top.Links[h.Link].Rate)
			}
		}
		add(hops+f.From, i, top.Hosts[f.From].Rate)
		add(hops+hosts+f.To, i, top.Hosts[f.To].Rate)
		add(hops+2*hosts+i, i, f.Rate)
	}
	share := slices.Repeat([]float64{-1}, len(want))
	places := make([]int, 0, len(at))
	for p := range at {
		places = append(places, p)
	}
	slices.Sort(places)
	for {
		first, least := -1, math.Inf(1)
		for _, p := range places {
			if n := growing(at[p], share); n > 0 && left[p]/float64(n) < least {
				first, least = p, left[p]/float64(n)
			}
		}
		if first < 0 {
			return share
		}
		for _, p := range places {
			for _, i := range at[p] {
				if share[i] < 0 && slices.Contains(at[first], i) {
					left[p] -= least
				}
			}
		}
		for _, i := range at[first] {
			if share[i] < 0 {
				share[i] = least
			}
		}
	}
}

func growing(flows []int, share []float64) (n int) {
	for _, i := range flows {
		if share[i] < 0 {
			n++
		}
	}
	return n
}
