package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// Choice is an algorithm that Auto considers, and its cost.
type Choice struct {
	Algorithm Algorithm
	Cost      time.Duration // of one barrier, by the model
	Frames    int           // of one barrier
}

// Auto returns the algorithm that is best by the model: for each size the first of Choices. All
// nodes must give the same parameters; none are DefaultLogP. With several networks, messages are
// spread over them.
func Auto(nics ...LogP) Algorithm {
	choose := remember(func(size int) Algorithm { return Choices(size, nics...)[0].Algorithm })
	return Algorithm{name: "auto", choose: choose, in: func(b *builder) { choose(b.size).all()(b) }}
}

// remember returns f with a memory: a choice for thousands of ranks takes a tenth of a second, and
// each mask of a group asks again.
func remember(f func(size int) Algorithm) func(size int) Algorithm {
	var known atomic.Pointer[map[int]Algorithm] // replaced, and never changed
	known.Store(new(map[int]Algorithm))
	return func(size int) Algorithm {
		before := known.Load()
		if a, ok := (*before)[size]; ok {
			return a
		}
		after := make(map[int]Algorithm, len(*before)+1)
		maps.Copy(after, *before)
		after[size] = f(size)
		known.Store(&after) // of two at once one is forgotten, and chosen again
		return after[size]
	}
}

// AutoShared is Auto for processes on one machine that share so many cores, by the costs of
// SharedCores. Its name is auto:CORES.
func AutoShared(cores int) Algorithm {
	a := Auto(SharedCores(cores))
	a.name = fmt.Sprintf("auto:%d", cores)
	return a
}

// candidates returns the algorithms that Auto chooses from, the simple ones first.
func candidates(size int) []Algorithm {
	all := []Algorithm{Shuffle(), Concurrent()}
	for _, k := range []int{2, 3, 4, 6, 8, 12, 16, 32} {
		if k < size || k == 2 {
			all = append(all, Tree(k))
		}
	}
	return append(all, TreeTree(2), TreeTree(4), Star())
}

// nearly is the difference, in percent, up to which two costs count as the same: the accuracy of
// the model.
const nearly = 5

// Choices returns the algorithms that Auto considers for a size, the best first. Of those that
// cost nearly the least, the best has the fewest frames, and of those it is the simplest. The
// others follow by cost.
func Choices(size int, nics ...LogP) []Choice {
	var all []Choice
	for _, a := range candidates(size) {
		if len(nics) > 1 {
			a = Stripe(a, len(nics))
		}
		all = append(all, Choice{a, a.Cost(size, nics...), a.Frames(size)})
	}
	byCost := func(a, b Choice) int { return cmp.Compare(a.Cost, b.Cost) }
	limit := slices.MinFunc(all, byCost).Cost * (100 + nearly) / 100
	best := slices.MinFunc(all, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(max(a.Cost, limit), max(b.Cost, limit)), cmp.Compare(a.Frames, b.Frames))
	})
	all = slices.DeleteFunc(all, func(c Choice) bool { return c.Algorithm.name == best.Algorithm.name })
	slices.SortStableFunc(all, byCost)
	return slices.Insert(all, 0, best)
}
