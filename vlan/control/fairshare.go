package control

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// sharer is a flow that shares places with others: it wants at most most.
type sharer struct {
	most   float64
	places []int
}

// fairShare returns what each flow gets if places share their capacity fairly (max-min): nobody can get more without
// somebody who has no more getting less. It is what TCP comes near to.
//
// All flows grow at one speed until they have what they want, or a place that they need is full. A place is full when its flows have come
// to a level that rises each time that one of them stops earlier, and never falls; so a heap of the levels as they once were finds the
// next one. (Bertsekas and Gallager, Data Networks, §6.5.2.)
func fairShare(flows []sharer, capacity []float64) []float64 {
	f := newFilling(flows, capacity)
	order := make([]int, len(flows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(flows[i].most, flows[j].most) })
	for _, i := range order {
		for !f.done[i] {
			place, level := f.firstFull()
			if flows[i].most <= level {
				f.stop(i, flows[i].most)
				continue
			}
			for _, j := range f.at[place] {
				f.stop(j, level)
			}
		}
	}
	return f.share
}

// filling is how full places are while all flows grow.
type filling struct {
	flows   []sharer
	share   []float64
	done    []bool    // by flow: it grows no more
	left    []float64 // by place: without what those have that grow no more
	growing []int     // by place: flows that do
	at      [][]int   // by place: all flows
	levels  levelHeap
}

func newFilling(flows []sharer, capacity []float64) *filling {
	f := &filling{
		flows: flows, share: make([]float64, len(flows)), done: make([]bool, len(flows)),
		left: slices.Clone(capacity), growing: make([]int, len(capacity)), at: make([][]int, len(capacity)),
	}
	for i, flow := range flows {
		for _, p := range flow.places {
			f.growing[p]++
			f.at[p] = append(f.at[p], i)
		}
	}
	for p, n := range f.growing {
		if n > 0 {
			f.levels = append(f.levels, fullAt{f.level(p), p})
		}
	}
	heap.Init(&f.levels)
	return f
}

// level is how far the flows at a place can grow, if all go on.
func (f *filling) level(place int) float64 { return max(0, f.left[place]) / float64(f.growing[place]) }

// firstFull returns the place that is full first, and how far flows grow until then: without end, if there is none.
func (f *filling) firstFull() (place int, level float64) {
	for len(f.levels) > 0 {
		first := &f.levels[0]
		if f.growing[first.place] == 0 {
			heap.Pop(&f.levels)
			continue
		}
		if now := f.level(first.place); now > first.level {
			first.level = now
			heap.Fix(&f.levels, 0)
			continue
		}
		return first.place, first.level
	}
	return 0, math.Inf(1)
}

// stop ends the growth of a flow, if it grows.
func (f *filling) stop(i int, level float64) {
	if f.done[i] {
		return
	}
	f.done[i], f.share[i] = true, level
	for _, p := range f.flows[i].places {
		f.growing[p]--
		f.left[p] -= level
	}
}

// fullAt is the level at which a place was to be full when it was last looked at.
type fullAt struct {
	level float64
	place int
}

type levelHeap []fullAt

func (h levelHeap) Len() int           { return len(h) }
func (h levelHeap) Less(i, j int) bool { return h[i].level < h[j].level }
func (h levelHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *levelHeap) Push(x any)        { *h = append(*h, x.(fullAt)) }
func (h *levelHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
