package sim

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

func TestSimCenju_Throughput(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "throughput.svg")
	lines := simLines[cenjuLine](t, "cenju", "--experiment", "throughput", "--size", "1k,8k", "--receiver", "40", "--plot", plot)
	var modes []string
	for _, l := range lines {
		modes = append(modes, l.Mode)
		if l.Schema != 1 || l.Bench != "sim" || l.Experiment != "throughput" || l.Network != 36 || l.Receiver != 40 ||
			l.Invalidation != 200 || l.DelayUS != 9 || l.PacketBytes != 512 || l.FIFOBytes != 1536 || l.PieceBytes != 8192 || l.Host.Kernel == "" {
			t.Errorf("%+v", l)
		}
		if l.MBPerS > 36.01 || math.Abs(l.MBPerS/l.Formula-1) > .02 || math.Abs(float64(l.SizeBytes)/l.CycleUS-l.MBPerS) > .01 {
			t.Errorf("%d bytes in %.2f us: %.2f MB/s, formula %.2f", l.SizeBytes, l.CycleUS, l.MBPerS, l.Formula)
		}
	}
	if got := strings.Join(modes, " "); got != "not-pipelined not-pipelined pipelined pipelined remote-write remote-write remote-write-uncut remote-write-uncut" {
		t.Fatalf("modes: %s", got)
	}
	if l := lines[0]; math.Abs(l.MBPerS-25.8) > .1 || math.Abs(l.Limit-30.5) > .1 {
		t.Errorf("%.2f MB/s, limit %.2f; want 25.8 (1024 bytes in 25.6 + 9 + 5.1 us), and 30.5", l.MBPerS, l.Limit)
	}
	checkSVG(t, plot, "Throughput of Cenju-3")
}

func TestSimCenju_Sweep(t *testing.T) {
	lines := simLines[sweepLine](t, "cenju", "--experiment", "sweep", "--size", "64k", "--invalidation", "100")
	if len(lines) != 15 {
		t.Fatalf("%d lines, want three of each of five parameters", len(lines))
	}
	l := lines[8]
	if l.Parameter != "invalidation" || l.Value != 200 || l.Unit != "MB/s" || l.Invalidation != 200 || l.Sizes[0] != 64<<10 ||
		math.Abs(l.Rates[0]-31) > .1 || math.Abs(l.Formulas[0]-31) > .1 {
		t.Errorf("%+v", l)
	}
}

func TestSimCenju_Latency(t *testing.T) {
	lines := simLines[stepLine](t, "cenju", "--experiment", "latency")
	if len(lines) != 11 {
		t.Fatalf("%d lines, want 7 steps and 4", len(lines))
	}
	if l := lines[10]; l.Experiment != "latency" || l.Figure != 8 || l.TakesUS != 8 || l.DoneUS != 33 || l.Step == "" {
		t.Errorf("%+v", l)
	}
}

// Without --experiment there are all three; comma-separated values are of one.
func TestSimCenju_Tables(t *testing.T) {
	out, errs, status := command(t, "sim", "cenju", "--size", "4k", "--fifo", "4096")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	for _, want := range []string{
		"FIFO 4096, ", "\n4096          35.7      35.7  ####", "\nfifo           5632 bytes   35.7\n", "\nreceiver's kernel (measured)                            8     33\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("printed\n%swant %q in it", out, want)
		}
	}
	for piece, want := range map[string]string{"8192": "# The paper: 34.7 MB/s from 8 KB on ", "4096": "# The paper: nothing of such pieces; "} {
		out, _, _ := command(t, "sim", "cenju", "--experiment", "throughput", "--size", "4k", "--piece", piece)
		if !strings.Contains(out, want) {
			t.Errorf("--piece %s printed\n%swant %q in it", piece, out, want)
		}
	}
	out, _, _ = command(t, "sim", "cenju", "--experiment", "latency", "--csv")
	if !strings.HasPrefix(out, "schema,bench,experiment,figure,step,takes_us,done_us\n1,sim,latency,7,") {
		t.Errorf("printed\n%s", out)
	}
}
