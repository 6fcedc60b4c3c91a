package rawlane_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
	"time"
)

// promised are numbers that a document promises, and the constants that keep them. Defaults of flags
// are in docs/command-reference.md, which is generated.
var promised = []struct {
	page, text     string
	dir, name, val string
}{
	{"docs/tuning.md", "before it sleeps: 100 µs by default", "mcd", "DefaultSpin", "100µs"},
	{"docs/decisions/001-progress.md", "250 µs (`unmaskAfter`)", "mcd", "unmaskAfter", "250µs"},
	{"docs/decisions/012-staying-awake-for-a-stream.md", "nothing has come for 60 µs (`busyPoll`)", "mcd", "busyPollTime", "60µs"},
	{"docs/decisions/041-who-may-be-released-by-what.md", "at least 3 ms", "barrier/internal/engine", "firstNack", "3ms"},
	{"docs/decisions/041-who-may-be-released-by-what.md", "Twenty nacks without an answer", "barrier/internal/agreement", "Queries", "20"},
	{"docs/decisions/041-who-may-be-released-by-what.md", "50 ms at most for all groups", "barrier", "maxLinger", "50ms"},
	{"docs/diagnosis.md", "each within `--wait` (200 ms)", "cluster/pathtest", "DefaultTimeout", "200ms"},
	{"docs/manager-api.md", "256 programs have sessions already", "vlan/manager/server", "maxSessions", "256"},
	{"docs/manager-api.md", "the programs are asked first, for 0.2 s at most", "vlan/manager/server", "reportTimeout", "200ms"},
	{"docs/manager-api.md", "Bodies have\nat most 8 MiB", "vlan/manager/api", "MaxBody", "8388608"},
	{"docs/command-reference.md", "(default 5m0s)", "internal/l2switch", "DefaultAgeing", "5m0s"}, // IEEE 802.1Q, table 8-6: 300 s
}

// A number that a document promises is the number in the source.
func TestNumbersInDocuments(t *testing.T) {
	files, _ := sources(t)
	for _, p := range promised {
		page, err := os.ReadFile(p.page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), p.text) {
			t.Errorf("%s does not say %q any more: change this test with it", p.page, p.text)
		}
		if got := constantOf(files, p.dir, p.name); got != p.val {
			t.Errorf("%s says %q, and %s.%s is %q, not %q", p.page, p.text, p.dir, p.name, got, p.val)
		}
	}
}

// constantOf returns the value of a constant of numbers and units of time, as text; "" without one.
func constantOf(files []sourceFile, dir, name string) (value string) {
	for _, f := range files {
		if f.dir != dir {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range spec.Names {
				if id.Name == name && i < len(spec.Values) {
					value = evaluate(spec.Values[i])
				}
			}
			return true
		})
	}
	return value
}

// evaluate computes an expression like 3 * time.Millisecond or 8 << 20.
func evaluate(e ast.Expr) string {
	isTime := false
	text := types.ExprString(e)
	for unit, d := range map[string]time.Duration{
		"time.Nanosecond": 1, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
		"time.Second": time.Second, "time.Minute": time.Minute,
	} {
		if strings.Contains(text, unit) {
			isTime = true
			text = strings.ReplaceAll(text, unit, constant.MakeInt64(int64(d)).ExactString())
		}
	}
	tv, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil {
		return err.Error()
	}
	n, _ := constant.Int64Val(constant.ToInt(tv.Value))
	if isTime {
		return time.Duration(n).String()
	}
	return constant.MakeInt64(n).ExactString()
}
