package schedule

import (
	"fmt"
	"testing"
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

// A group has two ranks at least.
func TestHierarchical_LeastGroup(t *testing.T) {
	for group := -1; group < 4; group++ {
		for name, f := range map[string]func(){
			"hier":     func() { Hierarchical(Star(), Star(), group) },
			"repeated": func() { HierarchicalRepeated(Star(), Star(), group) },
		} {
			if said := panics(f); (said != "") != (group < 2) {
				t.Errorf("%s of groups of %d: %q", name, group, said)
			}
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
