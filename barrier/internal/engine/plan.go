package engine

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// plan is one rank's schedule as the engine wants it: flat, and quick to search.
type plan struct {
	steps  []span
	awaits []schedule.Receive
	tells  []schedule.Send
	stepOf []int    // of each await
	keys   []uint64 // sorted: sender, label, index in awaits
}

// span is a step's awaits and tells.
type span struct{ await, awaitEnd, tell, tellEnd int }

func newPlan(steps []schedule.Step) *plan {
	p := new(plan)
	for i, s := range steps {
		first := span{await: len(p.awaits), tell: len(p.tells)}
		for _, r := range s.Await {
			p.keys = append(p.keys, key(r.From, r.Label)|uint64(len(p.awaits)))
			p.awaits = append(p.awaits, r)
			p.stepOf = append(p.stepOf, i)
		}
		p.tells = append(p.tells, s.Tell...)
		first.awaitEnd, first.tellEnd = len(p.awaits), len(p.tells)
		p.steps = append(p.steps, first)
	}
	slices.Sort(p.keys)
	return p
}

const keyIndexBits = 24

func key(from int, label uint8) uint64 {
	return uint64(from)<<(keyIndexBits+8) | uint64(label)<<keyIndexBits
}

// find returns the index of an awaited message, or -1.
func (p *plan) find(from int, label uint8) int {
	k := key(from, label)
	i, _ := slices.BinarySearch(p.keys, k)
	if i < len(p.keys) && p.keys[i]>>keyIndexBits == k>>keyIndexBits {
		return int(p.keys[i] & (1<<keyIndexBits - 1))
	}
	return -1
}

// told returns the step that tells a rank the message with that label, or -1.
func (p *plan) told(to int, label uint8) int {
	for i := range p.steps {
		for _, t := range p.tells[p.steps[i].tell:p.steps[i].tellEnd] {
			if t.Label == label && (t.To == to || t.To == schedule.All) {
				return i
			}
		}
	}
	return -1
}

// dependants returns by rank who awaits messages of this one.
func (p *plan) dependants(size int) []bool {
	does := make([]bool, size)
	for _, t := range p.tells {
		if t.To != schedule.All {
			does[t.To] = true
			continue
		}
		for rank := range does {
			does[rank] = true
		}
	}
	return does
}
