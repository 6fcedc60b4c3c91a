package barrier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport/fault"
)

func TestTraceAndStatsSayWhoWasLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 4, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: schedule.Concurrent()})
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

// What has nothing in it is an empty list in JSON, and not null: the step in which a leaf enters, a barrier
// of one member, who was last before there was a barrier.
func TestTraceAndStats_AsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{1, 2} {
			all := open(t, size, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: schedule.Star()})
			var got []any
			for _, g := range all {
				got = append(got, g.Stats())
			}
			stages(t, all, 1, func(int, int) {})
			for _, g := range all {
				trace, _ := g.Trace(0)
				got = append(got, trace)
			}
			if text, err := json.Marshal(got); err != nil || bytes.Contains(text, []byte("null")) {
				t.Errorf("%d nodes: %s, %v", size, text, err)
			}
		}
	})
}

// A trace of a barrier that is under way has negative times for what is still to come, and for what came
// before this node has entered.
func TestTrace_OfABarrierUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 4, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: schedule.Shuffle()})
		arrive(t, all[1], barrier.Options{})
		time.Sleep(5 * time.Millisecond)
		arrive(t, all[0], barrier.Options{}) // it has heard 1, and awaits 2, which awaits 3
		time.Sleep(7 * time.Millisecond)
		trace, ok := all[0].Trace(0)
		want := barrier.Trace{Generation: 1, Left: -1, Steps: []barrier.TraceStep{
			{Done: 0, Arrivals: []barrier.TraceArrival{}},
			{Done: 0, Arrivals: []barrier.TraceArrival{{Node: 1, At: -5 * time.Millisecond, Here: true}}},
			{Done: -1, Arrivals: []barrier.TraceArrival{{Node: 2, At: -1}}},
		}}
		if !ok || !reflect.DeepEqual(trace, want) {
			t.Errorf("%v %+v, want %+v", ok, trace, want)
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 5, 1, fault.Config{Loss: 0.2}, 4)
		all := c.groups(t, barrier.GroupConfig{})
		arrive(t, all[0], barrier.Options{})
		arrive(t, all[3], barrier.Options{})
		_ = all[2].Close()
		c.faults[4][0].Cut(true)
		got, err := all[0].Status(shorter(t, limit(t), time.Second), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []barrier.Presence{barrier.Entered, barrier.NotEntered, barrier.NoGroup, barrier.Entered, barrier.NoAnswer}
		for k, m := range got {
			if m.Node != mcd.NodeID(k) || m.Presence != want[k] {
				t.Errorf("node %d: %v, want %v", m.Node, m.Presence, want[k])
			}
		}
	})
}

// Members answer also where one of two networks is dead, whichever it is.
func TestStatus_ANetworkIsDead(t *testing.T) {
	for dead := range 2 {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 3, 2, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{})
			for k := range c.faults {
				c.faults[k][dead].Cut(true)
			}
			arrive(t, all[1], barrier.Options{})
			got, err := all[0].Status(shorter(t, limit(t), time.Second), 0)
			if err != nil {
				t.Fatal(err)
			}
			want := []barrier.Presence{barrier.NotEntered, barrier.Entered, barrier.NotEntered}
			for k, m := range got {
				if m.Presence != want[k] {
					t.Errorf("without network %d: node %d: %v, want %v", dead, k, m.Presence, want[k])
				}
			}
		})
	}
}

// Before this node has entered a barrier the question is who has entered the first one: not this node.
func TestStatus_BeforeTheFirstBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{}, 1)
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})
		arrive(t, all[2], barrier.Options{})
		want := []barrier.Presence{barrier.NotEntered, barrier.NotEntered, barrier.Entered}
		for node := range all {
			got, err := all[node].Status(limit(t), 0)
			if err != nil {
				t.Fatal(err)
			}
			for k, m := range got {
				if m.Presence != want[k] {
					t.Errorf("node %d asks: node %d: %v, want %v", node, k, m.Presence, want[k])
				}
			}
		}
	})
}

// Requests at one time for several numbers do not take each other's answers.
func TestStatus_OfTwoNumbersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{Delay: 1, DelayMax: 3 * time.Millisecond}, 1)
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})
		arrive(t, all[0], barrier.Options{Number: 0})
		for _, g := range all {
			arrive(t, g, barrier.Options{Number: 1})
		}
		for range 50 {
			want := []barrier.Presence{barrier.NotEntered, barrier.Entered}
			expectNone(t, each([]*barrier.Group{all[0], all[0]}, func(number int, g *barrier.Group) error {
				got, err := g.Status(limit(t), uint8(number))
				if err == nil && got[1].Presence != want[number] {
					t.Errorf("number %d: node 1 has %v, want %v", number, got[1].Presence, want[number])
				}
				return err
			}))
		}
	})
}

func TestStatus_OfAClosedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 1).groups(t, barrier.GroupConfig{})
		_ = all[0].Close()
		if _, err := all[0].Status(limit(t), 0); !errors.Is(err, barrier.ErrClosed) {
			t.Error(err)
		}
	})
}

// A status request under way ends with ErrClosed when the group or the endpoint is closed.
func TestStatus_IsEndedByClose(t *testing.T) {
	for name, end := range map[string]func(*cluster, *barrier.Group) error{
		"group":    func(_ *cluster, g *barrier.Group) error { return g.Close() },
		"endpoint": func(c *cluster, _ *barrier.Group) error { return c.eps[0].Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, 1, fault.Config{}, 0)
			g := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})[0]
			c.faults[0][0].Cut(true)
			status := make(chan error)
			go func() {
				_, err := g.Status(limit(t), 0)
				status <- err
			}()
			time.Sleep(50 * time.Millisecond)
			if err := end(c, g); err != nil {
				t.Error(err)
			}
			if err := <-status; !errors.Is(err, barrier.ErrClosed) {
				t.Errorf("%s closed: %v, want ErrClosed", name, err)
			}
		})
	}
}

// A late barrier is logged with the nodes that have not entered.
func TestLateBarriersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		var all []*barrier.Group
		for _, e := range mcdtest.Open(t, 4, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			s := service(t, e, barrier.Config{Logger: logger})
			defer s.Close()
			all = append(all, group(t, s, barrier.GroupConfig{Late: 100 * time.Millisecond, Algorithm: schedule.Concurrent()}))
		}
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
		synctest.Wait() // for the loggers
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
