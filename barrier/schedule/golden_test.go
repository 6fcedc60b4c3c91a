package schedule_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// Labels and networks are on the wire: nodes of two versions that give one algorithm must have the
// same schedules. A digest stands for those of all ranks, of 1 to 36.
func TestSchedule_Golden(t *testing.T) {
	for name, want := range map[string]uint64{
		"auto":                                0x69c49198f3be01e1,
		"auto:2":                              0x425926311e3a8d4b,
		"chassis":                             0x40ffad464fbb97f5,
		"chassis-repeated":                    0x7860ee8dd1b66d79,
		"concurrent":                          0x66bb5c4d9ba75f84,
		"heap:2":                              0xae0c58ec89c7d27,
		"heap:3":                              0x7f2b1e6d54230315,
		"hier:3":                              0x3fa104615ce95825,
		"hier:3:hier:2:star:tree:2:star":      0xe8ace7b82a877b29,
		"hier:4:tree:2:shuffle":               0x49595238e2a29cdd,
		"offload":                             0x66bb5c4d9ba75f84,
		"redundant:2:tree:2":                  0x5d562d01621a86c7,
		"redundant:3:concurrent":              0xf1ad2f715e81305b,
		"repeated:2:chassis-repeated:chassis": 0x51da3eeabe27bf4b,
		"repeated:3:star:tree:2":              0x7dc94698d00b71dc,
		"shuffle":                             0xbe4ab1dd632dbe9f,
		"star":                                0xac44a7e074944111,
		"stripe:2:auto":                       0x68c7d0cacfcc30c,
		"stripe:2:tree:3":                     0xbbae435616fb25e7,
		"stripe:3:star":                       0xed649911c6f21bf3,
		"tree:2":                              0xa369bef93a669023,
		"tree:3":                              0x9b5a7e6a3370953d,
		"tree:4":                              0x50e137392186a7d4,
		"treetree:2":                          0xe0165100664762ff,
		"treetree:3":                          0x84736281c6ef636b,
	} {
		a, err := schedule.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := fnv.New64a()
		for size := 1; size <= 36; size++ {
			for rank := range size {
				fmt.Fprintln(sum, size, rank, a.Steps(rank, size))
			}
		}
		if got := sum.Sum64(); got != want {
			t.Errorf("%q: %#x, want %#x", name, got, want)
		}
	}
}

// The model's costs decide what Auto chooses, and nodes must choose alike: what it says of each
// candidate, to the nanosecond, of 1 to 17 ranks, and of 33.
func TestChoices_Golden(t *testing.T) {
	for _, c := range []struct {
		name string
		nics []schedule.LogP
		want uint64
	}{
		{"processors of their own", nil, 0x6963e9736b906bd},
		{"two shared cores", []schedule.LogP{schedule.SharedCores(2)}, 0x8f5039b4ccf24d0e},
		{"five shared cores", []schedule.LogP{schedule.SharedCores(5)}, 0x844d600c63d4318c},
		{"two networks", []schedule.LogP{schedule.DefaultLogP, {Os: 700, L: 3000, Or: 900, Gap: 1200}}, 0xbf10e02ae5434699},
		{"two networks on shared cores", []schedule.LogP{schedule.SharedCores(3), schedule.SharedCores(3)}, 0x990eb9d7dd4201fb},
	} {
		sum := fnv.New64a()
		for size := 1; size <= 33; size++ {
			if size == 18 {
				size = 33
			}
			for _, x := range schedule.Choices(size, c.nics...) {
				exits, events := x.Algorithm.Timeline(size, c.nics...)
				fmt.Fprintln(sum, size, x.Algorithm, x.Cost, x.Frames, exits, events)
			}
		}
		for _, a := range []schedule.Algorithm{ // copies of a release arrive behind the exits
			schedule.Redundant(schedule.Tree(2), 2), schedule.Redundant(schedule.Concurrent(), 2),
		} {
			for size := 2; size < 9; size++ {
				exits, _ := a.Timeline(size, c.nics...)
				fmt.Fprintln(sum, size, a, exits)
			}
		}
		if got := sum.Sum64(); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Algorithms are nested up to eight deep, and no deeper.
func TestParse_Depth(t *testing.T) {
	nested := strings.Repeat("stripe:1:", 7)
	if _, err := schedule.Parse(nested + "shuffle"); err != nil {
		t.Errorf("eight deep: %v", err)
	}
	if _, err := schedule.Parse("stripe:1:" + nested + "shuffle"); err == nil || !strings.Contains(err.Error(), "more than 8 deep") {
		t.Errorf("nine deep: %v", err)
	}
}

// Those that have multicasts say so, and no others: a group joins a multicast group for them.
func TestMulticasts(t *testing.T) {
	for name, want := range map[string]bool{
		"shuffle": false, "treetree:2": false, "heap:2": true, "star": false, "chassis": false, "tree:2": true, "concurrent": true, "offload": true,
		"hier:3:star:tree:2": true, "hier:3:tree:2:star": false, "redundant:2:tree:3": true,
	} {
		a, err := schedule.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Multicasts(9); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
