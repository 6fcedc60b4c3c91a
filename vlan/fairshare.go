package vlan

import (
	"cmp"
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
// All flows grow at one speed until they have what they want, or a place that they need is full. So it takes a step for each flow
// or place at most. (Bertsekas and Gallager, Data Networks, §6.5.2.)
func fairShare(flows []sharer, capacity []float64) []float64 {
	share := make([]float64, len(flows))
	f := filling{left: slices.Clone(capacity), growing: make([]int, len(capacity)), at: make([][]int, len(capacity))}
	order := make([]int, len(flows))
	for i, flow := range flows {
		order[i] = i
		for _, p := range flow.places {
			f.growing[p]++
			f.at[p] = append(f.at[p], i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(flows[i].most, flows[j].most) })
	f.done = make([]bool, len(flows))
	level := 0.0
	for next := 0; next < len(order); {
		if f.done[order[next]] {
			next++
			continue
		}
		full, step := f.firstFull()
		if want := flows[order[next]].most - level; want <= step {
			level += want
			f.grow(want)
			f.stop(order[next], flows, share, level)
			continue
		}
		level += step
		f.grow(step)
		f.left[full] = 0
		for _, i := range f.at[full] {
			f.stop(i, flows, share, level)
		}
	}
	return share
}

// filling is how full places are while all flows grow.
type filling struct {
	left    []float64
	growing []int   // flows at each place that still grow
	at      [][]int // all flows at each place
	done    []bool  // by flow
}

// firstFull returns the place that is full first, and how much each flow grows until then.
func (f *filling) firstFull() (place int, step float64) {
	step = inf
	for p, n := range f.growing {
		if n > 0 && f.left[p]/float64(n) < step {
			place, step = p, f.left[p]/float64(n)
		}
	}
	return place, step
}

func (f *filling) grow(step float64) {
	for p, n := range f.growing {
		if n > 0 {
			f.left[p] = max(0, f.left[p]-step*float64(n))
		}
	}
}

// stop ends the growth of a flow, if it grows.
func (f *filling) stop(i int, flows []sharer, share []float64, level float64) {
	if f.done[i] {
		return
	}
	f.done[i], share[i] = true, level
	for _, p := range flows[i].places {
		f.growing[p]--
	}
}
