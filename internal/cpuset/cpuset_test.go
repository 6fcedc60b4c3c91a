package cpuset

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
)

// system is a sysfs whose processors are of the cores that the lists name.
func system(file string, lists ...string) fstest.MapFS {
	sys := fstest.MapFS{}
	for number, list := range lists {
		if list != "" {
			sys[fmt.Sprintf("devices/system/cpu/cpu%d/topology/%s", number, file)] = &fstest.MapFile{Data: []byte(list + "\n")}
		}
	}
	return sys
}

// Each core gives a thread before one of them gives its second, whether these are side by side or
// far apart; shares are whole cores where there are enough.
func TestSpread(t *testing.T) {
	const file = "core_cpus_list"
	sideBySide := system(file, "0-1", "0-1", "2-3", "2-3")
	for _, c := range []struct {
		name    string
		sys     fstest.MapFS
		allowed []int
		spread  []int
		cores   int
		shares  [][]int // of two
	}{
		{"side by side", sideBySide, []int{0, 1, 2, 3}, []int{0, 2, 1, 3}, 2, [][]int{{0, 1}, {2, 3}}},
		{"far apart", system(file, "0,2", "1,3", "0,2", "1,3"), []int{0, 1, 2, 3},
			[]int{0, 1, 2, 3}, 2, [][]int{{0, 2}, {1, 3}}},
		{"an old kernel", system("thread_siblings_list", "0-1", "0-1", "2-3", "2-3"), []int{0, 1, 2, 3},
			[]int{0, 2, 1, 3}, 2, [][]int{{0, 1}, {2, 3}}},
		{"one thread a core", system(file, "0", "1"), []int{0, 1}, []int{0, 1}, 2, [][]int{{0}, {1}}},
		{"one core", system(file, "0-1", "0-1"), []int{0, 1}, []int{0, 1}, 1, [][]int{{0}, {1}}},
		{"some are allowed", sideBySide, []int{1, 2, 3}, []int{1, 2, 3}, 2, [][]int{{1}, {2, 3}}},
		{"three cores", system(file, "0", "1", "2"), []int{0, 1, 2}, []int{0, 1, 2}, 3, [][]int{{0, 1}, {2}}},
		{"nothing is told", fstest.MapFS{}, []int{4, 7}, []int{4, 7}, 2, [][]int{{4}, {7}}},
		{"an empty list", system(file, "0-1", ""), []int{0, 1}, []int{0, 1}, 2, [][]int{{0}, {1}}},
		{"one processor", system(file, "0"), []int{0}, []int{0}, 1, [][]int{nil, nil}},
		{"none", fstest.MapFS{}, nil, nil, 0, [][]int{nil, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := describe(c.sys, c.allowed)
			if got := spread(all); !slices.Equal(got, c.spread) {
				t.Errorf("in the order %v, want %v", got, c.spread)
			}
			if got := physical(all); got != c.cores {
				t.Errorf("%d cores, want %d", got, c.cores)
			}
			for k, want := range c.shares {
				if got := share(all, k, 2); !slices.Equal(got, want) {
					t.Errorf("share %d of 2 is %v, want %v", k, got, want)
				}
			}
		})
	}
}

// All processors are in one share each.
func TestShare_Whole(t *testing.T) {
	all := describe(system("core_cpus_list", "0,4", "1,5", "2,6", "3", "0,4", "1,5", "2,6"), []int{0, 1, 2, 3, 4, 5, 6})
	for n := 1; n <= len(all); n++ {
		var shared []int
		for k := range n {
			of := share(all, k, n)
			if len(of) == 0 {
				t.Errorf("share %d of %d is empty", k, n)
			}
			shared = append(shared, of...)
		}
		if slices.Sort(shared); !slices.Equal(shared, []int{0, 1, 2, 3, 4, 5, 6}) {
			t.Errorf("%d shares have %v", n, shared)
		}
	}
}

// Here there is a processor, as this test runs on one.
func TestAllowed(t *testing.T) {
	all, cores := Allowed(), Physical()
	if runtime.GOOS != "linux" {
		return
	}
	if len(all) == 0 || cores == 0 || cores > len(all) || !slices.Equal(Share(0, 1), slices.Sorted(slices.Values(all))) {
		t.Errorf("%v may be used, of %d cores; all in one: %v", all, cores, Share(0, 1))
	}
}
