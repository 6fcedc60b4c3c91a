package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func parsePlan(text string) (*plan.Plan, error) {
	return plan.Parse("plan.yaml", strings.NewReader(text))
}

// planText returns the file of a plan.
func planText(t testing.TB, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if n, err := p.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes: %v", n, b.Len(), err)
	}
	return b.String()
}

const smallPlan = `# Two leaves, two tops.
topology: vbft:2x2x2
vids: [1, 2]
pcp: 3
nodes:
  - {name: left, mac: "02:00:00:00:00:01", vid: 1}
  - {mac: 02-00-00-00-00-02, vid: 2, priority: -7} # the MAC as Windows writes it
  - mac: 02:00:00:00:00:03
    vid: 0x1
    name: on
pairs:
  0-1: 2
  2-1: 2
`

func TestParse(t *testing.T) {
	p, err := parsePlan(smallPlan)
	want := &plan.Plan{
		Topology: "vbft:2x2x2", VIDs: []transport.VID{1, 2}, PCP: 3,
		Nodes: []plan.Node{{Name: "left", MAC: station(1), VID: 1}, {MAC: station(2), VID: 2, Priority: -7}, {Name: "on", MAC: station(3), VID: 1}},
		Pairs: map[plan.Pair]transport.VID{{A: 0, B: 1}: 2, {A: 1, B: 2}: 2},
	}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
}

// What is written is meant to be read by people, too.
func TestPlan_WriteTo(t *testing.T) {
	p, err := parsePlan(smallPlan)
	if err != nil {
		t.Fatal(err)
	}
	want := `topology: 'vbft:2x2x2'
vids: [1, 2]
pcp: 3
nodes:
  - {name: 'left', mac: "02:00:00:00:00:01", vid: 1} # 0
  - {mac: "02:00:00:00:00:02", vid: 2, priority: -7} # 1
  - {name: 'on', mac: "02:00:00:00:00:03", vid: 1} # 2
pairs:
  0-1: 2
  1-2: 2
`
	if got := planText(t, p); got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	p.PCP = 8
	if n, err := p.WriteTo(io.Discard); n != 0 || !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("a bad plan: %d bytes, %v", n, err)
	}
	p.PCP = 0
	if n, err := p.WriteTo(halfWriter{}); n == 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails: %d bytes, %v", n, err)
	}
}

// halfWriter takes half of what it is given.
type halfWriter struct{}

func (halfWriter) Write(b []byte) (int, error) { return len(b) / 2, io.ErrClosedPipe }

func TestPlan_WrittenAndReadIsTheSame(t *testing.T) {
	for seed := range uint64(50) {
		p := randomPlan(t, rand.New(rand.NewPCG(seed, 2)), 1+int(seed))
		p.Topology = []string{"", "vbft:4x4x4", "it's a file: # 1", " ", "ü/", "null", "'", "-", "\u0085", "\ufffe", "\uffff", "a \u2028 b", "\u2029 b"}[seed%13]
		if p.Validate() != nil {
			continue // \u0085 is a control character, the two behind it are none at all, and the last ones end lines
		}
		got, err := parsePlan(planText(t, p))
		if len(p.Pairs) == 0 {
			p.Pairs = nil
		}
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("seed %d: %v\n%+v, want\n%+v", seed, err, got, p)
		}
	}
}

// Each file has one fault, which is told with its line and what was expected; nothing is told
// twice, or of what follows from it.
func TestParse_SaysWhereAndWhatWasExpected(t *testing.T) {
	const head = "vids: [1, 2]\nnodes:\n  - {mac: \"02:00:00:00:00:01\", vid: 1}\n  - {mac: \"02:00:00:00:00:02\", vid: 2}\n" // 4 lines
	node := func(text string) string { return head + "  - " + text + "\n" }
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "1: empty"},
		"comments alone":          {"# nothing\n", "1: empty"},
		"not YAML":                {head + "  - {mac", "not YAML: "},
		"a tab":                   {head + "\t- x", "not YAML: "},
		"a second document":       {head + "---\n" + head, "a second document (want one)"},
		"a list":                  {"- 1\n", "1: plan: a list (want keys and values)"},
		"an unknown key":          {head + "vid: [1]\n", `5: plan: unknown key "vid" (want topology if needed, vids, pcp if needed, nodes, pairs if needed)`},
		"a key twice":             {head + "vids: [3]\n", `5: plan: "vids" is on line 1, too (want it once)`},
		"a merge":                 {node(`{<<: {vid: 1}, mac: "02:00:00:00:00:03", vid: 1}`), `5: node 2: unknown key "<<"`},
		"an alias":                {"vids: [1, 2]\nnodes:\n  - &x {mac: \"02:00:00:00:00:01\", vid: 1}\n  - *x\n", "4: node 1: an alias (want keys and values)"},
		"a list as a key":         {head + "[1]: 2\n", "5: plan: a list as a key (want a word)"},
		"no vids":                 {head[len("vids: [1, 2]\n"):], "1: plan: no vids (want"},
		"no nodes":                {"vids: [1]\n", "1: plan: no nodes (want"},
		"nodes are none":          {"vids: [1]\nnodes: []\n", "2: 0 nodes: want 1 to 4096"},
		"nodes are nothing":       {"vids: [1]\nnodes:\n", "2: nodes: nothing (want a list)"},
		"vids are no list":        {"vids: 1-4\n" + head[len("vids: [1, 2]\n"):], `1: vids: "1-4" (want a list)`},
		"a vid is a word":         {strings.Replace(head, "[1, 2]", "[1, 2, x]", 1), `1: vid: "x" (want a number of 1 to 4094)`},
		"a vid is a fraction":     {strings.Replace(head, "[1, 2]", "[1, 2, 3.5]", 1), `1: vid: "3.5" (want a number of 1 to 4094)`},
		"a vid with a 0 before":   {strings.Replace(head, "[1, 2]", "[1, 2, 010]", 1), "1: vid 010: want no 0 before it"},
		"a vid is a text":         {strings.Replace(head, "[1, 2]", "[1, 2, '3']", 1), `1: vid: "3" (want a number of 1 to 4094)`},
		"vid 4095":                {strings.Replace(head, "[1, 2]", "[1, 2,\n4095]", 1), "2: vid 4095: want 1 to 4094"},
		"vid 0":                   {strings.Replace(head, "[1, 2]", "[1, 2, 0]", 1), "1: vid 0: want 1 to 4094"},
		"a huge vid":              {strings.Replace(head, "[1, 2]", "[1, 2, 99999999999999999999]", 1), `want`},
		"a vid twice":             {strings.Replace(head, "[1, 2]", "[1, 2, 2]", 1), "1: vid 2: given twice"},
		"pcp 8":                   {head + "pcp: 8\n", "5: pcp 8: want 0 to 7"},
		"a topology that is none": {head + "topology: [1]\n", "5: topology: a list (want a text)"},
		"a topology of two lines": {head + "topology: \"a\\nb\"\n", "5: topology: want at most 255 bytes of text on one line"},
		"a node that is a word":   {node("x"), `5: node 2: "x" (want keys and values)`},
		"a node that is nothing":  {node(""), `5: node 2: nothing (want keys and values)`},
		"no mac":                  {node("{vid: 1}"), "5: node 2: no mac (want name if needed, mac, vid, priority if needed)"},
		"no vid":                  {node(`{mac: "02:00:00:00:00:03"}`), "5: node 2: no vid (want"},
		"a bad mac":               {node("{mac: 02:00:00, vid: 1}"), `5: node 2: mac "02:00:00": want six bytes such as 02:00:00:00:00:01`},
		"a group's mac":           {node(`{mac: "03:00:00:00:00:03", vid: 1}`), "5: node 2: mac 03:00:00:00:00:03: no station's address"},
		"a mac twice":             {node(`{mac: "02:00:00:00:00:01", vid: 1}`), "5: node 2: mac 02:00:00:00:00:01: is node 0's, too"},
		"another vid":             {node(`{mac: "02:00:00:00:00:03", vid: 3}`), "5: node 2: vid 3: not among the plan's vids"},
		"a node's vid 4095":       {node(`{mac: "02:00:00:00:00:03", vid: 4095}`), "5: node 2: vid 4095: want 1 to 4094"},
		"a name of digits":        {node(`{name: 7, mac: "02:00:00:00:00:03", vid: 1}`), `5: node 2: name "7": want`},
		"a name that is nothing":  {node(`{name: , mac: "02:00:00:00:00:03", vid: 1}`), `5: node 2: name: nothing (want a text)`},
		"a priority":              {node(`{priority: high, mac: "02:00:00:00:00:03", vid: 1}`), `5: node 2: priority: "high" (want a number of -1000000 to 1000000)`},
		"pairs are a list":        {head + "pairs: [1]\n", "5: pairs: a list (want keys and values)"},
		"a pair of one":           {head + "pairs:\n  1: 1\n", `6: pair "1": want the numbers of two nodes, such as 2-8`},
		"a pair of names":         {head + "pairs: {left-right: 1}\n", `5: pair "left-right": want the numbers of two nodes`},
		"a pair of itself":        {head + "pairs: {1-1: 1}\n", `5: pair 1-1: want two nodes of 0 to 1`},
		"a pair of too many":      {head + "pairs: {0-2: 1}\n", `5: pair 0-2: want two nodes of 0 to 1`},
		"a pair twice":            {head + "pairs:\n  0-1: 1\n  1-0: 2\n", "7: pair 0-1: is on line 6, too (want it once)"},
		"a pair's vid":            {head + "pairs: {0-1: 3}\n", "5: pair 0-1: vid 3: not among the plan's vids"},
		"a pair's vid is a list":  {head + "pairs: {0-1: [1]}\n", "5: pair 0-1: vid: a list (want a number of 1 to 4094)"},
		"too large":               {strings.Repeat("#", plan.MaxFile+1), "1: too large (want at most 11534336 bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePlan(c.text)
			var at *strictyaml.SyntaxError
			if p != nil || !errors.Is(err, plan.ErrInvalid) || !errors.As(err, &at) {
				t.Fatalf("%v, %v, want ErrInvalid and a SyntaxError", p, err)
			}
			text := err.Error()
			if !strings.HasPrefix(text, "plan.yaml:") || !strings.Contains(strings.TrimPrefix(text, "plan.yaml:"), c.want) || strings.Contains(text, "\n") {
				t.Errorf("%s\nwant one fault: %s", text, c.want)
			}
			if line, _, ok := strings.Cut(c.want, ": "); ok && line[0] <= '9' && fmt.Sprint(at.Line) != line {
				t.Errorf("line %d, want %s", at.Line, line)
			}
		})
	}
}

// All faults at once, in the order of their lines, whether the file's form is wrong or what it
// says.
func TestParse_SaysAllFaultsAtOnce(t *testing.T) {
	_, err := parsePlan(`vids: [1, 2, 4095]
nodes:
  - {mac: "02:00:00:00:00:01", vid: 1}
  - {mac: "02:00:00:00:00:01", vid: 3, title: x}
  - {vid: 0}
pairs:
  0-9: 1
  0-1: 2
  1-0: 1
PCP: 1
`)
	want := `plan.yaml:1: vid 4095: want 1 to 4094
plan.yaml:4: node 1: unknown key "title" (want name if needed, mac, vid, priority if needed)
plan.yaml:4: node 1: mac 02:00:00:00:00:01: is node 0's, too (want one for each node)
plan.yaml:4: node 1: vid 3: not among the plan's vids (want one of them)
plan.yaml:5: node 2: vid 0: want 1 to 4094
plan.yaml:5: node 2: no mac (want name if needed, mac, vid, priority if needed)
plan.yaml:7: pair 0-9: want two nodes of 0 to 2, the lower one first
plan.yaml:9: pair 0-1: is on line 8, too (want it once)
plan.yaml:10: plan: unknown key "PCP" (want topology if needed, vids, pcp if needed, nodes, pairs if needed)`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

func TestParse_SaysABoundedNumber(t *testing.T) {
	var b strings.Builder
	b.WriteString("vids: [1]\nnodes:\n")
	for range 1000 {
		b.WriteString("  - {vid: 0}\n")
	}
	_, err := parsePlan(b.String())
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != strictyaml.MaxFaults+1 || !strings.HasSuffix(lines[strictyaml.MaxFaults], ": and more (mend these first)") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestParse_ReaderFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := plan.Parse("plan.yaml", iotest.ErrReader(broken)); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "plan.yaml: ") {
		t.Errorf("%v", err)
	}
}

// Whatever the bytes: no panic; either faults with lines, or a valid plan which comes back the same
// from what is written of it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(smallPlan))
	f.Add([]byte("vids: [1]\nnodes: [{mac: '020000000001', vid: 1}]\ntopology: 'a''b\\'\n"))
	f.Add([]byte("vids: [1\nnodes: *x"))
	const two = "vids: [1, 2]\npcp: 3\nnodes: [{name: a, mac: '020000000001', vid: 1, priority: 2}, {mac: '020000000002', vid: 2}]\n"
	for _, text := range []string{
		two + "pairs: {0-1: 2}", two + "pairs: {1-0: 2, 0-1: 1}", two + "pairs: {x: 2}", two + "pairs: {1-1: 2}", two + "pairs: {0-9: 2}", two + "pairs: {0-1: 5}",
		two + "pairs: {x-1: 2}", two + "pairs: {01-2: 2}", strings.Replace(two, "mac: '020000000001'", "mac: []", 1), strings.Replace(two, "020000000001", "x", 1), strings.Replace(two, "[1, 2]", "[1, 1]", 1),
		strings.Replace(two, "vid: 2", "vid: 3", 1), strings.Replace(two, "000002", "000001", 1),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Parse("f", bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, plan.ErrInvalid) || !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("%v", err)
			}
			return
		}
		written := planText(t, p)
		if len(p.Pairs) == 0 {
			p.Pairs = nil
		}
		if again, err := parsePlan(written); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%v\n%+v, want\n%+v, by way of\n%s", err, again, p, written)
		}
	})
}

func ExampleParse() {
	const file = `vids: [1, 2]
nodes:
  - {mac: "02:00:00:00:00:01", vid: 1}
  - {mac: "02:00:00:00:00:02", vid: 2}
pairs:
  0-1: 2
`
	pl, err := plan.Parse("plan.yaml", strings.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("0 and 1 use VID", pl.PairVID(0, 1))

	network, _ := topology.FatTree(2, 1, 1) // which has VID 1 alone
	fmt.Println(pl.Check(network))

	_, err = plan.Parse("plan.yaml", strings.NewReader(strings.Replace(file, "0-1: 2", "0-1: 5", 1)))
	fmt.Println(err)
	// Output:
	// 0 and 1 use VID 2
	// bad plan: vid 2: the topology does not have it (it has 1)
	// plan.yaml:6: pair 0-1: vid 5: not among the plan's vids (want one of them)
}
