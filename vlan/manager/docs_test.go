package manager_test

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

	"github.com/rawlane/rawlane/vlan/plan"
)

var root = filepath.Join("..", "..")

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
	n := startAt(t, plan.Nodes[0].MAC, plan, t.TempDir())
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
		if status, answer, _ := n.ask(t, method, path, body, header...); status != 200 {
			t.Errorf("%s: %d %s", line, status, answer)
		}
	}
	if lines < 6 {
		t.Errorf("%d lines of curl in the document, want 6 or more", lines)
	}
}

// The fields and codes that answers have are in the document.
func TestDocumentHasAllFieldsAndCodes(t *testing.T) {
	text := document(t)
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{Program: "p"})
	s.Table().Counter(mac(1)).Add(1, 1)
	if err := s.SetRoute(t.Context(), mac(0), mac(1), 2); err != nil {
		t.Fatal(err)
	}
	if err := n.Force("why", manager.Change{A: mac(0), B: mac(1), VID: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.SetPlan(cyclic(t, 4, 1), "why"); err != nil {
		t.Fatal(err)
	}
	prepare := fmt.Sprintf(`{"id":"x","lease_ms":1000,"plan":%s}`, textOf(t, cyclic(t, 4, 2)))
	for _, ask := range [][2]string{{"GET /v1/table", ""}, {"GET /v1/counters", ""}, {"GET /v1/log", ""}, {"GET /v1/history", ""}, {"GET /v1/nic", ""}, {"GET /v1/version", ""},
		{"GET /v1/health", ""}, {"POST /v1/prepare", prepare}, {"GET /v1/table", ""}, {"POST /v1/commit", `{"id":"x"}`}} {
		method, path, _ := strings.Cut(ask[0], " ")
		_, answer, _ := n.ask(t, method, path, ask[1])
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
	for _, code := range manager.Codes() {
		if !strings.Contains(text, "| `"+code+"` |") {
			t.Errorf("code %q is not in the document", code)
		}
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

// A plan survives its JSON; what is no plan is refused and does not panic.
func FuzzPlanJSON(f *testing.F) {
	f.Add([]byte(goodPlan))
	f.Add([]byte(`{"vids":[1,2],"pcp":3,"topology":"vbft:1x1x1","nodes":[{"name":"a","mac":"02:00:00:00:00:01","vid":1,"priority":-1},{"mac":"02:00:00:00:00:02","vid":2}],"pairs":{"1-0":2}}`))
	f.Add([]byte(`{"pairs":{"0-1":1,"1-0":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p manager.Plan
		if json.Unmarshal(b, &p) != nil || p.Validate() != nil {
			return
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again manager.Plan
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(text) {
			t.Errorf("%s\n%s, %v", text, twice, err)
		}
		if d := plan.Diff(&p.Plan, &again.Plan); !d.Empty() {
			t.Errorf("%+v", d)
		}
	})
}

// Whatever a program says, the manager answers or hangs up, and its routes stay those of its nodes and VIDs.
func FuzzSessionLines(f *testing.F) {
	f.Add([]byte(`{"id":1,"set":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":2}]}` + "\n" + `{"id":2,"reset":true}`))
	f.Add([]byte(`{"applied":99}` + "\n" + `{"report":1,"counts":[{"dst":"02:00:00:00:00:02","vid":1,"frames":1,"bytes":2}],"more":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := manager.HearLines(cyclic(t, 4, 3), mac(0), b); err != nil {
			t.Error(err)
		}
	})
}
