package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// wantTime skips a test with -short, with which the tests run under the race detector: a simulation
// has no goroutines, and sim/vbft tests the same ones.
func wantTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("[short] skip: a simulation of seconds")
	}
}

// simLines runs an experiment with --json, and checks that docs/simulation.md knows each key.
func simLines[T any](t *testing.T, args ...string) (lines []T) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "simulation.md"))
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, append([]string{"sim"}, append(args, "--json")...)...)
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	for line := range strings.Lines(out) {
		var l T
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		var keys map[string]any
		_ = json.Unmarshal([]byte(line), &keys) // it did above
		for key := range keys {
			if !strings.Contains(string(doc), "`"+key+"`") {
				t.Errorf("%s is not in docs/simulation.md", key)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func TestSimVBFT_Figure9(t *testing.T) {
	wantTime(t)
	plot := filepath.Join(t.TempDir(), "fig9.svg")
	lines := simLines[changeLine](t, "vbft", "--experiment", "fig9", "--seconds", "3", "--seed", "7", "--plot", plot)
	if len(lines) != 60 {
		t.Fatalf("%d lines, want 60", len(lines))
	}
	first := lines[0]
	if first.Schema != 1 || first.Experiment != "fig9" || first.Nodes != 16 || first.BitsPerS != 1e9 || first.Seed != 7 || first.SenderS != 1 ||
		first.ReceiverS != 2 || first.OldVID != 1 || first.NewVID != 2 || len(first.Receiver) != 8 || first.Host.Kernel == "" {
		t.Errorf("%+v", first)
	}
	before, between, after := lines[15], lines[35], lines[55]
	if before.MBPerS < 225 || before.MBPerS > 245 || between.MBPerS > 150 || between.Flooded < 1e4 || after.MBPerS < 340 || after.Flooded != 0 {
		t.Errorf("%.1f MB/s, then %.1f with %d flooded, then %.1f with %d; want about 235, less, and more than at first",
			before.MBPerS, between.MBPerS, between.Flooded, after.MBPerS, after.Flooded)
	}
	if between.AtS != 1.75 {
		t.Errorf("line 35 is at %v s, want 1.75", between.AtS)
	}
	checkSVG(t, plot, "Receive bandwidth of nodes 8 to 15")
}

func TestSimVBFT_Figure11(t *testing.T) {
	wantTime(t)
	plot := filepath.Join(t.TempDir(), "fig11.svg")
	lines := simLines[cgLine](t, "vbft", "--experiment", "fig11", "--iterations", "1", "--rate", "1G", "--compute", "5ms", "--plot", plot)
	var names []string
	for _, l := range lines {
		names = append(names, l.Network)
		if l.Schema != 1 || l.Experiment != "fig11" || l.Topology != "vbft:4x4x4" || l.Order != 75000 || l.ComputeUS != 5000 || l.ElapsedS <= 0 || l.Relative > 1.01 {
			t.Errorf("%+v", l)
		}
	}
	if got := strings.Join(names, " "); got != "flat tree default optimised rerouted" {
		t.Fatalf("networks: %s", got)
	}
	if d, o := lines[2].Relative, lines[3].Relative; d > .9*o || o < .95 {
		t.Errorf("default %.3f, optimised %.3f of flat", d, o)
	}
	checkSVG(t, plot, "NPB CG on vbft:4x4x4")
}

func checkSVG(t *testing.T, file, title string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); !strings.Contains(s, "<svg") || !strings.Contains(s, title) || !strings.HasSuffix(strings.TrimSpace(s), "</svg>") {
		t.Errorf("%s: no drawing titled %q", file, title)
	}
}

func TestSimVBFT_Tables(t *testing.T) {
	wantTime(t)
	for _, c := range []struct{ args, want string }{
		{"--experiment fig9 --seconds 0.6 --barrier", "node 0 changes to VID 2 at 0.2 s, node 8 at 0.2 s"},
		{"--experiment fig9 --seconds 0.6 --barrier", " MB/s before, "},
		{"--experiment fig9 --seconds 0.6 --topology vbft:2x2x2@100M", "# vbft:2x2x2@100M, hosts' cables 100Mbit/s"},
		{"--experiment fig9 --seconds 0.6 --rate 2.5G", " between, "},
		{"--experiment fig11 --iterations 1 --topology vbft:2x2x2 --compute 0s", "\nflat "},
	} {
		out, errs, status := command(t, append([]string{"sim", "vbft"}, strings.Fields(c.args)...)...)
		if status != cli.ExitDone || errs != "" || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, said %s, printed\n%swant %q in it", c.args, status, errs, out, c.want)
		}
	}
}
