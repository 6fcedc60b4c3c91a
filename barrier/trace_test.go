package barrier_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestTraceAndStatsSayWhoWasLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 4, 1, fault.Config{}, 0).groups(t, barrier.Config{Algorithm: schedule.Concurrent()})
		if _, ok := all[0].Trace(0); ok {
			t.Error("a trace of nothing")
		}
		stages(t, all, 5, func(k, _ int) { time.Sleep(time.Duration(10*k) * time.Millisecond) })
		trace, ok := all[0].Trace(0)
		if !ok || trace.Generation != 5 || trace.Left != 30*time.Millisecond || len(trace.Steps) != 1 {
			t.Fatalf("%v %+v", ok, trace)
		}
		for i, a := range trace.Steps[0].Arrivals {
			if want := time.Duration(10*(i+1)) * time.Millisecond; !a.Here || a.Node != mcd.NodeID(i+1) || a.At != want {
				t.Errorf("arrival %d: %+v, want node %d after %v", i, a, i+1, want)
			}
		}
		if trace, _ := all[3].Trace(0); trace.Left != 0 {
			t.Errorf("the last one waits for nobody: %+v", trace)
		}
		s := all[0].Stats()
		if s.Barriers != 5 || s.Wait != 150*time.Millisecond || s.MaxWait != 30*time.Millisecond {
			t.Errorf("%+v", s)
		}
		if !slices.Equal(s.Last, []barrier.LastCount{{Node: 3, Count: 5}}) {
			t.Errorf("node 3 was last: %+v", s.Last)
		}
	})
}

func TestRollCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := open(t, 5, 1, fault.Config{Loss: 0.2}, 4)
		all := cluster.groups(t, barrier.Config{})
		cluster.groups(t, barrier.Config{ID: 1}) // keeps the port open where the first one is closed
		if _, err := all[0].Arrive(); err != nil {
			t.Fatal(err)
		}
		if _, err := all[3].Arrive(); err != nil {
			t.Fatal(err)
		}
		_ = all[2].Close()
		cluster.faults[4][0].Cut(true)
		ctx := limit(t)
		want := []barrier.Status{barrier.Entered, barrier.NotEntered, barrier.NoGroup, barrier.Entered, barrier.NoAnswer}
		got := all[0].RollCall(shorter(t, ctx, time.Second), 0)
		for k, p := range got {
			if p.Node != mcd.NodeID(k) || p.Status != want[k] {
				t.Errorf("node %d: %v, want %v", p.Node, p.Status, want[k])
			}
		}
	})
}

// A barrier that takes longer than usual says who has not come.
func TestLateBarriersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cluster := open(t, 4, 1, fault.Config{}, 0)
		all := cluster.groups(t, barrier.Config{Late: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)), Algorithm: schedule.Concurrent()})
		for _, k := range []int{1, 3} {
			if _, err := all[k].Arrive(); err != nil {
				t.Fatal(err)
			}
		}
		ticket, err := all[0].Arrive()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := all[2].Arrive(); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 { // one for each that waited
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if !strings.Contains(l, "barrier is late") || !strings.Contains(l, "not_entered=[2]") || !strings.Contains(l, "no_answer=[]") {
				t.Error(l)
			}
		}
	})
}
