package schedule

import (
	"fmt"
	"maps"
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

// remember returns f with a memory: each mask of a group asks again.
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
	for _, k := range trees(size, branching) {
		all = append(all, Tree(k))
	}
	return append(all, TreeTree(2), TreeTree(4), Star())
}

// branching are the trees that are considered.
var branching = []int{2, 3, 4, 6, 8, 12, 16, 32}

// trees returns those of some branchings that are considered for so many ranks: one with as many
// branches as ranks is the concurrent barrier. The binary tree always is.
func trees(ranks int, of []int) (ks []int) {
	for _, k := range of {
		if k < ranks || k == 2 {
			ks = append(ks, k)
		}
	}
	return ks
}

// nearly is the difference, in percent, up to which two costs count as the same: the accuracy of
// the model.
const nearly = 5

// Choices returns the algorithms that Auto considers for a size, the best first. Of those that
// cost nearly the least, the best has the fewest frames, and of those it is the simplest. The
// others follow by cost. Over one network and for more than 64 ranks the costs are estimates, which
// take no time to speak of.
func Choices(size int, nics ...LogP) []Choice {
	if size > maxWalk && len(nics) <= 1 {
		p := DefaultLogP
		if len(nics) == 1 {
			p = nics[0]
		}
		one := OneHost(size, p.Cores, p)
		return best(one.estimates(), nearly)
	}
	var all []Choice
	for _, a := range candidates(size) {
		if len(nics) > 1 {
			a = Stripe(a, len(nics))
		}
		all = append(all, Choice{a, a.Cost(size, nics...), a.Frames(size)})
	}
	return best(all, nearly)
}
