// Package layout says where the bytes of a message lie in memory, and in which order: MPI's derived
// datatypes. It is a pure core, and knows no elements.
//
// A layout is made of others, as in MPI, and kept as runs: pieces of one length at equal distances.
// So a column of a matrix is one run, however long it is.
//
// Source: MPI 5.0 §5.1 (derived datatypes).
package layout

import (
	"errors"
	"fmt"
)

// Sentinels.
var (
	// ErrArgument: no such layout can be made.
	ErrArgument = errors.New("no such layout")
	// ErrRange: the layout reaches beyond the memory.
	ErrRange = errors.New("layout reaches beyond the memory")
)

const (
	// mostBytes bounds sizes and distances: what an address has, or 512 MiB where an int has 32
	// bits, so that two of them may be added.
	mostBytes = 1 << (29 + 18*(^uint(0)>>63))
	// mostRuns bounds the memory of a layout.
	mostRuns = 1 << 20
)

// Layout is where a part of a message lies. One that cannot be made has an error, and so has each
// that is made of it; the zero value is one of these. It is not changed once it is made.
type Layout struct {
	made   bool
	runs   []run
	size   int    // bytes in it
	lower  int    // where it begins: lb
	extent int    // from one to the next
	bounds bounds // whose these two are
	first  int    // the first byte that is in it: true_lb
	end    int    // behind the last one
	err    error
}

// bounds says what a beginning and an extent are of. Where layouts of two kinds are put together
// those of the last kind count alone.
type bounds uint8

const (
	unbounded bounds = iota // there are none: it is empty
	ofBytes                 // of what is in it
	marked                  // of Resized: they are MPI's markers
)

// run is n pieces of size bytes, each stride behind the last one.
type run struct{ at, size, n, stride int }

// Bytes returns the layout of bytes that lie one behind the other, of an element for instance.
func Bytes(size int) Layout {
	l := Layout{made: true, runs: []run{{size: size, n: 1}}, size: size, extent: size, bounds: ofBytes, end: size}
	if size <= 0 || size > mostBytes {
		l.err = fmt.Errorf("%d bytes: %w", size, ErrArgument)
	}
	return l
}

// Contiguous returns n layouts, one behind the other: MPI_Type_contiguous.
func Contiguous(n int, of Layout) (l Layout) {
	l.made = true
	l.add(of, 0, n, of.extent)
	return l
}

// Vector returns count blocks of layouts, each stride layouts behind the last one: MPI_Type_vector.
func Vector(count, block, stride int, of Layout) (l Layout) {
	l.made = true
	l.add(Contiguous(block, of), 0, count, l.product(stride, of.extent))
	return l
}

// Indexed returns blocks of layouts, the k-th one of lengths[k] at places[k], counted in layouts:
// MPI_Type_indexed.
func Indexed(lengths, places []int, of Layout) (l Layout) {
	l.made = true
	if l.same("places", len(places), len(lengths)) {
		for k, n := range lengths {
			l.add(of, l.product(places[k], of.extent), n, of.extent)
		}
	}
	return l
}

// Struct returns blocks of different layouts, lengths[k] of of[k] at places[k], counted in units of
// some bytes: MPI_Type_create_struct. If some of them are of Resized or Subarray, it reaches as far
// as these do.
func Struct(lengths, places []int, unit int, of []Layout) (l Layout) {
	l.made = true
	if l.same("places", len(places), len(lengths)) && l.same("layouts", len(of), len(lengths)) {
		for k, n := range lengths {
			l.add(of[k], l.product(places[k], unit), n, of[k].extent)
		}
	}
	return l
}

// Subarray returns a part of an array, by rows, that has sizes[k] layouts in its k-th dimension:
// part[k] of them, from start[k] on. The next one is behind the whole array:
// MPI_Type_create_subarray.
func Subarray(sizes, part, start []int, of Layout) (l Layout) {
	l.made = true
	if !l.same("parts", len(part), len(sizes)) || !l.same("starts", len(start), len(sizes)) {
		return l
	}
	inner, row, at := of, of.extent, 0 // of the dimensions behind the k-th one
	for k := len(sizes) - 1; k >= 0; k-- {
		if start[k] < 0 || part[k] < 0 || start[k] > sizes[k]-part[k] {
			l.fail("dimension %d: %d from %d on, of %d", k, part[k], start[k], sizes[k])
		}
		outer := Layout{made: true}
		outer.add(inner, 0, part[k], row)
		at += l.product(start[k], row)
		inner, row = outer, l.product(sizes[k], row)
	}
	l.add(inner, at, 1, row)
	return l.Resized(0, row, 1)
}

// Resized returns the layout with another beginning and extent, counted in units of some bytes:
// MPI_Type_create_resized.
func (l Layout) Resized(lower, extent, unit int) Layout {
	l.lower, l.extent, l.bounds = l.product(lower, unit), l.product(extent, unit), marked
	return l
}

// add adds n layouts, the first one at a place, each stride bytes behind the last one.
func (l *Layout) add(of Layout, at, n, stride int) {
	if l.err == nil {
		l.err = of.failure()
	}
	if n < 0 {
		l.fail("%d layouts", n)
	}
	if l.err != nil || n == 0 {
		return
	}
	last := l.product(at, 1) + l.product(n-1, stride)
	if l.size += l.product(n, of.size); l.size > mostBytes || abs(at+of.lower) > mostBytes {
		l.fail("%d bytes at %d", l.size, at+of.lower)
		return
	}
	lower, upper := min(at, last)+of.lower, max(at, last)+of.lower+of.extent
	first, end := min(at, last)+of.first, max(at, last)+of.end
	if reach := max(abs(last), abs(lower), abs(upper), abs(first), abs(end)); reach > mostBytes {
		l.fail("as far as byte %d", reach)
		return
	}
	l.place(lower, upper, of.bounds)
	if of.runs == nil {
		return
	}
	if l.runs != nil {
		first, end = min(l.first, first), max(l.end, end)
	}
	l.first, l.end = first, end
	l.repeat(of.runs, at, n, stride)
}

// place has the layout reach from lower to upper, too, or alone, or not, as bounds says.
func (l *Layout) place(lower, upper int, of bounds) {
	if of < l.bounds || of == unbounded {
		return
	}
	if of == l.bounds {
		lower, upper = min(l.lower, lower), max(l.lower+l.extent, upper)
	}
	l.lower, l.extent, l.bounds = lower, upper-lower, of
}

// repeat appends runs n times.
func (l *Layout) repeat(runs []run, at, n, stride int) {
	if len(runs) == 1 {
		r := runs[0]
		r.at += at
		switch {
		case r.n == 1:
			r.n, r.stride = n, stride
			l.append(r)
			return
		case stride == r.n*r.stride: // it goes on
			r.n *= n
			l.append(r)
			return
		}
	}
	if n > (mostRuns-len(l.runs))/len(runs) {
		l.fail("more than %d pieces of memory", mostRuns)
		return
	}
	for k := range n {
		for _, r := range runs {
			r.at += at + k*stride
			l.append(r)
		}
	}
}

// append appends a run, to the last one if that ends where this one begins.
func (l *Layout) append(r run) {
	if r.stride == r.size {
		r.size, r.n = r.size*r.n, 1
	}
	if k := len(l.runs) - 1; k >= 0 && r.n == 1 && l.runs[k].n == 1 && l.runs[k].at+l.runs[k].size == r.at {
		l.runs[k].size += r.size
		return
	}
	if len(l.runs) == mostRuns {
		l.fail("more than %d pieces of memory", mostRuns)
		return
	}
	l.runs = append(l.runs, r)
}

// product multiplies, as far as addresses go.
func (l *Layout) product(a, b int) int {
	if b != 0 && (abs(a) > mostBytes/abs(b) || abs(a) < 0) { // the least int is its own abs
		l.fail("%d times %d bytes", a, b)
	}
	return a * b
}

func abs(a int) int { return max(a, -a) }

// same checks that two lists have one length.
func (l *Layout) same(what string, got, want int) bool {
	if got != want {
		l.fail("%d %s, want %d", got, what, want)
	}
	return got == want
}

// failure says why the layout cannot be used, or returns nil.
func (l *Layout) failure() error {
	if !l.made && l.err == nil {
		return fmt.Errorf("it is made of nothing (want Single, or what is made of that): %w", ErrArgument)
	}
	return l.err
}

func (l *Layout) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format+": %w", append(args, ErrArgument)...)
	}
}
