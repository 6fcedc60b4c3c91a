//go:build linux

package grid

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/bench/campaign/internal/history"
	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) {
	if Node() {
		return
	}
	os.Exit(testbed.Main(m))
}

// A burst loses as many frames as it says, and as many in a row.
func TestShape_Burst(t *testing.T) {
	s := Shape{Loss: .3, Burst: 3}
	cfg := s.config(rand.New(rand.NewPCG(1, 2)))
	lost, bursts, row := 0, 0, 0
	const frames = 200_000
	for range frames {
		if cfg.Match(nil) {
			lost++
			row++
			continue
		}
		if row > 0 {
			bursts++
		}
		row = 0
	}
	if share, mean := float64(lost)/frames, float64(lost)/float64(bursts); share < .28 || share > .32 || mean < 2.8 || mean > 4.5 {
		t.Errorf("%.3f of the frames are lost, %.2f in a row; want 0.3, and 3 or more", share, mean)
	}
}

func TestCells(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cells() {
		names[c.Name] = true
	}
	if len(names) != 24 {
		t.Errorf("%d cells, want 24", len(names))
	}
}

// One node of three is killed while frames are lost: the others agree, and go on.
func TestRun_Kill(t *testing.T) {
	testbed.Need(t)
	cell := Cells()[1]
	o, err := cell.Run(t.Context(), 3, 1, t.TempDir())
	if err != nil || len(o.Wrong) > 0 || o.Barriers == 0 || len(o.Noticed) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	t.Log("noticed after", o.Noticed)
}

func TestOutcome_Notice(t *testing.T) {
	const second = int64(time.Second)
	all := []history.Event{
		{Node: 0, Kind: history.Fail, At: 12 * second}, {Node: 1, Kind: history.Leave, At: 12 * second},
		{Node: 1, Kind: history.Fail, At: 30 * second}, {Node: 2, Kind: history.Fail, At: 40 * second},
		{Node: 0, Group: 1, Kind: history.Fail, At: 50 * second},
	}
	c := &Cluster{cell: &Cell{PeerTimeout: 2 * time.Second}, doneAt: 10 * second}
	var o Outcome
	if o.notice(all, nil, c); len(o.Noticed) > 0 {
		t.Errorf("%+v, want nothing where nobody is dead", o)
	}
	if o.notice(all, []int{2}, c); len(o.Noticed) != 2 || o.Noticed[0] != 2*time.Second || len(o.Wrong) != 1 {
		t.Errorf("%+v, want 2 s and 20 s, and one that is too late", o)
	}
}

// A node that crashes before it is told to stop has broken a promise, and says by what.
func TestDisturb_NodeZeroHasCrashed(t *testing.T) {
	for range 20 {
		p, err := startProcess(exec.Command("sh", "-c", "exec >&-; for i in 1 2 3 4 5 6 7 8 9; do echo crash $i >&2; done; exit 1"),
			(*exec.Cmd).Start)
		if err != nil {
			t.Fatal(err)
		}
		<-p.gone
		c := &Cluster{ctx: t.Context(), cell: &Cell{}, procs: []*process{p}}
		x, err := c.disturb(0)
		if err != nil {
			t.Fatal(err)
		}
		wrong := c.await(x, 0)
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0], "node 0: ended early: crash 1") || !strings.Contains(wrong[0], "crash 9") {
			t.Fatalf("%q", wrong)
		}
		c.procs = append(c.procs, p)
		if _, _, err := kill(1)(c); err != nil {
			t.Fatal(err)
		}
	}
}
