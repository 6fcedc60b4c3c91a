package manager_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"

	"github.com/rawlane/rawlane/vlan/plan"
)

// nodes starts the managers of n nodes.
func nodes(t testing.TB, n, vids int) (all []*node, clients []*manager.Client) {
	t.Helper()
	for k := range n {
		all = append(all, start(t, k, cyclic(t, n, vids), t.TempDir()))
		clients = append(clients, all[k].client)
	}
	return all, clients
}

// turned is a cyclic plan whose defaults begin with another VID, so that all pairs change.
func turned(t testing.TB, n, vids, by int) *plan.Plan {
	t.Helper()
	p := cyclic(t, n, vids)
	for i := range p.Nodes {
		p.Nodes[i].VID = p.VIDs[(i+by)%vids]
	}
	return p
}

// Programs on all nodes send by the new plan when Apply returns, and both ends agree.
func TestApply(t *testing.T) {
	all, clients := nodes(t, 4, 3)
	var sessions []*manager.Session
	for _, n := range all {
		sessions = append(sessions, n.dial(t, manager.Dialer{}))
	}
	p := turned(t, 4, 3, 1)
	r, err := manager.Apply(t.Context(), clients, p, manager.ApplyOptions{Reason: "better"})
	if err != nil {
		t.Fatal(err)
	}
	for a, s := range sessions {
		for b := range sessions {
			if a != b && vid(s.Table(), b) != p.PairVID(a, b) {
				t.Errorf("node %d sends to %d by VID %d, want %d", a, b, vid(s.Table(), b), p.PairVID(a, b))
			}
		}
	}
	if r.Pairs != 6 || r.DisagreedMost <= 0 || r.DisagreedMost < r.DisagreedLeast || r.WorstPair == "" {
		t.Errorf("%+v", r)
	}
	for k, o := range r.Nodes {
		if o.State != manager.NodeChanged || o.MAC != mac(k) || o.Routes == 0 || o.Late != 0 || o.Error != "" {
			t.Errorf("node %d: %+v", k, o)
		}
	}
	l, err := clients[2].Log(t.Context())
	if err != nil || l.Entries[len(l.Entries)-1].Reason != "better" {
		t.Errorf("log %+v, %v", l, err)
	}

	// Back, and forth again.
	back, _, err := manager.Previous(t.Context(), clients)
	if err != nil || textOf(t, back) != textOf(t, cyclic(t, 4, 3)) {
		t.Fatalf("the plan before: %v, %v", back, err)
	}
	if r, err = manager.Apply(t.Context(), clients, back, manager.ApplyOptions{}); err != nil || r.Pairs != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if again, _, err := manager.Previous(t.Context(), clients); err != nil || textOf(t, again) != textOf(t, p) {
		t.Errorf("the plan before that: %v, %v", again, err)
	}
	if r, err = manager.Apply(t.Context(), clients, back, manager.ApplyOptions{}); err != nil || r.Pairs != 0 || r.DisagreedMost != 0 {
		t.Errorf("the same again: %+v, %v", r, err)
	}
}

// What cannot be applied changes no node.
func TestApplyRefuses(t *testing.T) {
	all, clients := nodes(t, 4, 3)
	dead := start(t, 3, nil, t.TempDir())
	dead.stop()
	nobody := manager.NewClient(manager.Addr{Network: "unix", Address: dead.socket}, nil)
	twin := start(t, 1, cyclic(t, 4, 3), t.TempDir())
	stranger := start(t, 9, nil, t.TempDir())
	bad := turned(t, 4, 3, 1)
	bad.Nodes[1].MAC = bad.Nodes[0].MAC
	for _, c := range []struct {
		name     string
		managers []*manager.Client
		plan     *plan.Plan
		is       error
		text     string
	}{
		{"no managers", nil, turned(t, 4, 3, 1), nil, "no managers (want one for each node of the plan)"},
		{"two nodes with one MAC", clients, bad, plan.ErrInvalid, "is node 0's, too"},
		{"one-sided", clients[:3], turned(t, 4, 3, 1), manager.ErrOneSided, "the plan changes pairs of nodes whose managers are not given: 02:00:00:00:00:04 (give them all, or --partial"},
		{"two managers of one node", append(clients[:3:3], twin.client), turned(t, 4, 3, 1), nil, "both are of node 02:00:00:00:00:02"},
		{"a manager of no node of the plan", append(clients[:4:4], stranger.client), turned(t, 4, 3, 1), plan.ErrUnknownNode, "its node, 02:00:00:00:00:0a, is not in the plan"},
		{"one that is down", append(clients[:3:3], nobody), turned(t, 4, 3, 1), manager.ErrUnreachable, dead.socket},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := manager.Apply(t.Context(), c.managers, c.plan, manager.ApplyOptions{})
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want %v with %q", err, c.is, c.text)
			}
			for _, o := range r.Nodes {
				if o.State != manager.NodeUnchanged {
					t.Errorf("%+v", o)
				}
			}
			for k, n := range all {
				if planOf(t, n.Server) != textOf(t, cyclic(t, 4, 3)) {
					t.Errorf("node %d has changed", k)
				}
			}
		})
	}
	// What is one-sided can be asked for.
	if _, err := manager.Apply(t.Context(), clients[:3], turned(t, 4, 3, 1), manager.ApplyOptions{Partial: true}); err != nil {
		t.Errorf("partial: %v", err)
	}
}

// Two coordinators at once: one wins, or neither; all nodes have the same plan in the end.
func TestApplyTwiceAtOnce(t *testing.T) {
	for range 5 {
		all, clients := nodes(t, 3, 3)
		errs := make(chan error)
		for by := range 2 {
			go func() {
				_, err := manager.Apply(t.Context(), clients, turned(t, 3, 3, 1+by), manager.ApplyOptions{})
				errs <- err
			}()
		}
		failed := 0
		for range 2 {
			if err := <-errs; err != nil {
				failed++
				if !errors.Is(err, manager.ErrBusy) && !errors.Is(err, manager.ErrChanged) {
					t.Error(err)
				}
			}
		}
		plan := planOf(t, all[0].Server)
		for k, n := range all {
			if got := planOf(t, n.Server); got != plan || failed == 2 && got != textOf(t, cyclic(t, 3, 3)) {
				t.Errorf("node %d has another plan than node 0 (%d failed): %s", k, failed, got)
			}
		}
	}
}

var seeds = flag.Int("apply.seeds", 25, "random group changes to try")

// A node may refuse, be slow, be too slow, or die at any step of writing. If Apply succeeds all have the new plan; if not, all that live
// have the old one. Whoever died comes back with the old one or the new one, and applying again mends it.
func TestApplyWithFaults(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { t.Parallel(); applyWithFaults(t, seed) })
	}
}

func applyWithFaults(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	const n, vids = 4, 3
	var all []*node
	var clients []*manager.Client
	dirs := make([]string, n)
	for k := range n {
		dirs[k] = t.TempDir()
		all = append(all, start(t, k, cyclic(t, n, vids), dirs[k]))
		clients = append(clients, all[k].client)
	}
	lease := 300 * time.Millisecond
	faults, died := injectFaults(rng, all, lease)
	old, next := cyclic(t, n, vids), turned(t, n, vids, 1)
	report, err := manager.Apply(t.Context(), clients, next, manager.ApplyOptions{Lease: lease})
	for k := range n {
		if died[k] {
			all[k].stop()
			all[k] = start(t, k, nil, dirs[k])
			clients[k] = all[k].client
		}
		all[k].OnStep(nil)
		got := planOf(t, all[k].Server)
		isOld, isNew := got == textOf(t, old), got == textOf(t, next)
		switch {
		case err == nil && !isNew:
			t.Errorf("Apply succeeded, and node %d has %s", k, got)
		case err != nil && died[k] && !isOld && !isNew:
			t.Errorf("node %d died, and has neither plan: %s", k, got)
		case err != nil && !died[k] && !isOld:
			t.Errorf("Apply failed, and node %d, which lives, has %s", k, got)
		}
		if state := report.Nodes[k].State; !died[k] && (state == manager.NodeUnknown || (state == manager.NodeChanged) != isNew) {
			t.Errorf("node %d: report says %v, it has the new plan: %v", k, state, isNew)
		}
	}
	if _, again := manager.Apply(t.Context(), clients, next, manager.ApplyOptions{Lease: 5 * time.Second}); again != nil {
		t.Errorf("again: %v", again)
	}
	for k, m := range all {
		if planOf(t, m.Server) != textOf(t, next) {
			t.Errorf("again: node %d has %s", k, planOf(t, m.Server))
		}
	}
	if t.Failed() {
		t.Logf("faults %q, Apply: %v, report %+v; run with -run 'TestApplyWithFaults/seed=%d$'", faults, err, report, seed)
	}
}

// injectFaults has some managers die, refuse or be slow at some step. It returns what, and who has died, once they have.
func injectFaults(rng *rand.Rand, all []*node, lease time.Duration) (faults []string, died []bool) {
	faults, died = make([]string, len(all)), make([]bool, len(all))
	for k := range all {
		if rng.IntN(2) == 0 {
			continue
		}
		step := manager.Steps[rng.IntN(len(manager.Steps))]
		kind := []string{"die", "refuse", "slow", "too slow"}[rng.IntN(4)]
		faults[k] = kind + " at " + step
		all[k].OnStep(func(s string) error {
			if s != step {
				return nil
			}
			switch kind {
			case "die":
				died[k] = true
				return all[k].Kill()
			case "refuse":
				return errors.New("no space left on device")
			case "slow":
				time.Sleep(20 * time.Millisecond)
			case "too slow":
				time.Sleep(lease + 50*time.Millisecond)
			}
			return nil
		})
	}
	return faults, died
}

// A slow program holds the answer up for a bounded time, and is counted.
func TestApplyCountsLatePrograms(t *testing.T) {
	all, clients := nodes(t, 2, 2)
	s, g := fenced(t, all[0], 10*time.Second, nil)
	g.look = func() transport.VID { return vid(s.Table(), 1) }
	block := make(chan struct{})
	g.inside = func() { <-block }
	r, err := manager.Apply(t.Context(), clients, turned(t, 2, 2, 1), manager.ApplyOptions{})
	close(block)
	if err != nil || r.Nodes[0].Late != 1 || r.Nodes[1].Late != 0 {
		t.Errorf("%+v, %v; want one late program on node 0", r, err)
	}
	eventually(t, "it follows", func() bool { return vid(s.Table(), 1) == 2 })
}

func TestParseAddrs(t *testing.T) {
	addrs, err := manager.ParseAddrs("list", strings.NewReader("# managers\nunix:/run/a.sock\n\n /run/b.sock # b\nhost:7\ntcp:[::1]:7\n"))
	if err != nil || fmt.Sprint(addrs) != "[unix:/run/a.sock unix:/run/b.sock host:7 [::1]:7]" {
		t.Errorf("%v, %v", addrs, err)
	}
	for _, bad := range []string{"unix:", "host", ":7", "host:", "tcp:x"} {
		if _, err := manager.ParseAddrs("list", strings.NewReader("\n"+bad)); err == nil || !strings.HasPrefix(err.Error(), "list: line 2: manager address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What is no list of managers is said to be none, by line, without what is in it.
func TestParseAddrsRefusesOtherFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a long line", "unix:/run/a.sock\n" + strings.Repeat("x", 1<<20), "list: line 2: longer than 4096 bytes (want a list of managers: unix:PATH or HOST:PORT on each line)"},
		{"a long first line", strings.Repeat("/", 1<<17), "list: line 1: longer than 4096 bytes"},
		{"a program", "\x7fELF\x02\x01/lib", "list: line 1: not text (want a list of managers"},
		{"not UTF-8", "# fine\n\n/run/\xff", "list: line 3: not text"},
		{"an escape", "host:7\n/run/\x1b[31m", "list: line 2: not text"},
	} {
		if addrs, err := manager.ParseAddrs("list", strings.NewReader(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, addrs, err, c.want)
		}
	}
	if addrs, err := manager.ParseAddrs("list", strings.NewReader("\thost:7\t# tab, and CR LF\r\n/run/"+strings.Repeat("a", 1000)+"\n")); err != nil || len(addrs) != 2 {
		t.Errorf("%v, %v", addrs, err)
	}
}

func ExampleApply() {
	// Each node has its manager; here there is one node.
	socket, end := exampleManager()
	defer end()
	client := manager.NewClient(manager.Addr{Network: "unix", Address: socket}, nil)
	defer client.Close()
	plan, err := plan.Parse("plan.yaml", strings.NewReader(`
vids: [1, 2]
nodes:
  - {mac: "02:00:00:00:00:01", vid: 2}
  - {mac: "02:00:00:00:00:02", vid: 1}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = manager.Apply(context.Background(), []*manager.Client{client}, plan, manager.ApplyOptions{})
	fmt.Println(err)
	report, err := manager.Apply(context.Background(), []*manager.Client{client}, plan, manager.ApplyOptions{Partial: true})
	fmt.Println(report.Nodes[0].State, err)
	// Output:
	// apply: one-sided change: the plan changes pairs of nodes whose managers are not given: 02:00:00:00:00:02 (give them all, or --partial if those nodes will be changed otherwise)
	// changed <nil>
}
