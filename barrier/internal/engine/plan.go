package engine

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// plan is one rank's schedule in flat arrays, which are quick to search.
type plan struct {
	steps    []span
	awaits   []schedule.Receive
	notifies []schedule.Send
	stepOf   []int    // of each await
	keys     []uint64 // sorted: sender, label, index in awaits
}

// span is a step's awaits and notifies.
type span struct{ await, awaitEnd, notify, notifyEnd int }

func newPlan(steps []schedule.Step) *plan {
	p := new(plan)
	for i, s := range steps {
		first := span{await: len(p.awaits), notify: len(p.notifies)}
		for _, r := range s.Await {
			p.keys = append(p.keys, key(r.From, r.Label)|uint64(len(p.awaits)))
			p.awaits = append(p.awaits, r)
			p.stepOf = append(p.stepOf, i)
		}
		p.notifies = append(p.notifies, s.Notify...)
		first.awaitEnd, first.notifyEnd = len(p.awaits), len(p.notifies)
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

// notified returns the step that sends a rank the message with that label, or -1.
func (p *plan) notified(to int, label uint8) int {
	for i := range p.steps {
		for _, t := range p.notifies[p.steps[i].notify:p.steps[i].notifyEnd] {
			if t.Label == label && (t.To == to || t.To == schedule.All) {
				return i
			}
		}
	}
	return -1
}

// dependants reports by rank whether a member awaits messages of this one.
func (p *plan) dependants(size int) []bool {
	does := make([]bool, size)
	for _, t := range p.notifies {
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
