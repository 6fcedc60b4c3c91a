package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// twoNodes is a part of plans.
const twoNodes = `"nodes":[{"mac":"02:00:00:00:00:01","vid":1},{"mac":"02:00:00:00:00:02","vid":1}]`

const goodPlan = `{"vids":[1,2],"nodes":[{"mac":"02:00:00:00:00:01","vid":1},{"mac":"02:00:00:00:00:02","vid":2}]}`

// A mistake in a request changes nothing, and the answer says what was wrong and what was expected.
func TestMistakes(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	put := func(plan string) string { return `{"plan":` + plan + `}` }
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code, text               string
	}{
		{"VID 0", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":0}]}`, 422, "bad_vid", "bad VID 0 (want 1 to 4094, and one of the plan's: 1, 2, 3)"},
		{"VID 4095", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":4095}]}`, 422, "bad_vid", "bad VID 4095 (want 1 to 4094"},
		{"VID 70000", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":70000}]}`, 400, "bad_request", `"pairs.vid": number 70000 (want a whole number of 0 to 65535)`},
		{"VID not in the plan", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":9}]}`, 422, "bad_vid", "bad VID 9: not in the plan"},
		{"unknown node", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"n7","vid":2}]}`, 422, "unknown_node", `pairs[0]: unknown node "n7" (want a number of 0 to 3, or a name or address that the plan lists)`},
		{"unknown address", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"02:00:00:00:00:99","vid":2}]}`, 422, "unknown_node", `"02:00:00:00:00:99"`},
		{"one node twice", "PATCH", "/v1/pairs", `{"pairs":[{"a":"2","b":"2","vid":2}]}`, 422, "unknown_node", "a pair of one node"},
		{"one-sided", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2},{"a":"1","b":"0","vid":3}]}`, 422, "one_sided", "VID 2 for one direction and VID 3 for the other"},
		{"good, then bad", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2},{"a":"0","b":"2","vid":9}]}`, 422, "bad_vid", "pairs[1]"},
		{"unknown field", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vlan":2}]}`, 400, "bad_request", `unknown field "vlan"`},
		{"no pairs", "PATCH", "/v1/pairs", `{}`, 400, "bad_request", "no pairs (want"},
		{"a list", "PATCH", "/v1/pairs", `[]`, 400, "bad_request", "the whole: array (want an object)"},
		{"nothing", "PATCH", "/v1/pairs", ``, 400, "bad_request", "no pairs (want"},
		{"cut off", "PATCH", "/v1/pairs", `{"pairs":[{"a":`, 400, "bad_request", "ends too early, after 15 bytes"},
		{"not JSON", "PATCH", "/v1/pairs", `{pairs}`, 400, "bad_request", "JSON: byte 2"},
		{"two objects", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2}]}{}`, 400, "bad_request", "something follows the object"},
		{"a reason too long", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2}],"reason":"` + strings.Repeat("x", 2000) + `"}`, 400, "bad_request", "reason: 2000 bytes (want at most 1024)"},

		{"a reason that clears the screen", "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2}],"reason":"\u001b[2J"}`, 400, "bad_request", `reason: "\x1b[2J" (want text that can be printed, in one line)`},
		{"a reason of two lines", "POST", "/v1/reset", `{"reason":"a\nb"}`, 400, "bad_request", `reason: "a\nb"`},

		{"no plan", "PUT", "/v1/table", `{}`, 400, "bad_request", `no plan (want {"plan":{...}}`},
		{"two nodes with one MAC", "PUT", "/v1/table", put(`{"vids":[1],"nodes":[{"mac":"02:00:00:00:00:01","vid":1},{"mac":"02:00:00:00:00:01","vid":1}]}`), 422, "bad_plan", "node 1: mac 02:00:00:00:00:01: is node 0's, too"},
		{"a default not in the plan", "PUT", "/v1/table", put(`{"vids":[1],"nodes":[{"mac":"02:00:00:00:00:01","vid":2}]}`), 422, "bad_plan", "vid 2: not among the plan's vids"},
		{"VIDs 0 and 4095", "PUT", "/v1/table", put(`{"vids":[0,4095],"nodes":[{"mac":"02:00:00:00:00:01","vid":0}]}`), 422, "bad_plan", "vid 4095: want 1 to 4094"},
		{"this node is not in it", "PUT", "/v1/table", put(`{"vids":[1],"nodes":[{"mac":"02:00:00:00:00:02","vid":1}]}`), 422, "bad_plan", "this node, 02:00:00:00:00:01, is not among its nodes"},
		{"an address cut short", "PUT", "/v1/table", put(`{"vids":[1],"nodes":[{"mac":"02:00","vid":1}]}`), 400, "bad_request", "want six bytes such as 02:00:00:00:00:01"},
		{"a pair of nodes that are not there", "PUT", "/v1/table", put(strings.Replace(goodPlan, "}]}", `}],"pairs":{"0-7":1}}`, 1)), 422, "bad_plan", "pair 0-7: want two nodes of 0 to 1"},
		{"a pair twice, in one order", "PUT", "/v1/table", put(strings.Replace(goodPlan, "}]}", `}],"pairs":{"0-1":1,"0-1":2}}`, 1)), 400, "bad_request", `plan: "0-1" is given twice`},
		{"a node's VID twice", "PUT", "/v1/table", put(strings.Replace(goodPlan, `"vid":1`, `"vid":2,"vid":1`, 1)), 400, "bad_request", `plan: "vid" is given twice`},
		{"the VIDs twice, in two spellings", "PUT", "/v1/table", put(strings.Replace(goodPlan, `{`, `{"VIDs":[1],`, 1)), 400, "bad_request", `plan: "vids" is given twice`},
		{"the VIDs twice, once with a long s", "PUT", "/v1/table", put(strings.Replace(goodPlan, `{`, `{"vid\u017f":[1],`, 1)), 400, "bad_request", `plan: "vids" is given twice`},
		{"a pair with two VIDs", "PUT", "/v1/table", put(strings.Replace(goodPlan, "}]}", `}],"pairs":{"0-1":1,"1-0":2}}`, 1)), 422, "one_sided", "0-1: given twice, with VID 1 and VID 2"},
		{"a pair that is none", "PUT", "/v1/table", put(strings.Replace(goodPlan, "}]}", `}],"pairs":{"0+1":1}}`, 1)), 400, "bad_request", `pair "0+1": want the numbers of two nodes`},
		{"unknown field of a plan", "PUT", "/v1/table", put(`{"vids":[1],"hosts":[]}`), 400, "bad_request", `unknown field "hosts"`},
		{"a plan's file", "PUT", "/v1/table#yaml", "vids: [1]\nnodes:\n  - {mac: \"02:00:00:00:00:01\", vid: 1}\n", 400, "bad_request", "YAML (want JSON: rawlane route load FILE converts a plan's file)"},

		{"a VID that its network does not have", "PUT", "/v1/table", put(`{"topology":"vbft:2x1x1","vids":[1,2],` + twoNodes + `}`), 422, "bad_plan", "on vbft:2x1x1: bad plan: vid 2: the topology does not have it (it has 1)"},
		{"a network of more hosts", "PUT", "/v1/table", put(`{"topology":"flat:3","vids":[1],"nodes":[{"mac":"02:00:00:00:00:01","vid":1}]}`), 422, "bad_plan", "1 node, but the topology has 3 hosts"},
		{"a network that cannot be", "PUT", "/v1/table", put(`{"topology":"vbft:2x2","vids":[1],` + twoNodes + `}`), 422, "bad_plan", "vbft takes 3 numbers, not 2"},
		{"an invalid plan of a network", "PUT", "/v1/table", put(`{"topology":"flat:2","vids":[1],"nodes":[{"vid":1},{"vid":1}]}`), 422, "bad_plan", "no station's address"},
		{"prepare for a VID that its network does not have", "POST", "/v1/prepare", `{"id":"x","lease_ms":1000,"plan":{"topology":"vbft:2x1x1","vids":[1,2],` + twoNodes + `}}`, 422, "bad_plan", "vid 2: the topology does not have it"},

		{"a lease beyond all durations", "POST", "/v1/prepare", `{"id":"x","lease_ms":18446744073710,"plan":` + goodPlan + `}`, 400, "bad_request", "lease_ms: 18446744073710 (want 1 to 60000)"},
		{"a lease too long", "POST", "/v1/prepare", `{"id":"x","lease_ms":3600000,"plan":` + goodPlan + `}`, 400, "bad_request", "lease_ms: 3600000 (want 1 to 60000)"},
		{"no id", "POST", "/v1/prepare", `{"lease_ms":1000,"plan":` + goodPlan + `}`, 400, "bad_request", `id: "" (want 1 to 64 bytes`},
		{"prepare without plan", "POST", "/v1/prepare", `{"id":"x","lease_ms":1000}`, 400, "bad_request", "no plan"},
		{"commit of nothing", "POST", "/v1/commit", `{"id":"x"}`, 409, "lease", `"x": never, or its lease is over (prepare it again)`},
		{"commit without id", "POST", "/v1/commit", `{}`, 409, "lease", ""},
		{"roll back the first", "POST", "/v1/rollback", ``, 409, "no_history", "no plan to go back to"},
		{"roll back with an id", "POST", "/v1/rollback", `{"id":"x"}`, 400, "bad_request", `unknown field "id"`},

		{"no such path", "GET", "/v2/table", ``, 404, "not_found", "GET /v2/table: no such request"},
		{"no such method", "DELETE", "/v1/table", ``, 405, "not_found", "DELETE /v1/table: no such request"},
		{"a plan and a rollback", "POST", "/v1/prepare", `{"id":"x","lease_ms":1000,"rollback":true,"plan":` + goodPlan + `}`, 400, "bad_request", "no plan, or a plan and rollback"},
		{"a session's id that clears the screen", "POST", "/v1/sessions", `{"session":"\u001b[2J"}`, 400, "bad_request", `session: "\x1b[2J" (want text that can be printed`},
		{"an id that clears the screen", "POST", "/v1/prepare", `{"id":"\u001b[2J","lease_ms":1000,"plan":` + goodPlan + `}`, 400, "bad_request", "want text that can be printed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.Snapshot(t)
			var header []string
			path, yaml := strings.CutSuffix(c.path, "#yaml")
			if yaml {
				header = []string{"Content-Type", "application/yaml"}
			}
			status, answer, _ := n.Ask(t, c.method, path, c.body, header...)
			var doc struct{ Error api.Error }
			if err := json.Unmarshal([]byte(answer), &doc); err != nil {
				t.Fatalf("%v: %s", err, answer)
			}
			if status != c.status || doc.Error.Code != c.code || !strings.Contains(doc.Error.Message, c.text) {
				t.Errorf("%d %s; want %d, %s with %q", status, answer, c.status, c.code, c.text)
			}
			if after := n.Snapshot(t); after != before {
				t.Errorf("it has changed something:\n%s\n%s", before, after)
			}
		})
	}
}

// A web page could have a browser send changes to a manager on a loopback address.
func TestBrowsersAreRefused(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	before := n.Snapshot(t)
	for _, header := range [][]string{{"Origin", "https://page.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		status, answer, _ := n.Ask(t, "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":2}]}`, header...)
		if status != 403 || !strings.Contains(answer, `"code":"browser"`) {
			t.Errorf("%v: %d %s", header, status, answer)
		}
	}
	if after := n.Snapshot(t); after != before {
		t.Errorf("it has changed something:\n%s\n%s", before, after)
	}
}

func TestBodyIsBounded(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	for _, c := range []struct {
		body   string
		header []string
	}{
		{`{"reason":"` + strings.Repeat("x", api.MaxBody) + `"}`, nil},
	} {
		status, answer, _ := n.Ask(t, "PUT", "/v1/table", c.body, c.header...)
		if status != 413 || !strings.Contains(answer, "too_large") {
			t.Errorf("%v: %d %.200s", c.header, status, answer)
		}
	}
}

func TestChangesOverHTTP(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{Program: "worker"})
	_, _, h := n.Ask(t, "GET", "/v1/table", "")
	first := h.Get("ETag")

	status, answer, h := n.Ask(t, "PATCH", "/v1/pairs", `{"pairs":[{"a":"2","b":"02:00:00:00:00:01","vid":3},{"a":"1","b":"2","vid":2}],"reason":"try"}`, "If-Match", first)
	if status != 200 || !strings.Contains(answer, `"routes":1,"ignored":1`) {
		t.Fatalf("%d %s", status, answer)
	}
	second := h.Get("ETag")
	managertest.Eventually(t, "the program sends by it", func() bool { return managertest.VID(s.Table(), 2) == 3 })

	if status, answer, _ = n.Ask(t, "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":3}]}`, "If-Match", first); status != 412 || !strings.Contains(answer, "read it again") {
		t.Errorf("with the first version: %d %s, want 412", status, answer)
	}
	// A program's change is no reason to refuse: it comes and goes by itself.
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(3), 2); err != nil {
		t.Fatal(err)
	}
	if status, answer, _ = n.Ask(t, "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":3}]}`, "If-Match", second); status != 200 {
		t.Errorf("with the second: %d %s", status, answer)
	}
	if status, answer, _ = n.Ask(t, "PATCH", "/v1/pairs", `{"pairs":[{"a":"0","b":"1","vid":3}]}`, "If-Match", `"x"`); status != 400 {
		t.Errorf("with a version that is none: %d %s", status, answer)
	}

	table, err := n.Client.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range table.Pairs {
		got = append(got, p.B.String()[16:]+" "+p.By)
	}
	if want := "2 operator,3 operator,4 session 1"; strings.ReplaceAll(strings.Join(got, ","), "0", "") != want {
		t.Errorf("pairs %v, want %s", got, want)
	}
	if len(table.Sessions) != 1 || table.Sessions[0].Program != "worker" {
		t.Errorf("sessions %+v", table.Sessions)
	}

	// Back to the plan: the operator's pairs and the program's go.
	if status, answer, _ = n.Ask(t, "POST", "/v1/reset", ""); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	managertest.Eventually(t, "the plan's again", func() bool {
		return managertest.VID(s.Table(), 1) == 1 && managertest.VID(s.Table(), 2) == 1 && managertest.VID(s.Table(), 3) == 1
	})
	managertest.Eventually(t, "the program is told", func() bool { return s.Stats().Dropped == 1 })

	// And back to before the reset, as far as the operator's pairs go.
	if status, answer, _ = n.Ask(t, "POST", "/v1/rollback", ""); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	managertest.Eventually(t, "the operator's again", func() bool {
		return managertest.VID(s.Table(), 1) == 3 && managertest.VID(s.Table(), 2) == 3 && managertest.VID(s.Table(), 3) == 1
	})

	_, answer, _ = n.Ask(t, "GET", "/v1/log", "")
	if !regexp.MustCompile(`"act":"pairs","by":"operator",("from":"uid \d+ gid \d+ pid \d+",)?"reason":"try","routes":\[\{"dst":"02:00:00:00:00:03","vid":3\}\],"count":1.*"by":"session 1 \(worker\)".*"act":"rollback"`).MatchString(answer) {
		t.Errorf("log: %s", answer)
	}
	_, answer, _ = n.Ask(t, "GET", "/v1/history", "")
	if strings.Count(answer, `"until"`) != 2 {
		t.Errorf("history: %s", answer)
	}
}

// If-Match holds for a rollback, too, and the answer to a commit has the version to go on from.
func TestConditionsOfGroupChanges(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	_, _, h := n.Ask(t, "GET", "/v1/table", "")
	first := h.Get("ETag")
	prepare := `{"id":"x","lease_ms":1000,"plan":` + goodPlan + `}`
	if status, answer, _ := n.Ask(t, "POST", "/v1/prepare", prepare, "If-Match", first); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	status, answer, h := n.Ask(t, "POST", "/v1/commit", `{"id":"x"}`)
	second := h.Get("ETag")
	if status != 200 || second == "" || second == first {
		t.Fatalf("%d %s, ETag %s", status, answer, second)
	}
	if status, answer, _ := n.Ask(t, "POST", "/v1/rollback", "", "If-Match", first); status != 412 {
		t.Errorf("a rollback of another version: %d %s, want 412", status, answer)
	}
	if status, answer, _ := n.Ask(t, "POST", "/v1/rollback", "", "If-Match", second); status != 200 {
		t.Errorf("a rollback of the version: %d %s", status, answer)
	}
}

// A program is told that a new plan has dropped its pair, though another one lies above that pair
// and no route has changed.
func TestADroppedPairBelowAnotherIsTold(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	events := make(chan manager.Event, 10)
	s := n.Dial(t, manager.Dialer{OnEvent: func(e manager.Event) { events <- e }})
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 3); err != nil {
		t.Fatal(err)
	}
	if err := n.Override("VID 3 is down", api.Change{A: managertest.MAC(0), B: managertest.MAC(1), VID: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.SetPlan(managertest.RoundRobin(t, 4, 2), "without VID 3"); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != manager.EventDropped || len(e.Changes) != 1 || e.Changes[0].VID != 3 {
		t.Errorf("event %+v, want the pair dropped", e)
	}
}

// A plan's file is taken as it is; programs get the whole table, and lose the nodes that are not in
// it.
// Programs follow a manager from no plan to plans, and back.
func TestPlansOverHTTP(t *testing.T) {
	n := managertest.Start(t, 0, nil, t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	if tagged := s.Table().Route(managertest.MAC(1)).Tagged; tagged {
		t.Error("frames are tagged before there is a plan")
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 1); err == nil || !strings.Contains(err.Error(), "no plan (set one first") {
		t.Errorf("SetRoute: %v", err)
	}
	plan := `{"plan":{"vids":[1,2],"pcp":5,"nodes":[{"name":"a","mac":"02:00:00:00:00:01","vid":1},{"name":"b","mac":"02:00:00:00:00:02","vid":2,"priority":1}]}}`
	if status, answer, _ := n.Ask(t, "PUT", "/v1/table", plan); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	managertest.Eventually(t, "routes", func() bool { return managertest.VID(s.Table(), 1) == 2 && managertest.VID(s.Table(), 9) == 1 })
	if tag := s.Table().Route(managertest.MAC(1)).Tag; tag.PCP != 5 {
		t.Errorf("priority %d, want 5", tag.PCP)
	}
	if status, answer, _ := n.Ask(t, "PUT", "/v1/table", `{"plan":{"vids":[1],"nodes":[{"mac":"02:00:00:00:00:01","vid":1}]}}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	managertest.Eventually(t, "node 1 goes by the default", func() bool { return managertest.VID(s.Table(), 1) == 1 && len(s.Table().Routes()) == 1 })
	for range 2 { // to the plan before, and to none at all
		if status, answer, _ := n.Ask(t, "POST", "/v1/rollback", ""); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	managertest.Eventually(t, "untagged again", func() bool { tagged := s.Table().Route(managertest.MAC(1)).Tagged; return !tagged })
}

func TestHealthAndVersion(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	h, err := n.Client.Health(t.Context())
	if err != nil || !h.OK || !h.HasPlan || h.Version == 0 {
		t.Errorf("%+v, %v", h, err)
	}
	a, err := n.Client.About(t.Context())
	if err != nil || a.MAC != managertest.MAC(0) || a.PID == 0 {
		t.Errorf("%+v, %v", a, err)
	}
	nic, err := n.Client.NIC(t.Context())
	if err != nil || nic.MAC != managertest.MAC(0) {
		t.Errorf("%+v, %v", nic, err)
	}
}

// Each line of the metrics is as Prometheus' text format has it, each sample follows its own
// metric's type, and counters show what was sent.
func TestMetrics(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{})
	s.Table().Counter(managertest.MAC(2)).Add(3, 300)
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 2); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 9); err == nil {
		t.Fatal("VID 9 was taken")
	}
	status, text, h := n.Ask(t, "GET", "/metrics?routes=all", "")
	if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %v", status, h)
	}
	help := regexp.MustCompile(`^# HELP [a-z_]+ [A-Z].*\.$`)
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (gauge|counter)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+]+$`)
	var of string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := kind.FindStringSubmatch(line); m != nil {
			of = m[1]
			if strings.HasSuffix(of, "_total") != (m[2] == "counter") {
				t.Errorf("%s: only counters end with _total", line)
			}
			continue
		}
		if m := sample.FindStringSubmatch(line); !help.MatchString(line) && (m == nil || m[1] != of) {
			t.Errorf("line %q", line)
		}
	}
	for _, want := range []string{
		`rawlane_route_frames_total{dst="02:00:00:00:00:03",node="",vid="1"} 3`, `rawlane_route_bytes_total{dst="02:00:00:00:00:03",node="",vid="1"} 300`,
		`rawlane_sessions 1`, `rawlane_manager_changes_total{act="session"} 1`, `rawlane_manager_refused_total{code="bad_vid"} 1`, `rawlane_routes 4`,
		`rawlane_vid_frames_total{vid="1"} 3`, `rawlane_vid_bytes_total{vid="1"} 300`,
		`rawlane_manager_changes_total{act="plan"} 0`, `rawlane_manager_refused_total{code="busy"} 0`, `rawlane_state_writes_failed_total 0`,
		`rawlane_leases_expired_total 0`, `rawlane_change_prepared 0`, `rawlane_failover_watching 0`, `rawlane_paths_down 0`, `rawlane_manager_handshakes_failed_total 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// What follows each other in a JSON answer is stable, so that people can compare answers.
func TestTableIsStable(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 30, 3), t.TempDir())
	_, first, _ := n.Ask(t, "GET", "/v1/table", "")
	for range 20 {
		if _, again, _ := n.Ask(t, "GET", "/v1/table", ""); !bytes.Equal([]byte(again), []byte(first)) {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

// What a stranger asks for, however long, takes little room in the log.
func TestRefusalsAreShortInTheLog(t *testing.T) {
	for _, c := range []struct{ name, method, path string }{
		{"a long path", "POST", "/" + strings.Repeat("x", 15<<10)},
		{"a path of bytes that are quoted", "POST", "/" + strings.Repeat("%01", 5<<10)},
		{"a long method", strings.Repeat("M", 15<<10), "/metrics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			s, err := server.New(server.Config{MAC: managertest.MAC(0), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "http://other.example")
			w := httptest.NewRecorder()
			s.Handle(w, r)
			if !strings.Contains(log.String(), "refused") || log.Len() > 8<<10 {
				t.Errorf("status %d, and %d bytes in the log: %.200s", w.Code, log.Len(), log.String())
			}
		})
	}
}
