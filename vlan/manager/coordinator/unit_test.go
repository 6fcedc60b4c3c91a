package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func mac(k int) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, byte(k + 1)} }

func planOf(t *testing.T, nodes int) *plan.Plan {
	t.Helper()
	var macs []transport.MAC
	for k := range nodes {
		macs = append(macs, mac(k))
	}
	p, err := plan.RoundRobin(macs, []transport.VID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The decisions of a period are one reason, in one line, as far as a reason goes.
func TestExplain(t *testing.T) {
	decision := func(why string) control.Decision {
		return control.Decision{Change: plan.Change{Pair: plan.Pair{A: 1, B: 2}, From: 1, To: 2}, Why: why}
	}
	first, second := decision("a"), decision("b")
	if got, want := explain([]control.Decision{first, second}), first.String()+"; "+second.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var many []control.Decision
	for range 100 {
		many = append(many, decision(strings.Repeat("x", 50)))
	}
	got := explain(many)
	one := len(many[0].String())
	shown := strings.Count(got, "xx pair") + strings.Count(got, "; pair") + 1
	if !strings.HasSuffix(got, fmt.Sprintf("; and %d more", len(many)-shown)) || len(got) > api.MaxReason || len(got) < api.MaxReason-one-40 {
		t.Errorf("%d bytes, %d shown: %s", len(got), shown, got)
	}
}

// Errors name eight nodes, and count the others.
func TestListSome(t *testing.T) {
	var items []string
	for k := range 10 {
		items = append(items, fmt.Sprint(k))
	}
	for n, want := range map[int]string{0: "", 2: "0, 1", 8: "0, 1, 2, 3, 4, 5, 6, 7", 9: "0, 1, 2, 3, 4, 5, 6, 7, and 1 more", 10: "0, 1, 2, 3, 4, 5, 6, 7, and 2 more"} {
		if got := listSome(items[:n], ", "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// A control leaves out what other nodes have counted, a counter without a destination and one of the
// node itself among them.
func TestControlIgnoresCountersOfStrangers(t *testing.T) {
	at := monotime.At(1)
	m := &member{table: &api.Table{MAC: mac(1)}, counted: at, counters: api.Counters{Nodes: []api.Sent{
		{VID: 1, Bytes: 1}, {Dst: transport.Broadcast, VID: 1, Bytes: 2}, {Dst: mac(9), VID: 1, Bytes: 3}, {Dst: mac(1), VID: 1, Bytes: 4},
		{Dst: mac(0), VID: 7, Bytes: 5}, {Dst: mac(0), VID: 2, Bytes: 6}, {Dst: mac(2), VID: 1, Bytes: 7}}}}
	got := sampleOf(m, numbersOf(planOf(t, 3)))
	want := []control.SentTo{{Node: 0, VID: 7, Bytes: 5}, {Node: 0, VID: 2, Bytes: 6}, {Node: 2, VID: 1, Bytes: 7}}
	if got.Node != 1 || got.At != at || fmt.Sprint(got.Sent) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v of node 1", got, want)
	}
}

// A plan with fewer VIDs takes no counters away: to a controller that would be a manager which has
// begun anew. Nor do they come back, with all that they have counted, with a plan of more VIDs.
func TestObserveGoesOnWithAPlanOfFewerVIDs(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x2")
	if err != nil {
		t.Fatal(err)
	}
	macs := []transport.MAC{mac(0), mac(1), mac(2), mac(3)}
	plans := make([]*plan.Plan, 3)
	for k, vids := range [][]transport.VID{{1, 2}, {1}, {1, 2}} {
		if plans[k], err = plan.RoundRobin(macs, vids); err != nil {
			t.Fatal(err)
		}
	}
	const rate = 1 << 24 // bytes a second to node 2, by VID 2 and, with the second plan, by VID 1
	sent := make(map[transport.VID]uint64)
	now := monotime.At(time.Hour)
	core, err := control.NewController(now, network, plans[0], control.ControllerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for second := range 6 {
		p := plans[second/2]
		if err := core.Replace(p); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		vid := transport.VID(2 - second/2%2)
		extra := uint64(second * second) // so that rates differ, and the last one is not the one before
		sent[vid] += rate * (1 + extra)
		m := &member{table: &api.Table{MAC: mac(0)}, counted: now}
		for vid, bytes := range sent {
			m.counters.Nodes = append(m.counters.Nodes, api.Sent{Dst: mac(2), VID: vid, Bytes: bytes})
		}
		before := core.Traffic()
		if err := core.Observe(sampleOf(m, numbersOf(p))); err != nil {
			t.Fatal(err)
		}
		core.Advance(now, nil)
		if second < 2 {
			continue // no rate before, and the first one
		}
		want := (before[0].Rate + topology.Rate(8*rate*(1+extra))) / 2
		if got := core.Traffic(); len(got) != 1 || got[0].Rate != want {
			t.Errorf("second %d: %v, want %v on average", second, got, want)
		}
	}
}

// Rates are those of the time between two readings of the same node: one that is read late, as its
// manager hangs, does not make others' wrong.
func TestObserveByTheTimeOfEachReading(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x1")
	if err != nil {
		t.Fatal(err)
	}
	const rate = 1 << 24 // bytes a second, of both
	p, begun := planOf(t, 2), monotime.At(time.Hour)
	c := &loop{plan: p, nodes: []*member{{table: &api.Table{MAC: mac(0)}}, {table: &api.Table{MAC: mac(1)}}}}
	if c.core, err = control.NewController(begun, network, p, control.ControllerConfig{}); err != nil {
		t.Fatal(err)
	}
	for second := range 6 {
		for k, n := range c.nodes {
			n.counted = begun.Add(time.Duration(second+1) * time.Second)
			if k == 1 && second%2 == 0 { // it hangs
				n.counted = n.counted.Add(900 * time.Millisecond)
			}
			bytes := rate * n.counted.Sub(begun).Seconds()
			n.counters.Nodes = []api.Sent{{Dst: mac(1 - k), VID: 1, Bytes: uint64(bytes)}}
		}
		if err := c.observe(); err != nil {
			t.Fatal(err)
		}
		c.core.Advance(c.nodes[1].counted, nil)
		for _, f := range c.core.Traffic() {
			if got := float64(f.Rate) / 8 / rate; got < 0.999 || got > 1.001 {
				t.Errorf("second %d: %v, want 1.00 of what it sends", second, got)
			}
		}
	}
	if len(c.core.Traffic()) != 2 {
		t.Errorf("traffic %v", c.core.Traffic())
	}
}

// What the controller notices is logged.
func TestAdvanceLogsNotices(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x1")
	if err != nil {
		t.Fatal(err)
	}
	for v := range network.VLANs {
		network.VLANs[v].Links = nil // all cables are lost
	}
	var told strings.Builder
	p, now := planOf(t, 2), monotime.At(time.Hour)
	n := &member{table: &api.Table{MAC: mac(0)}}
	c := &loop{plan: p, nodes: []*member{n}, options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	if c.core, err = control.NewController(now, network, p, control.ControllerConfig{}); err != nil {
		t.Fatal(err)
	}
	for second := range uint64(4) {
		now = now.Add(time.Second)
		n.counted, n.counters.Nodes = now, []api.Sent{{Dst: mac(1), VID: 1, Bytes: 1000 * second}}
		if err := c.observe(); err != nil {
			t.Fatal(err)
		}
		c.advance(now)
	}
	if strings.Count(told.String(), "level=WARN msg=noticed what=\"no VID of the plan connects ") != 1 {
		t.Errorf("logged %q", told.String())
	}
}

// A reading has the time of its own.
func TestReadCounters_NotesWhen(t *testing.T) {
	n := &member{client: manager.NewClient(manager.Addr{Network: "unix", Address: "/nobody"}, nil)}
	before := clock.Now()
	if n.readCounters(t.Context()); n.err == nil || n.counted.Before(before) || n.counted.After(clock.Now()) {
		t.Errorf("at %v: %v, want it between %v and now", n.counted, n.err, before)
	}
}

// A node whose counters cannot be used is named, and so is one that could not be read.
func TestObserveNamesNodes(t *testing.T) {
	network, err := topology.Parse("flat:2")
	if err != nil {
		t.Fatal(err)
	}
	macs := []transport.MAC{mac(0), mac(1)}
	two, err := plan.RoundRobin(macs, []transport.VID{1})
	if err != nil {
		t.Fatal(err)
	}
	core, err := control.NewController(monotime.At(0), network, two, control.ControllerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	client := func(path string) *manager.Client {
		return manager.NewClient(manager.Addr{Network: "unix", Address: path}, nil)
	}
	lost := errors.New("it is lost")
	c := &loop{core: core, plan: planOf(t, 3), nodes: []*member{
		{client: client("/a"), table: &api.Table{MAC: mac(0)}},
		{client: client("/b"), table: &api.Table{MAC: mac(2)}}, // the network has no such node
		{client: client("/c"), err: lost},
	}}
	err = c.observe()
	if !errors.Is(err, control.ErrBadSample) || !strings.Contains(err.Error(), "manager unix:/b: ") || !errors.Is(err, lost) || strings.Contains(err.Error(), "/a") {
		t.Errorf("%v", err)
	}
}

// Without any node that can be read there is no common plan.
func TestNoNodeCanBeRead(t *testing.T) {
	c := &loop{nodes: []*member{{err: errors.New("lost")}, {err: errors.New("lost")}}}
	if p, err := c.common(); p != nil || !errors.Is(err, api.ErrUnreachable) || !strings.Contains(err.Error(), "none of 2 answers") {
		t.Errorf("%v, %v", p, err)
	}
	c.nodes[1] = &member{client: manager.NewClient(manager.Addr{Network: "unix", Address: "/a"}, nil), table: &api.Table{MAC: mac(1)}}
	if _, err := c.common(); !errors.Is(err, api.ErrNoPlan) {
		t.Errorf("a node without a plan: %v", err)
	}
}

// Nodes that cannot be read are told of once, until all can be read again.
func TestTroubleIsToldOnce(t *testing.T) {
	var told strings.Builder
	c := &loop{options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	for _, err := range []error{errors.New("lost"), errors.New("lost"), nil, nil} {
		c.trouble(err)
	}
	if strings.Count(told.String(), "level=WARN msg=\"some nodes cannot be read") != 1 || strings.Count(told.String(), "level=INFO msg=\"all nodes can be read again") != 1 {
		t.Errorf("%s", told.String())
	}
}

// What is wrong at a node, and which nodes it cannot reach, is in one error; what is well is in none.
func TestUnwellNamesNodes(t *testing.T) {
	client := manager.NewClient(manager.Addr{Network: "unix", Address: "/a"}, nil)
	node := func(name string, h api.Health) *member {
		return &member{client: client, table: &api.Table{Name: name}, health: h}
	}
	if err := unwell([]*member{node("n0", api.Health{OK: true}), {err: errors.New("lost")}}); err != nil {
		t.Errorf("all well: %v", err)
	}
	err := unwell([]*member{{err: errors.New("lost")}, node("n0", api.Health{Why: "disk full"}), node("n1", api.Health{OK: true, PathsDown: 1}),
		node("n2", api.Health{OK: true, PathsDown: 2, Unreachable: []string{"n0"}}), node("n3", api.Health{OK: true})})
	if !errors.Is(err, ErrUnwell) {
		t.Fatal(err)
	}
	for _, want := range []string{"n0 at unix:/a: disk full", "n1 at unix:/a: paths down: 1", "n2 at unix:/a: no path to n0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "n3") {
		t.Error(err)
	}
}

// A node that is lost does not keep the counters of those behind it from the controller.
func TestObserveGoesOnAfterALostNode(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x1")
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, 2)
	c := &loop{plan: p}
	if c.core, err = control.NewController(monotime.At(0), network, p, control.ControllerConfig{}); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	twice := []api.Sent{{Dst: mac(0), VID: 1, Bytes: 5}, {Dst: mac(0), VID: 1, Bytes: 6}} // no controller takes that
	c.nodes = []*member{{err: lost}, {client: manager.NewClient(manager.Addr{Network: "unix", Address: "/a"}, nil),
		table: &api.Table{MAC: mac(1)}, counters: api.Counters{Nodes: twice}}}
	if err := c.observe(); !errors.Is(err, lost) || !errors.Is(err, control.ErrBadSample) {
		t.Errorf("%v, want what is wrong with each", err)
	}
}

// A report asks for the route of each pair: that of one among thousands is found without a look at
// each. Who looks at them from one end on finds another route of the same node, which lies where no
// order has it.
func TestVIDTo_OfManyRoutes(t *testing.T) {
	var routes []api.Route
	for i := range plan.MaxNodes {
		routes = append(routes, api.Route{Dst: transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, VID: transport.VID(1 + i%4)})
	}
	routes = append(routes, api.Route{Dst: transport.Broadcast, VID: 9})
	m := &member{table: &api.Table{Routes: slices.Clone(routes)}}
	for _, r := range routes {
		if vid := m.vidTo(r.Dst); vid != r.VID {
			t.Fatalf("to %v by VID %d, want %d", r.Dst, vid, r.VID)
		}
	}
	if vid := m.vidTo(transport.MAC{2, 1}); vid != 9 {
		t.Errorf("to a node that has no route by VID %d, want the default's 9", vid)
	}
	for i := 2; i < len(routes)-1; i++ { // a binary search for the second looks at the first
		other := api.Route{Dst: routes[i].Dst, VID: 7}
		m.table.Routes[0], m.table.Routes[len(routes)-1] = other, other
		if vid := m.vidTo(routes[i].Dst); vid != routes[i].VID {
			t.Fatalf("to %v by VID %d, want %d: it was looked for from an end on", routes[i].Dst, vid, routes[i].VID)
		}
	}
	if vid := (&member{table: &api.Table{}}).vidTo(mac(1)); vid != 0 {
		t.Errorf("without a route by VID %d, want untagged", vid)
	}
}

// A dry run of a plan in place of another one, while programs or failovers have chosen all routes of
// a node, looks at each of these once, as it takes the node's table, and not at all of them for each
// route: they may be gone from the table by then.
func TestWouldChange_OfManyPairs(t *testing.T) {
	macs := make([]transport.MAC, plan.MaxNodes)
	for i := range macs {
		macs[i] = transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}
	}
	p, err := plan.RoundRobin(macs, []transport.VID{2, 1})
	if err != nil {
		t.Fatal(err)
	}
	p.Nodes = slices.Clone(p.Nodes)
	for i := range p.Nodes {
		p.Nodes[i].VID = 2 // of all pairs: each route changes, but for those that were chosen
	}
	g := &group{plan: p}
	for _, laidOver := range []int{0, 1, 1000, plan.MaxNodes - 1} {
		table := &api.Table{MAC: macs[0]}
		for _, mac := range macs {
			table.Routes = append(table.Routes, api.Route{Dst: mac, VID: 1})
		}
		for _, peer := range macs[len(macs)-laidOver:] {
			table.Pairs = append(table.Pairs, api.Pair{Change: api.Change{A: macs[0], B: peer, VID: 1}, By: "failover"})
		}
		m := &member{}
		m.take(table)
		m.table.Pairs = nil
		if routes, want := g.wouldChange(m), len(macs)-1-laidOver; routes != want {
			t.Errorf("%d routes chosen: %d would change, want %d", laidOver, routes, want)
		}
	}
}

// What is laid over a plan is what programs and failovers have chosen for the node itself.
func TestTake_LaidOver(t *testing.T) {
	m := &member{}
	pair := func(a, b int, by string, covered bool) api.Pair {
		return api.Pair{Change: api.Change{A: mac(a), B: mac(b), VID: 2}, By: by, Covered: covered}
	}
	m.take(&api.Table{MAC: mac(1), Pairs: []api.Pair{
		pair(1, 2, "session 7", false), pair(3, 1, "failover", false), pair(1, 4, byOperator, false),
		pair(1, 5, "failover", true), pair(6, 7, "failover", false),
	}})
	for k := range 8 {
		if got, want := m.laidOver[mac(k)], k == 2 || k == 3; got != want {
			t.Errorf("node %d: %v, want %v", k, got, want)
		}
	}
}

// A commit is waited for as long as a manager waits for its programs, and longer, though the lease
// be shorter; a manager that does not answer for as long as a phase lasts is not called unreachable,
// and the caller's own end of waiting is not called the lease's.
func TestPhasesWaitForTheirAnswers(t *testing.T) {
	never := time.Hour
	for name, c := range map[string]struct {
		act           string
		lease, answer time.Duration
		caller        time.Duration
		want          string // empty: no error
	}{
		"commit, one program stopped":  {"commit", 200 * time.Millisecond, api.ConfirmWait, never, ""},
		"commit, a long lease":         {"commit", 10 * time.Second, 9 * time.Second, never, ""},
		"commit, no answer":            {"commit", 200 * time.Millisecond, never, never, "did not answer within 1.5s (give a longer --lease)"},
		"commit, none in a long lease": {"commit", 10 * time.Second, never, never, "did not answer within the lease of 10s (give a longer --lease)"},
		"prepare, no answer":           {"prepare", time.Second, 2 * time.Second, never, "did not answer within the lease of 1s (give a longer --lease)"},
		"ask, no answer":               {"ask", time.Second, 2 * time.Second, never, "did not answer within the lease of 1s (give a longer --lease)"},
		"ask, the caller gives up":     {"ask", time.Second, 2 * time.Second, time.Millisecond, "manager unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.caller)
				defer cancel()
				addr := manager.Addr{Network: "unix", Address: "/run/m0"}
				g := newGroup([]*manager.Client{manager.NewClient(addr, nil)}, nil, ApplyOptions{Lease: c.lease})
				err := g.each(ctx, c.act, func(ctx context.Context, _ *member) error {
					select {
					case <-ctx.Done():
						return fmt.Errorf("%w: %w", api.ErrUnreachable, ctx.Err())
					case <-time.After(c.answer):
						return nil
					}
				})
				switch {
				case c.want == "" && err != nil:
					t.Error(err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, api.ErrUnreachable)):
					t.Errorf("%v, want %q", err, c.want)
				case c.want != "" && c.caller == never && strings.Contains(err.Error(), "unreachable"):
					t.Errorf("%v: it may be well", err)
				}
			})
		})
	}
}

// A computation is not waited for once its context has ended, also if it has ended before.
func TestUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !untilDone(t.Context(), func() { time.Sleep(time.Minute) }) {
			t.Error("it is done, and is said not to be")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, after := range []time.Duration{time.Second, 0} {
			began := time.Now()
			if untilDone(ctx, func() { time.Sleep(time.Minute) }) || time.Since(began) != after {
				t.Errorf("waited for %v, want %v, and that it is not done", time.Since(began), after)
			}
		}
		time.Sleep(time.Minute)
	})
}
