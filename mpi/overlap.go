package mpi

import (
	"cmp"
	"slices"
	"unsafe"
)

// A collective operation may have its data and its result in the same memory. Most have sent, or
// copied, what they give before they write; an Alltoall has to know.

// overlap reports whether some of the parts that n ranks have in one list share memory with those
// that they have in another one.
func overlap[T Element](n int, a, b func(rank int) []T) bool {
	aFrom, aTo := span(n, a)
	bFrom, bTo := span(n, b)
	if aTo <= bFrom || bTo <= aFrom { // as slices of two arrays
		return false
	}
	all := make([]extent, 0, 2*n)
	for k := range n {
		all = append(all, extentOf(a(k), 0), extentOf(b(k), 1))
	}
	slices.SortFunc(all, func(x, y extent) int { return cmp.Compare(x.from, y.from) })
	var upTo [2]uintptr // where those of each list end that begin before
	for _, e := range all {
		if e.from < e.to && e.from < upTo[1-e.list] {
			return true
		}
		upTo[e.list] = max(upTo[e.list], e.to)
	}
	return false
}

// extent is where a part of a list begins and ends.
type extent struct {
	from, to uintptr
	list     int
}

func extentOf[T Element](part []T, list int) extent {
	b := bytesOf(part)
	if len(b) == 0 {
		return extent{list: list}
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return extent{from, from + uintptr(len(b)), list}
}

// span returns where the first one of some parts begins, and where the last one ends.
func span[T Element](n int, of func(rank int) []T) (from, to uintptr) {
	for k := range n {
		e := extentOf(of(k), 0)
		if from == 0 || e.from > 0 && e.from < from {
			from = e.from
		}
		to = max(to, e.to)
	}
	return from, to
}
