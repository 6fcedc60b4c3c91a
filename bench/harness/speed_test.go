//go:build linux

package harness

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Results that were slowed do not count, and their variant has further turns; but not one whose
// results are slowed always: in its table all count, also those of others, so that like stands
// beside like.
func TestRunRounds_Slowed(t *testing.T) {
	const quick, slow = 4 * time.Microsecond, 6 * time.Microsecond
	var table, other Table
	var turns []string
	variant := func(name string, probes ...time.Duration) Variant {
		turn := 0
		return Variant{Name: name, Run: func(context.Context) error {
			time.Sleep(time.Second)
			turns = append(turns, name)
			speed.note(0, quick) // the slowest core counts
			speed.note(1, probes[turn])
			speed.note(1, probes[turn])
			if name != "always" {
				table.Add(name, float64(turn), 10*float64(turn))
			}
			if name != "never" {
				other.Add(name, float64(turn))
			}
			turn++
			return nil
		}}
	}
	variants := []Variant{
		variant("at times", slow, quick, slow, quick, quick, quick),
		variant("never", quick, quick, quick),
		variant("always", slow, slow, slow),
	}
	useSpeed(t)
	b := Bench{Rounds: 3, limits: true}
	synctest.Test(t, func(t *testing.T) {
		if err := b.RunRounds(t.Context(), variants); err != nil {
			t.Error(err)
		}
	})
	round := []string{"at times", "never", "always"}
	if want := append(slices.Repeat(round, 3), "at times", "at times"); !slices.Equal(turns, want) {
		t.Errorf("turns %q, want %q", turns, want)
	}
	for name, want := range map[string][]float64{"at times": {1, 3, 4}, "never": {0, 1, 2}} {
		r := table.Find(name)
		if got := r.Counted(); !slices.Equal(got, want) || r.Rounds() != len(want) {
			t.Errorf("%s: %v count, %d rounds, want %v", name, got, r.Rounds(), want)
		}
		if r.Median() != want[1] || r.Min() != want[0] || r.Max() != want[2] || r.Second() != 10*want[1] {
			t.Errorf("%s: median %v of %v to %v, beside it %v, want those of %v",
				name, r.Median(), r.Min(), r.Max(), r.Second(), want)
		}
	}
	for name, want := range map[string]int{"at times": 5, "always": 3} {
		if got := other.Find(name).Rounds(); got != want {
			t.Errorf("%s, beside what is always slowed: %d results count, want all %d", name, got, want)
		}
	}
	var said strings.Builder
	report := Report{Tables: []*Table{&table, &other}}
	report.printSlowed(&said)
	want := "Others of this machine slowed the cores, or moved them apart, during 7 of 16 results; " +
		"2 of these do not count: those of tables whose rows all have better ones.\n\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// A result is judged by what was probed in its variant's turn alone, however short that is.
func TestRunRounds_EachTurnsPace(t *testing.T) {
	const quick, slow = 4 * time.Microsecond, 6 * time.Microsecond
	useSpeed(t)
	var table Table
	variant := func(name string, takes, probe time.Duration) Variant {
		return Variant{Name: name, Run: func(context.Context) error {
			speed.note(0, probe)
			time.Sleep(takes)
			table.Add(name, 1)
			return nil
		}}
	}
	b := Bench{Rounds: 2}
	synctest.Test(t, func(t *testing.T) {
		err := b.RunRounds(t.Context(), []Variant{variant("long", time.Second, slow), variant("short", together/5, quick)})
		if err != nil {
			t.Error(err)
		}
	})
	for name, want := range map[string]int{"long": 2, "short": 0} {
		if got := table.Find(name).slowed(); got != want {
			t.Errorf("%s: %d results were slowed, want %d", name, got, want)
		}
	}
}

// The second numbers are of rounds that count, also where one that does not has the same result.
func TestSecond_OfARoundThatCounts(t *testing.T) {
	const quick, slow = 4 * time.Microsecond, 6 * time.Microsecond
	useSpeed(t)
	var table Table
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []struct {
			value, second float64
			probe         time.Duration
		}{{2.11, 9, slow}, {2.11, 3, quick}, {2.5, 3, quick}} {
			time.Sleep(time.Second)
			speed.note(0, quick)
			speed.note(1, r.probe)
			table.Add("ours", r.value, r.second)
		}
	})
	r := table.Find("ours")
	speed.note(1, quick)
	if got := r.Second(); got != 3 || r.Rounds() != 2 {
		t.Errorf("%v beside the median of %d rounds, want 3 of 2", got, r.Rounds())
	}
}

// Where most results of a row were slowed all count: no median is that of a few lucky rounds.
func TestCounts_MostAreSlowed(t *testing.T) {
	const quick, slow = 4 * time.Microsecond, 6 * time.Microsecond
	useSpeed(t)
	var table Table
	synctest.Test(t, func(t *testing.T) {
		for round := range 5 {
			for name, quickFrom := range map[string]int{"one": 4, "half": 3} {
				time.Sleep(time.Second)
				speed.note(0, quick)
				speed.note(1, map[bool]time.Duration{true: quick, false: slow}[round >= quickFrom])
				table.Add(name, float64(round))
			}
		}
	})
	for name := range map[string]bool{"one": true, "half": true} {
		if got := table.Find(name).Rounds(); got != 5 {
			t.Errorf("%s: %d results count, want all 5", name, got)
		}
	}
	table.Drop("one")
	table.Add("half", 5)
	if got := table.Find("half").Rounds(); got != 3 {
		t.Errorf("half of the results were slowed: %d count, want the other 3", got)
	}
}

// A result of cores that were far apart is one that was slowed.
func TestRunRounds_FarApart(t *testing.T) {
	const near = 60 * time.Nanosecond
	useSpeed(t)
	var table Table
	b := Bench{Rounds: 4, limits: true}
	throws, turn := []time.Duration{near, 3 * near, 3 * near / 2, 5 * near, near, near}, 0
	synctest.Test(t, func(t *testing.T) {
		err := b.RunRounds(t.Context(), []Variant{{Name: "ours", Run: func(context.Context) error {
			time.Sleep(time.Second)
			speed.noteThrow(throws[turn])
			table.Add("ours", float64(turn))
			turn++
			return nil
		}}})
		if err != nil {
			t.Error(err)
		}
	})
	if got, want := table.Find("ours").Counted(), []float64{0, 2, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("%v count, want %v", got, want)
	}
}

// Where few results are not slowed there are up to four times as many turns, until half as many as
// were asked for are not.
func TestRunRounds_MoreTurns(t *testing.T) {
	const near, far = 60 * time.Nanosecond, 300 * time.Nanosecond
	for quick, want := range map[int]int{
		1:   5,  // every turn
		4:   10, // turns 0, 4 and 8
		7:   15, // turns 0, 7 and 14
		100: 9,  // turn 0: of more than seven eighths slowed there are no more
	} {
		useSpeed(t)
		var table Table
		b := Bench{Rounds: 5, limits: true}
		turns := 0
		synctest.Test(t, func(t *testing.T) {
			err := b.RunRounds(t.Context(), []Variant{{Name: "ours", Run: func(context.Context) error {
				time.Sleep(time.Second)
				took := far
				if turns%quick == 0 {
					took = near
				}
				speed.noteThrow(took)
				table.Add("ours", float64(turns))
				turns++
				return nil
			}}})
			if err != nil {
				t.Error(err)
			}
		})
		if turns != want {
			t.Errorf("one turn in %d is quick: %d turns, want %d", quick, turns, want)
		}
	}
}

// Without limits that are to be met a run is as long as it was asked for.
func TestRunRounds_SlowedWithoutLimits(t *testing.T) {
	useSpeed(t)
	turns := 0
	var table Table
	b := Bench{Rounds: 2}
	synctest.Test(t, func(t *testing.T) {
		err := b.RunRounds(t.Context(), []Variant{{Name: "ours", Run: func(context.Context) error {
			time.Sleep(time.Second)
			turns++
			speed.note(0, time.Duration(turns)*time.Microsecond)
			table.Add("ours", 1)
			return nil
		}}})
		if err != nil || turns != 2 {
			t.Errorf("%d turns, %v; want 2", turns, err)
		}
	})
}

// Of a table whose lines have a cell for each column all results are told, as slowed and as all.
func TestReport_SlowedCells(t *testing.T) {
	const quick, slow = 4 * time.Microsecond, 6 * time.Microsecond
	useSpeed(t)
	var columns [2]Rows
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			for column := range columns {
				time.Sleep(time.Second)
				speed.note(0, []time.Duration{quick, slow}[column])
				columns[column].Add("ours", 1)
			}
		}
	})
	table := &Table{Rows: Rows{{Name: "ours"}},
		Cells: func(r *Row) []*Row { return []*Row{columns[0].Find(r.Name), columns[1].Find(r.Name)} },
		JSON:  func(*Row) map[string]any { return map[string]any{} }}
	var said strings.Builder
	(&Report{Tables: []*Table{table}}).printSlowed(&said)
	if line := table.line(table.Rows[0]); line["slowed"] != 3 || !strings.Contains(said.String(), "during 3 of 6 results; 0 of") {
		t.Errorf("%v slowed, said %q", line["slowed"], said.String())
	}
}

// Results that a program gives together were measured together.
func TestSpeedometer_Together(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s speedometer
		s.note(0, 4*time.Microsecond)
		s.note(0, 8*time.Microsecond)
		time.Sleep(time.Second)
		first := s.take()
		s.note(0, time.Microsecond)
		if second := s.take(); first.cores[0] != 6*time.Microsecond || second.cores[0] != first.cores[0] {
			t.Errorf("%v, then %v, want 6 µs", first, second)
		}
		time.Sleep(time.Second)
		s.note(0, 3*time.Microsecond)
		if third := s.take(); third.cores[0] != 2*time.Microsecond {
			t.Errorf("%v, want 2 µs: of the probes since", third)
		}
	})
}

// The probes are taken on each core, and end.
func TestSpeedometer_Watch(t *testing.T) {
	var s speedometer
	end := s.watch(t.Context())
	for s.count() == 0 {
		time.Sleep(probeEvery)
	}
	end()
	if s.throw.count > 0 && (s.throw.quickest <= 0 || s.throw.quickest > time.Second) {
		t.Errorf("the quickest throw took %v", s.throw.quickest)
	}
	for core, c := range s.cores {
		if c.count > 0 && (c.quickest <= 0 || c.quickest > time.Second) {
			t.Errorf("core %d: the quickest probe took %v", core, c.quickest)
		}
	}
}

func (s *speedometer) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cores {
		n += c.count
	}
	return n
}

// useSpeed gives the test a speedometer of its own.
func useSpeed(t *testing.T) {
	old := speed
	speed = new(speedometer)
	t.Cleanup(func() { speed = old })
}
