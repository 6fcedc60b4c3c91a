package control

import (
	"cmp"
	"math"
	"slices"
)

// sharer is a flow that needs some places at once, and takes at most most.
type sharer struct {
	most   float64
	places []int
}

// fairShare returns what each flow gets if places share their capacity max-min fairly: no flow can
// get more unless one gets less that has no more. TCP comes near to it.
//
// All flows grow at one speed until they have enough, or one of their places is full: progressive
// filling, Bertsekas and Gallager, Data Networks, §6.5.2.
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
			} else {
				for _, j := range f.at[place] {
					f.stop(j, level)
				}
			}
		}
	}
	return f.share
}

// filling is the state of the places while all flows grow.
type filling struct {
	flows   []sharer
	share   []float64
	done    []bool    // by flow: grows no more
	left    []float64 // by place: capacity, less the flows that grow no more
	growing []int     // by place: the number of flows that grow
	at      [][]int   // by place: all flows
	first   int       // the place that was full first when it was last looked for, or -1
	level   float64   // its level then
}

func newFilling(flows []sharer, capacity []float64) *filling {
	f := &filling{
		flows: flows, share: make([]float64, len(flows)), done: make([]bool, len(flows)),
		left: slices.Clone(capacity), growing: make([]int, len(capacity)), at: make([][]int, len(capacity)),
		first: -1,
	}
	for i, flow := range flows {
		for _, p := range flow.places {
			f.growing[p]++
			f.at[p] = append(f.at[p], i)
		}
	}
	return f
}

// levelOf is how far the flows at a place can grow, if all go on: without end, if there are none.
func (f *filling) levelOf(place int) float64 {
	if f.growing[place] == 0 {
		return math.Inf(1)
	}
	return max(0, f.left[place]) / float64(f.growing[place])
}

// firstFull returns the place that is full first, and how far flows grow until then: without end,
// if no place becomes full. A place's level rises each time that one of its flows stops early, and
// never falls: so the place found last is still the first unless its own level has risen.
func (f *filling) firstFull() (place int, level float64) {
	if f.first < 0 || f.levelOf(f.first) > f.level {
		f.first, f.level = -1, math.Inf(1)
		for p := range f.left {
			if l := f.levelOf(p); l < f.level {
				f.first, f.level = p, l
			}
		}
	}
	return f.first, f.level
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
