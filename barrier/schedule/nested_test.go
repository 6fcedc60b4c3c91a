package schedule

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A hierarchy of hierarchies ends in one multicast, however deep: each rank but one tells once.
func TestHierarchical_NestedFrames(t *testing.T) {
	inner := Hierarchical(Star(), Concurrent(), 3)
	for n, a := range map[int]Algorithm{9: inner, 27: Hierarchical(Star(), inner, 3), 81: Hierarchical(Star(), Hierarchical(Star(), inner, 3), 3)} {
		if err := a.Check(n); err != nil {
			t.Error(err)
		}
		if got := a.Frames(n); got != n {
			t.Errorf("%v for %d ranks: %d frames, want %d", a, n, got, n)
		}
	}
}

// A release on every network is that also where the algorithm that ends in it is a level of another
// one, and is one frame on each.
func TestHierarchical_RedundantRelease(t *testing.T) {
	const networks = 3
	for _, a := range []Algorithm{
		Hierarchical(Star(), Redundant(Concurrent(), networks), 4),
		Hierarchical(Star(), Hierarchical(Star(), Redundant(Tree(3), networks), 2), 2),
		Stripe(Hierarchical(TreeTree(2), Redundant(Tree(2), networks), 4), networks),
		Hierarchical(Hierarchical(Star(), Redundant(Tree(2), networks), 2), Redundant(Tree(2), networks), 4),
	} {
		for size := 2; size <= 40; size++ {
			if err := a.Check(size); err != nil {
				t.Error(err)
			}
			steps := a.Steps(0, size)
			release := steps[len(steps)-1].Notify
			for nic := range networks {
				if len(release) != networks || release[nic].To != All || release[nic].NIC != nic {
					t.Fatalf("%v for %d ranks: the release is %+v, want one to all on each network", a, size, release)
				}
			}
		}
	}
}

// With two networks Auto sends by both.
func TestAuto_UsesAllNetworks(t *testing.T) {
	for _, nics := range []int{1, 2, 3} {
		costs := make([]LogP, nics)
		for i := range costs {
			costs[i] = DefaultLogP
		}
		used := map[int]bool{}
		for rank := range 16 {
			for _, s := range Auto(costs...).Steps(rank, 16) {
				for _, n := range s.Notify {
					used[n.NIC] = true
				}
			}
		}
		if len(used) != nics {
			t.Errorf("%d networks, and it uses %v", nics, used)
		}
	}
}

// Members that give Auto other costs are told apart by the algorithm's name for their size wherever
// they have other schedules, also where Auto is within others. The name says the schedule.
func TestAuto_NamesTellCostsApart(t *testing.T) {
	costs := []LogP{DefaultLogP, {Os: 100 * time.Microsecond, L: time.Microsecond}, {Os: time.Microsecond, L: time.Second}}
	for what, of := range map[string]func(auto Algorithm) Algorithm{
		"alone":            func(a Algorithm) Algorithm { return a },
		"within groups":    func(a Algorithm) Algorithm { return Hierarchical(a, Star(), 5) },
		"among leaders":    func(a Algorithm) Algorithm { return Hierarchical(Shuffle(), a, 3) },
		"repeated":         func(a Algorithm) Algorithm { return HierarchicalRepeated(a, a, 4) },
		"striped":          func(a Algorithm) Algorithm { return Stripe(Hierarchical(a, a, 4), 2) },
		"two levels below": func(a Algorithm) Algorithm { return Hierarchical(Star(), Hierarchical(a, a, 3), 2) },
	} {
		differ := false
		for size := 2; size <= 40; size++ {
			schedules := map[string]string{}
			for _, p := range costs {
				a := of(Auto(p))
				if err := a.Check(size); err != nil {
					t.Fatalf("%s, %d ranks: %v", what, size, err)
				}
				var steps [][]Step
				for rank := range size {
					steps = append(steps, a.Steps(rank, size))
				}
				name, schedule := a.For(size).String(), fmt.Sprint(steps)
				if other, is := schedules[name]; is && other != schedule {
					t.Errorf("%s, %d ranks: two schedules have the name %s", what, size, name)
				}
				schedules[name] = schedule
				parsed, err := Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				if got := parsed.Steps(size-1, size); !reflect.DeepEqual(got, steps[size-1]) {
					t.Errorf("%s, %d ranks: %s is parsed as another schedule", what, size, name)
				}
			}
			differ = differ || len(schedules) > 1
		}
		if !differ {
			t.Errorf("%s: all costs choose alike: this shows nothing", what)
		}
	}
}

func panics(f func()) (said string) {
	defer func() {
		if e := recover(); e != nil {
			said = fmt.Sprint(e)
		}
	}()
	f()
	return ""
}

// What follows the chassis in a composition has the same labels at all ranks, at the low end and above
// it.
func TestChassisRepeated_WithinOthers(t *testing.T) {
	for _, a := range []Algorithm{
		HierarchicalRepeated(ChassisRepeated(), Shuffle(), 12), Hierarchical(Star(), ChassisRepeated(), 2),
		HierarchicalRepeated(Chassis(), ChassisRepeated(), 5),
	} {
		for size := 1; size <= 70; size++ {
			if err := a.Check(size); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An algorithm of one's own may use half of the labels, also within others, and twice: here the
// first, and some above a quarter.
func TestNew_LabelsWithinOthers(t *testing.T) {
	own := New("own", func(rank, size int) (steps []Step) {
		for _, label := range []uint8{0, 64, 65, 66, 67, 68, 86, 87, 88, 120} {
			var up, down Step
			for r := 1; r < size; r++ {
				switch rank {
				case 0:
					up.Await = append(up.Await, Receive{From: r, Label: label})
					down.Notify = append(down.Notify, Send{To: r, Label: label})
				case r:
					up.Notify = []Send{{To: 0, Label: label}}
					down.Await = []Receive{{From: 0, Label: label}}
				}
			}
			steps = append(steps, up, down)
		}
		return steps
	})
	for _, a := range []Algorithm{own, HierarchicalRepeated(own, Tree(2), 4), HierarchicalRepeated(Shuffle(), own, 4)} {
		for size := 1; size < 20; size++ {
			if err := a.Check(size); err != nil {
				t.Error(err)
			}
		}
	}
}

// Auto considers each tree once: one with as many branches as ranks is the concurrent barrier.
func TestChoices_Candidates(t *testing.T) {
	for size, want := range map[int]string{
		2:  "shuffle concurrent tree:2 treetree:2 treetree:4 star",
		3:  "shuffle concurrent tree:2 treetree:2 treetree:4 star",
		4:  "shuffle concurrent tree:2 tree:3 treetree:2 treetree:4 star",
		8:  "shuffle concurrent tree:2 tree:3 tree:4 tree:6 treetree:2 treetree:4 star",
		32: "shuffle concurrent tree:2 tree:3 tree:4 tree:6 tree:8 tree:12 tree:16 treetree:2 treetree:4 star",
		33: "shuffle concurrent tree:2 tree:3 tree:4 tree:6 tree:8 tree:12 tree:16 tree:32 treetree:2 treetree:4 star",
	} {
		var got []string
		for _, a := range candidates(size) {
			got = append(got, a.String())
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%d ranks: %s, want %s", size, s, want)
		}
	}
}

// Levels that need more labels than there are, as two of one's own do with a release after them, are
// refused. Steps has no error to return.
func TestCheck_TooManyLabels(t *testing.T) {
	own := New("own", func(rank, size int) []Step { return Star().Steps(rank, size) })
	if err := Hierarchical(own, Star(), 2).Check(8); err != nil {
		t.Error(err)
	}
	twice := Hierarchical(own, own, 2)
	const want = "hier:2:own:own for 8 ranks: wrong schedule: schedule: label 256 (want less than 256: too many levels?)"
	if err := twice.Check(8); !errors.Is(err, ErrWrong) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if said := panics(func() { twice.Steps(0, 8) }); !strings.Contains(said, "label 256") {
		t.Errorf("Steps panics with %q", said)
	}
	mistake := New("mistake", func(rank, size int) []Step { panic("a mistake") })
	if said := panics(func() { _ = mistake.Check(2) }); said != "a mistake" {
		t.Errorf("a panic of one's own becomes %q", said)
	}
}
