package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"

	"github.com/rawlane/rawlane/vlan/plan"
)

var vbft16 = filepath.Join("..", "..", "..", "..", "examples", "vbft16.yaml")

// The example is what its comments say: the paper's plan and network. Source: VFREC §2.4.
func TestRouteExampleIsThePapersPlan(t *testing.T) {
	p, err := cli.ReadPlan(t.Context(), vbft16)
	if err != nil {
		t.Fatal(err)
	}
	var macs []transport.MAC
	for _, n := range p.Nodes {
		macs = append(macs, n.MAC)
	}
	want, err := plan.RoundRobin(macs, []transport.VID{1, 2, 3, 4})
	if err != nil || len(macs) != 16 || !plan.Diff(p, want).Empty() || p.Topology != "vbft:4x4x4" {
		t.Errorf("%v: %+v, want %+v", err, p, want)
	}

	var r routeResult
	out, errs, status := command(t, "route", "show", vbft16, "--json")
	if err := json.Unmarshal([]byte(out), &r); status != cli.ExitDone || errs != "" || err != nil {
		t.Fatalf("status %d: %s %v", status, errs, err)
	}
	if len(r.Nodes) != 16 || len(r.Pairs) != 120 || len(r.Links) != 16 {
		t.Errorf("%d nodes, %d pairs, %d links", len(r.Nodes), len(r.Pairs), len(r.Links))
	}
	// Figure 5(a): these collide where they meet.
	for _, c := range []struct {
		pairs [][2]int
		link  string
	}{{[][2]int{{2, 8}, {6, 9}}, "leaf2-top2"}, {[][2]int{{3, 12}, {7, 13}, {11, 14}}, "leaf3-top3"}} {
		for _, pair := range c.pairs {
			if !carries(r.Links, c.link, pair) {
				t.Errorf("%s does not carry %v", c.link, pair)
			}
		}
	}
	// As the comment at its end has it, 6-9 by VID 1 parts the first two.
	moved, err := p.With(map[plan.Pair]transport.VID{{A: 6, B: 9}: 1})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "moved.yaml")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moved.WriteTo(f); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	out, _, _ = command(t, "route", "show", file, "--json")
	r = routeResult{}
	if err := json.Unmarshal([]byte(out), &r); err != nil || carries(r.Links, "leaf2-top2", [2]int{6, 9}) || !carries(r.Links, "leaf2-top0", [2]int{6, 9}) {
		t.Errorf("moved: %v, %s", err, out)
	}
	if out, _, _ := command(t, "route", "diff", vbft16, file); out != "pair 6-9: 3 -> 1\n" {
		t.Errorf("diff: %s", out)
	}
}

func carries(links []routeLink, name string, pair [2]int) bool {
	for _, l := range links {
		for _, p := range l.Pairs {
			if l.Link == name && p == pair {
				return true
			}
		}
	}
	return false
}

// The keys of docs/routes.md are those that are printed.
func TestRouteJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "routes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []any{routeResult{}, routeNode{}, routePair{}, routeLink{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(part)) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(doc), "`"+key+"`") {
				t.Errorf("%T: %s is not in docs/routes.md", part, key)
			}
		}
	}
}

// A plan of 1,024 nodes has no matrix, but all else; a link has a line, however many pairs share
// it.
func TestRouteShowOfManyNodes(t *testing.T) {
	var macs []transport.MAC
	for i := range 1024 {
		macs = append(macs, transport.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)})
	}
	p, err := plan.RoundRobin(macs, []transport.VID{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	p.Topology = "vbft:64x4x16"
	network, err := cli.PlanNetwork(p, "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	s := &shownPlan{file: "p.yaml", plan: p, network: network, node: allNodes}
	if err := s.write(&b, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if want := 5 + 64*4; len(lines) != want || lines[1] != "# too many for a matrix: see the routes of one node with --node, or all pairs with --json" {
		t.Errorf("%d lines, want %d:\n%.300s", len(lines), want, b.String())
	}
	// Link leaf0-top0 carries the pairs of nodes 0, 4, 8, 12 with the other leaves' 1008.
	if last := lines[5]; !strings.HasPrefix(last, "leaf0-top0 ") || !strings.HasSuffix(last, fmt.Sprintf("and %d more", 4*1008-maxLinkPairs)) {
		t.Errorf("%s", last)
	}
}

// One of a thing is not "1 things", and no line of a table ends with blanks.
func TestRouteVerbsPrintNeatly(t *testing.T) {
	dir := t.TempDir()
	alone := filepath.Join(dir, "alone.yaml")
	if err := os.WriteFile(alone, []byte("topology: flat:1\nvids: [1]\nnodes:\n  - {mac: \"02:00:00:00:00:01\", vid: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ones := regexp.MustCompile(`(?m)(^|[^0-9.])1 (nodes|routes|pairs|flows|switches|links|hosts|programs|paths|VLANs)\b`)
	for _, args := range []string{
		"check " + alone, "show " + alone, "show " + alone + " --node 0", "show " + vbft16, "show " + vbft16 + " --node 3", "check " + vbft16,
		"optimise --topology flat:1 --pattern all", "optimise --topology vbft:8x8x8 --pattern all", "optimise --topology vbft:4x4x4 --pattern cg16",
		"vlans --topology vbft:4x4x4", "vlans --topology flat:1 --compute", "vlans --topology tree:2x2 --compute",
	} {
		out, errs, status := command(t, append([]string{"route"}, strings.Fields(args)...)...)
		if status != cli.ExitDone {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
		if one := ones.FindString(out); one != "" {
			t.Errorf("%s: it prints %q", args, one)
		}
		for line := range strings.Lines(out) {
			if text := strings.TrimSuffix(line, "\n"); text != strings.TrimRight(text, " \t") {
				t.Errorf("%s: a line ends with blanks: %q", args, line)
			}
		}
	}
}

// A dumped plan whose network is in a file says that the file has to be beside it; and so does the
// error if it is not.
func TestRouteDumpNamesTheNetworksFile(t *testing.T) {
	p, err := cli.ReadPlan(t.Context(), vbft16)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if writeDump(&b, p); b.Len() == 0 || strings.Contains(b.String(), "beside") {
		t.Errorf("a network of a generator's: %.200s", b.String())
	}
	b.Reset()
	p.Topology = "net.yaml"
	if writeDump(&b, p); !strings.HasPrefix(b.String(), "# Its network is in a file, net.yaml, which has to be beside this one") {
		t.Errorf("%.200s", b.String())
	}
	file := filepath.Join(t.TempDir(), "dumped.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, status := command(t, "route", "check", file)
	want := "open " + filepath.Join(filepath.Dir(file), "net.yaml") + ": no such file or directory (a plan's network is looked for beside the plan)"
	if status != cli.ExitFailed || !strings.Contains(errs, want) {
		t.Errorf("status %d, %s; want %q", status, errs, want)
	}
	if again, err := cli.ReadPlan(t.Context(), file); err != nil || api.PlanID(again) != api.PlanID(p) {
		t.Errorf("read again: %v, %v", again, err)
	}
}

// Several managers are asked at once: one that has stopped does not use up the others' time.
func TestSeveralManagersAreAskedAtOnce(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(2)
	var addrs []string
	for range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Done()
			all := make(chan struct{})
			go func() { asked.Wait(); close(all) }()
			select {
			case <-all:
				_ = json.NewEncoder(w).Encode(api.Log{Schema: api.Schema})
			case <-r.Context().Done(): // the verb has given up
			}
		}))
		defer s.Close()
		addrs = append(addrs, s.Listener.Addr().String())
	}
	out, errs, status := command(t, "route", "log", "--managers", strings.Join(addrs, ","))
	first, second := strings.Index(out, "# manager "+addrs[0]), strings.Index(out, "# manager "+addrs[1])
	if status != cli.ExitDone || first < 0 || second < first {
		t.Errorf("status %d, printed %s%s", status, out, errs)
	}
}

// One of several managers' answers as JSON says whose it is, and a single one's is as it is.
func TestRouteJSON_SaysWhichManager(t *testing.T) {
	var addrs []string
	for k := range 2 {
		mac := transport.MAC{2, 0, 0, 0, 0, byte(k)}
		answers := map[string]any{
			"/v1/table": api.Table{Schema: api.Schema, MAC: mac, Name: fmt.Sprint("n", k)},
			"/v1/log":   api.Log{Schema: api.Schema}, "/v1/counters": api.Counters{Schema: api.Schema},
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
		}))
		defer s.Close()
		addrs = append(addrs, s.Listener.Addr().String())
	}
	for _, verb := range []string{"log", "counters"} {
		out, errs, status := command(t, "route", verb, "--json", "--managers", strings.Join(addrs, ","))
		lines := strings.Split(out, "\n")
		for k, addr := range addrs {
			want := fmt.Sprintf(`{"manager":%q,"mac":"02:00:00:00:00:0%d","name":"n%d","schema":1,`, addr, k, k)
			if status != cli.ExitDone || len(lines) != 3 || !strings.HasPrefix(lines[k], want) {
				t.Errorf("%s: status %d, printed %s%s, want %s", verb, status, out, errs, want)
			}
		}
		if out, _, _ := command(t, "route", verb, "--json", "--manager", addrs[0]); !strings.HasPrefix(out, `{"schema":1,`) {
			t.Errorf("%s of one: %s", verb, out)
		}
	}
}

// The report of a change says of a manager that it did not answer, and not that it is unchanged.
func TestRouteApply_NoAnswer(t *testing.T) {
	var b strings.Builder
	writeReport(&b, &coordinator.Report{Nodes: []coordinator.NodeOutcome{
		{Manager: "unix:/run/m0", MAC: transport.MAC{2}, Name: "n0"}, {Manager: "unix:/run/m1", Error: "no such file"},
	}})
	want := regexp.MustCompile(`(?m)^unix:/run/m0 +n0 +unchanged +0  -\nunix:/run/m1 +- +no answer +0  -$`)
	if !want.MatchString(b.String()) {
		t.Errorf("%s\nwant %v", &b, want)
	}
}

// The table that docs/routes.md shows of nodes of two plans.
func TestRouteStatusIsThatOfTheDocumentation(t *testing.T) {
	node := func(k int, id string, version string, programs int, why string) coordinator.NodeStatus {
		n := coordinator.NodeStatus{
			Manager: fmt.Sprintf("unix:/run/m%d", k), Name: fmt.Sprintf("n%d", k),
			PlanID: id, Reason: why, Programs: programs, Failover: why == "",
		}
		if err := n.PlanVersion.UnmarshalText([]byte(version)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var b strings.Builder
	writeStatus(&b, &coordinator.Status{Nodes: []coordinator.NodeStatus{
		node(0, "8d449c48c5a6", "1.3", 2, ""), node(1, "8d449c48c5a6", "1.3", 1, ""),
		node(2, "11f173083073", "2.1", 1, "two pairs share a link"),
	}})
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "routes.md"))
	if err != nil || !strings.Contains(string(page), "--managers managers.txt\n"+b.String()) {
		t.Errorf("%v: docs/routes.md does not show\n%s", err, &b)
	}
}

// Verbs that compute for long end when they are interrupted.
func TestRouteComputationsEndWithTheirContext(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, args := range []string{
		"vlans --topology vbft:4x4x4 --compute", "optimise --topology vbft:4x4x4 --pattern cg16",
	} {
		var out, errs strings.Builder
		line := append([]string{"route"}, strings.Fields(args)...)
		status := cli.Execute(ctx, cli.NewRoot(verbs), line, strings.NewReader(""), &out, &errs)
		if status == cli.ExitDone || out.Len() > 0 || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%s: status %d, printed %q, said %q", args, status, &out, &errs)
		}
	}
}

// fakeManagers answer as two managers of a plan's first nodes. The second one does not answer a
// request for the given path, of which it calls asked, and refuses to undo a change.
func fakeManagers(t *testing.T, p *plan.Plan, silent string, asked func()) (addrs string) {
	t.Helper()
	var all []string
	for k, n := range p.Nodes[:2] {
		answers := map[string]any{
			"/v1/table": api.Table{Schema: api.Schema, MAC: n.MAC}, "/v1/health": api.Health{Schema: api.Schema},
			"/v1/prepare": api.Prepared{}, "/v1/commit": api.Committed{}, "/v1/abort": api.Changed{},
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the end of the request is noticed
			switch {
			case k == 1 && r.URL.Path == silent:
				asked()
				<-r.Context().Done()
			case k == 1 && r.URL.Path == "/v1/abort":
				w.WriteHeader(http.StatusInternalServerError)
			default:
				_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
			}
		}))
		t.Cleanup(s.Close)
		all = append(all, s.Listener.Addr().String())
	}
	return strings.Join(all, ",")
}

// A manager for which an interrupt left no time is not said to give no answer. What has changed by
// then, or may have, is told all the same. A watch ends with 0, whatever the nodes were asked.
func TestRouteInterrupted(t *testing.T) {
	p, err := cli.ReadPlan(t.Context(), vbft16)
	if err != nil {
		t.Fatal(err)
	}
	const interrupted, word = 130, "interrupted\n$"
	for _, c := range []struct {
		verb, silent string
		status       int
		out, errs    string // expressions of what is printed and said
	}{
		{"status", "/v1/table", interrupted, "^$", "^[^\n]*" + word},
		{"status --watch 1h", "/v1/table", cli.ExitDone, "^$", "^$"},
		{"status --watch 1h", "", cli.ExitDone, "(?m)^# Manager", "^not all is well"}, // between two looks
		{"apply --partial " + vbft16, "/v1/table", interrupted, "^$", "^[^\n]*" + word},
		{
			"apply --partial " + vbft16, "/v1/commit", interrupted, `(?m)^\S+ +\S+ +(back|unchanged) .*\n\S+ +\S+ +unknown `,
			"(?s)may have: plan .* may be that of .*" + word,
		},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		raise := func() { interrupt(&cli.SignalError{Signal: syscall.SIGINT}) }
		addrs := fakeManagers(t, p, c.silent, raise)
		var out, errs strings.Builder
		said := writer(func(b []byte) (int, error) {
			if c.silent == "" {
				raise()
			}
			return errs.Write(b)
		})
		line := append(append([]string{"route"}, strings.Fields(c.verb)...), "--managers", addrs)
		status := cli.Execute(ctx, cli.NewRoot(verbs), line, strings.NewReader(""), &out, said)
		if status != c.status || !regexp.MustCompile(c.out).MatchString(out.String()) ||
			!regexp.MustCompile(c.errs).MatchString(errs.String()) {
			t.Errorf("%s, %s: status %d, printed\n%ssaid\n%s", c.verb, c.silent, status, &out, &errs)
		}
	}
}

// A manager that has stopped is waited for as long as its answer may take, and its error says so: a
// few seconds, and more where answers of many have to be read.
func TestRoute_SilentManagers(t *testing.T) {
	for managers, want := range map[int]time.Duration{1: 5 * time.Second, 16: 5 * time.Second, 1024: 37 * time.Second} {
		if got := timeoutOf(managers); got != want {
			t.Errorf("%d managers: %v, want %v", managers, got, want)
		}
	}
	p, err := cli.ReadPlan(t.Context(), vbft16)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := listAddrs(fakeManagers(t, p, "/v1/table", func() {}))
	if err != nil {
		t.Fatal(err)
	}
	silent := manager.NewClient(addrs[1], nil)
	defer silent.Close()
	ctx, cancel := withTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = silent.Table(ctx)
	want := fmt.Sprintf("manager %v: manager unreachable: it did not answer in 1ms (", addrs[1])
	if !errors.Is(err, api.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
