package schedule

import (
	"fmt"
	"strings"
	"testing"
)

// What a function is given that no algorithm can be made of, or no rank has, is refused in words
// that say what it was and what is right; and nothing else is.
func TestArguments_Refused(t *testing.T) {
	const tree, groups = "schedule: a tree of %d branches (want 2 or more)", "schedule: groups of %d (want 2 or more)"
	const networks, steps = "schedule: %d networks (want 1 to 64)", "schedule: rank %d of 3"
	known := Shape{Of: make([]int, 3), Hosts: make([]Host, 1)}
	two, few, many := []int{2, 3}, []int{-1, 0, 1}, []int{1, 2, 63, 64}
	for _, c := range []struct {
		name         string
		f            func(n int)
		right, wrong []int
		want         string
	}{
		{"Tree", func(n int) { Tree(n) }, two, few, tree},
		{"Heap", func(n int) { Heap(n) }, two, few, tree},
		{"TreeTree", func(n int) { TreeTree(n) }, two, few, tree},
		{"Hierarchical", func(n int) { Hierarchical(Star(), Star(), n) }, two, few, groups},
		{"HierarchicalRepeated", func(n int) { HierarchicalRepeated(Star(), Star(), n) }, two, few, groups},
		{"Stripe", func(n int) { Stripe(Star(), n) }, many, []int{-1, 0, 65}, networks},
		{"Redundant", func(n int) { Redundant(Star(), n) }, many, []int{-1, 0, 65}, networks},
		{"Steps", func(n int) { Shuffle().Steps(n, 3) }, []int{0, 1, 2}, []int{-1, 3, 4}, steps},
		{"Choose", func(n int) { known.Choose(n) }, []int{3}, []int{0, 2, 4}, "schedule: a shape of 3 ranks for %d"},
	} {
		for _, n := range c.right {
			if said := panics(func() { c.f(n) }); said != "" {
				t.Errorf("%s of %d: %s", c.name, n, said)
			}
		}
		for _, n := range c.wrong {
			if said, want := panics(func() { c.f(n) }), fmt.Sprintf(c.want, n); said != want {
				t.Errorf("%s of %d: %q, want %q", c.name, n, said, want)
			}
		}
	}
}

// Each number of a name has a least and a most value, and is the one that the algorithm has.
func TestParse_Numbers(t *testing.T) {
	for before, c := range map[string]struct {
		least, most int
		after       string
	}{
		"tree:":      {2, 65536, ""},
		"treetree:":  {2, 65536, ""},
		"heap:":      {2, 65536, ""},
		"auto:":      {1, 65536, ""},
		"hier:":      {2, 65536, ":star:shuffle"},
		"repeated:":  {2, 65536, ":star:shuffle"},
		"stripe:":    {1, 64, ":star"},
		"redundant:": {1, 64, ":star"},
	} {
		for _, n := range []int{c.least, c.least + 1, c.most - 1, c.most} {
			name := fmt.Sprint(before, n, c.after)
			if a, err := Parse(name); err != nil || a.String() != name {
				t.Errorf("%s: %v, %v", name, a, err)
			}
		}
		for _, n := range []int{c.least - 1, c.most + 1} {
			name := fmt.Sprint(before, n, c.after)
			want := fmt.Sprintf("algorithm %q: \"%d\": want a number of %d to %d (", name, n, c.least, c.most)
			if _, err := Parse(name); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
	if a, err := Parse("hier:5"); err != nil || a.String() != "hier:5:star:tree:2" {
		t.Errorf("a group alone: %v, %v", a, err)
	}
}
