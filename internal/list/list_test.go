package list_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/list"
)

type item struct {
	number int
	node   list.Node[item]
}

func TestRemoveAtEveryPlace(t *testing.T) {
	for place := range 3 {
		var l list.List[item]
		var all [3]item
		for i := range all {
			l.PushBack(&all[i].node, &all[i])
		}
		if !l.Remove(&all[place].node) || l.Remove(&all[place].node) || all[place].node.In() {
			t.Errorf("%d is not removed once", place)
		}
		more := new(item)
		l.PushBack(&more.node, more)
		for i := range all {
			if i != place && l.PopFront() != &all[i] {
				t.Errorf("without %d: %d is not next", place, i)
			}
		}
		if l.PopFront() != more || l.PopFront() != nil {
			t.Errorf("without %d: the list does not end with what was pushed last", place)
		}
	}
}

// Two lists, and slices beside them, under random operations.
func TestAgreesWithSlices(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	var items [8]item
	for i := range items {
		items[i].number = i
	}
	var lists [2]list.List[item]
	var want [2][]*item
	for op := range 20000 {
		k, i := rng.IntN(2), &items[rng.IntN(len(items))]
		switch rng.IntN(3) {
		case 0:
			if !i.node.In() {
				lists[k].PushBack(&i.node, i)
				want[k] = append(want[k], i)
			}
		case 1:
			at := slices.Index(want[k], i)
			if got := lists[k].Remove(&i.node); got != (at >= 0) {
				t.Fatalf("seed %d, operation %d: Remove %d: %v", seed, op, i.number, got)
			}
			if at >= 0 {
				want[k] = slices.Delete(want[k], at, at+1)
			}
		default:
			got := lists[k].PopFront()
			if len(want[k]) == 0 {
				if got != nil {
					t.Fatalf("seed %d, operation %d: %d of an empty list", seed, op, got.number)
				}
				break
			}
			if got != want[k][0] {
				t.Fatalf("seed %d, operation %d: not the first", seed, op)
			}
			want[k] = want[k][1:]
		}
		var all []*item
		for i := lists[k].Front(); i != nil; i = i.node.Next() {
			all = append(all, i)
		}
		if !slices.Equal(all, want[k]) {
			t.Fatalf("seed %d, operation %d: another order", seed, op)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	var l list.List[item]
	var a, b item
	if n := testing.AllocsPerRun(100, func() {
		l.PushBack(&a.node, &a)
		l.PushBack(&b.node, &b)
		l.Remove(&a.node)
		l.PopFront()
	}); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}
