package sim

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/mcd"
)

// A line is a number of hosts of a figure, on one of its networks; a seed is that of the hub alone.
func TestSimMCD_Formats(t *testing.T) {
	wantTime(t)
	lines := simLines[mcdLine](t, "mcd", "--seed", "3")
	model, k, told := mcd.Fitted(), 0, 0
	for _, f := range mcd.Figures() {
		for _, p := range f.Points {
			if k == len(lines) {
				t.Fatalf("%d lines, and figure %d is not whole", k, f.Number)
			}
			l := lines[k]
			if k++; l.Source != f.Source || l.Algo != p.Algorithm.String() || l.Nodes != p.Ranks || (l.Network == "hub") != p.Hub ||
				l.Paper != cli.Micros(p.Paper) || l.Seed != 3 {
				t.Errorf("line %d is %+v, of %+v", k, l, p)
			}
			if p.Paper > 0 {
				told++
			}
			if !p.Hub && l.Model != cli.Micros(model.Switched(p.Algorithm, p.Ranks)) {
				t.Errorf("line %d is %+v: another run has another time", k, l)
			}
		}
	}
	if k != len(lines) || told != 12 {
		t.Errorf("%d lines of %d, %d numbers of the paper", k, len(lines), told)
	}
	out, errs, status := command(t, "sim", "mcd", "--csv", "--algo", "tree:3,shuffle", "--nodes", "3,9")
	want := []string{"1,sim,algo,,1,tree:3,3,switch,0,", "1,sim,algo,,1,tree:3,9,switch,", "1,sim,algo,,1,tree:3,3,hub,", "", "1,sim,algo,,1,shuffle,3,switch,"}
	rows := strings.Split(out, "\n")
	if status != cli.ExitDone || errs != "" || len(rows) != 1+8+1 ||
		!strings.HasPrefix(rows[0], "schema,bench,experiment,source,seed,algo,nodes,network,paper_us,model_us,") {
		t.Fatalf("status %d, said %s, printed %s", status, errs, out)
	}
	for i, prefix := range want {
		if !strings.HasPrefix(rows[1+i], prefix) {
			t.Errorf("row %d is %s, want %s...", i, rows[1+i], prefix)
		}
	}
}
