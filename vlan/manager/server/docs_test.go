package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

var root = filepath.Join("..", "..", "..")

func document(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", "manager-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The curl lines of docs/manager-api.md do what they say.
func TestDocumentedCurlLinesWork(t *testing.T) {
	f, err := os.Open(filepath.Join(root, "examples", "vbft16.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plan, err := plan.Parse(f.Name(), f)
	if err != nil {
		t.Fatal(err)
	}
	text := document(t)
	if !strings.Contains(text, "--plan examples/vbft16.yaml --mac "+plan.Nodes[0].MAC.String()) {
		t.Fatal("the manager of the document is not the first node of the example")
	}
	n := managertest.StartAt(t, plan.Nodes[0].MAC, plan, t.TempDir())
	word := regexp.MustCompile(`'[^']*'|\S+`)
	lines := 0
	for line := range strings.Lines(text) {
		words := word.FindAllString(line, -1)
		if len(words) < 2 || words[0] != "m0" {
			continue
		}
		lines++
		method, path, body := "GET", "", ""
		var header []string
		for i := 1; i < len(words); i++ {
			w := strings.Trim(words[i], "'")
			next := func() string { i++; return strings.Trim(words[i], "'") }
			switch {
			case w == "-X":
				method = next()
			case w == "-d":
				body = next()
			case w == "-H":
				name, value, _ := strings.Cut(next(), ": ")
				header = append(header, name, value)
			case w == "--data-binary":
				b, err := os.ReadFile(filepath.Join(root, strings.TrimPrefix(next(), "@")))
				if err != nil {
					t.Fatal(err)
				}
				body = string(b)
			default:
				path = strings.TrimPrefix(w, "http://manager")
			}
		}
		if status, answer, _ := n.Ask(t, method, path, body, header...); status != 200 {
			t.Errorf("%s: %d %s", line, status, answer)
		}
	}
	if lines < 6 {
		t.Errorf("%d lines of curl in the document, want 6 or more", lines)
	}
}

// The fields that answers have are in the document.
func TestDocumentHasAllFields(t *testing.T) {
	text := document(t)
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{Program: "p"})
	s.Table().Counter(managertest.MAC(1)).Add(1, 1)
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 2); err != nil {
		t.Fatal(err)
	}
	if err := n.Override("why", api.Change{A: managertest.MAC(0), B: managertest.MAC(1), VID: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.SetPlan(managertest.RoundRobin(t, 4, 1), "why"); err != nil {
		t.Fatal(err)
	}
	n.ShowFailover(func() api.Failover {
		return api.Failover{Watching: true, Error: "why", Paths: []api.Path{{Peer: managertest.MAC(1), State: api.PathDown}}}
	})
	prepare := fmt.Sprintf(`{"id":"x","lease_ms":1000,"plan":%s}`, textOf(t, managertest.RoundRobin(t, 4, 2)))
	for _, ask := range [][2]string{{"GET /v1/table", ""}, {"GET /v1/counters", ""}, {"GET /v1/log", ""}, {"GET /v1/history", ""}, {"GET /v1/nic", ""}, {"GET /v1/version", ""},
		{"GET /v1/health", ""}, {"GET /v1/paths", ""}, {"POST /v1/prepare", prepare}, {"GET /v1/table", ""}, {"POST /v1/commit", `{"id":"x"}`}} {
		method, path, _ := strings.Cut(ask[0], " ")
		_, answer, _ := n.Ask(t, method, path, ask[1])
		var doc any
		if err := json.Unmarshal([]byte(answer), &doc); err != nil {
			t.Fatal(err)
		}
		for _, key := range keysOf(doc) {
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, `"`+key+`"`) {
				t.Errorf("%s: field %q is not in the document", ask[0], key)
			}
		}
	}
}

// The metrics that there are, are in the document.
func TestDocumentHasAllMetrics(t *testing.T) {
	text := document(t)
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	_, answer, _ := n.Ask(t, "GET", "/metrics?routes=all", "")
	kinds := regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(answer, -1)
	for _, k := range kinds {
		if !strings.Contains(text, k[1]) {
			t.Errorf("%s is not in the document", k[1])
		}
	}
	if len(kinds) < 20 {
		t.Errorf("%d metrics, want 20 at least:\n%s", len(kinds), answer)
	}
}

// keysOf lists the keys of all objects in a JSON value.
func keysOf(doc any) (keys []string) {
	switch d := doc.(type) {
	case map[string]any:
		for k, v := range d {
			keys = append(append(keys, k), keysOf(v)...)
		}
	case []any:
		for _, v := range d {
			keys = append(keys, keysOf(v)...)
		}
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(k string) bool { return k == "schema" })
}

// Whatever a program sends, the manager answers, and its routes stay those of its nodes and VIDs.
func FuzzSessionRequests(f *testing.F) {
	f.Add("PATCH", "pairs", []byte(`{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":2}]}`))
	f.Add("DELETE", "pairs", []byte(``))
	f.Add("POST", "applied", []byte(`{"version":"1.99"}`))
	f.Add("POST", "counters", []byte(`{"report":1,"counts":[{"dst":"02:00:00:00:00:02","vid":1,"frames":1,"bytes":2}]}`))
	f.Fuzz(func(t *testing.T, method, what string, body []byte) {
		if err := server.SendRequest(managertest.RoundRobin(t, 4, 3), managertest.MAC(0), method, what, body); err != nil {
			t.Error(err)
		}
	})
}
