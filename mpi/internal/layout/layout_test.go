package layout

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// typemap is the naive twin of a layout: the place of each byte, as MPI 5.0 §5.1 defines it, and its
// bounds. Where any of them are markers, these alone count.
type typemap struct {
	bytes        []int
	lower, upper int
	placed       bool
	marked       bool
}

func (m *typemap) extent() int { return m.upper - m.lower }

func (m *typemap) add(of typemap, at int) {
	for _, b := range of.bytes {
		m.bytes = append(m.bytes, at+b)
	}
	switch lower, upper := at+of.lower, at+of.upper; {
	case !of.placed, m.marked && !of.marked:
	case !m.placed, of.marked && !m.marked:
		m.lower, m.upper, m.placed, m.marked = lower, upper, true, of.marked
	default:
		m.lower, m.upper = min(m.lower, lower), max(m.upper, upper)
	}
}

func (m *typemap) truly() (lower, extent int) {
	if len(m.bytes) == 0 {
		return 0, 0
	}
	lower = slices.Min(m.bytes)
	return lower, slices.Max(m.bytes) + 1 - lower
}

// random returns a layout and its twin.
func random(rng *rand.Rand, depth int) (Layout, typemap) {
	if depth == 0 {
		m := typemap{placed: true, upper: 1 + rng.IntN(8)}
		for b := range m.upper {
			m.bytes = append(m.bytes, b)
		}
		return Bytes(m.upper), m
	}
	of, twin := random(rng, depth-1)
	var m typemap
	switch rng.IntN(6) {
	case 0:
		n := rng.IntN(4)
		for k := range n {
			m.add(twin, k*twin.extent())
		}
		return Contiguous(n, of), m
	case 1:
		count, block, stride := rng.IntN(4), rng.IntN(3), rng.IntN(9)-4
		for k := range count {
			for b := range block {
				m.add(twin, (k*stride+b)*twin.extent())
			}
		}
		return Vector(count, block, stride, of), m
	case 2:
		lengths, places := make([]int, rng.IntN(4)), []int{}
		for k := range lengths {
			lengths[k] = rng.IntN(3)
			places = append(places, rng.IntN(12)-3)
			for b := range lengths[k] {
				m.add(twin, (places[k]+b)*twin.extent())
			}
		}
		return Indexed(lengths, places, of), m
	case 3:
		other, otherTwin := random(rng, depth-1)
		lengths, places := []int{rng.IntN(3), rng.IntN(3)}, []int{rng.IntN(40) - 20, rng.IntN(40)}
		for k, twin := range []typemap{twin, otherTwin} {
			for b := range lengths[k] {
				m.add(twin, 2*places[k]+b*twin.extent())
			}
		}
		return Struct(lengths, places, 2, []Layout{of, other}), m
	case 4:
		rows, columns := 1+rng.IntN(4), 1+rng.IntN(4)
		height, width := rng.IntN(rows+1), rng.IntN(columns+1)
		top, left := rng.IntN(rows-height+1), rng.IntN(columns-width+1)
		for row := top; row < top+height; row++ {
			for column := left; column < left+width; column++ {
				m.add(twin, (row*columns+column)*twin.extent())
			}
		}
		m.lower, m.upper, m.placed, m.marked = 0, rows*columns*twin.extent(), true, true
		return Subarray([]int{rows, columns}, []int{height, width}, []int{top, left}, of), m
	default:
		lower, extent := rng.IntN(9)-4, rng.IntN(48)-8
		m = twin
		m.lower, m.upper, m.placed, m.marked = 3*lower, 3*(lower+extent), true, true
		return of.Resized(lower, extent, 3), m
	}
}

// Random layouts of layouts are what their twins are, and messages of them are taken from where the
// twins' bytes are, and put back there.
func TestLayout_Model(t *testing.T) {
	programs := 20_000
	if testing.Short() {
		programs = 3_000
	}
	for seed := range uint64(programs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l, twin := random(rng, rng.IntN(4))
		if l.err != nil {
			t.Fatalf("seed %d: %v", seed, l.err)
		}
		lower, extent := l.Extent()
		first, length := l.TrueExtent()
		wantFirst, wantLength := twin.truly()
		if l.Size() != len(twin.bytes) || lower != twin.lower || extent != twin.extent() || first != wantFirst || length != wantLength {
			t.Fatalf("seed %d: size %d, from %d on %d, truly from %d on %d; want %d, %d, %d, %d, %d",
				seed, l.Size(), lower, extent, first, length,
				len(twin.bytes), twin.lower, twin.extent(), wantFirst, wantLength)
		}
		count := rng.IntN(4)
		var all typemap
		for k := range count {
			all.add(twin, k*extent)
		}
		checkCopies(t, seed, rng, &l, count, all.bytes)
	}
}

// checkCopies packs and unpacks count layouts, whose bytes are in some places.
func checkCopies(t *testing.T, seed uint64, rng *rand.Rand, l *Layout, count int, places []int) {
	t.Helper()
	memory := make([]byte, 400)
	for k := range memory {
		memory[k] = byte(rng.Uint32())
	}
	need := 0
	if len(places) > 0 {
		need = slices.Max(places) + 1
	}
	if slices.ContainsFunc(places, func(at int) bool { return at < 0 }) || need > len(memory) {
		if err := l.Check(len(memory), count); !errors.Is(err, ErrRange) {
			t.Fatalf("seed %d: bytes %v are in range: %v", seed, places, err)
		}
		return
	}
	if err := l.Check(need, count); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := l.Check(need-1, count); need > 0 && !errors.Is(err, ErrRange) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	message, want := make([]byte, len(places)), make([]byte, len(places))
	l.Pack(message, memory, count)
	for k, at := range places {
		want[k] = memory[at]
	}
	if !bytes.Equal(message, want) {
		t.Fatalf("seed %d: packed %v, want %v", seed, message, want)
	}
	if at, size, whole := l.Whole(count); whole && !bytes.Equal(memory[at:][:size], want) {
		t.Fatalf("seed %d: %d layouts are not the %d bytes at %d", seed, count, size, at)
	}
	short := message[:rng.IntN(len(message)+1)]
	for k := range short {
		short[k] ^= 0xff
	}
	expected := bytes.Clone(memory)
	for k := range short {
		expected[places[k]] = short[k]
	}
	l.Unpack(memory, short, count)
	if !bytes.Equal(memory, expected) {
		t.Fatalf("seed %d: unpacked %v, want %v", seed, memory, expected)
	}
}

// What is one piece of memory is known to be, so that nobody copies it.
func TestLayout_Whole(t *testing.T) {
	four := Bytes(4)
	for k, c := range []struct {
		layout   Layout
		count    int
		at, size int
		want     bool
	}{
		{layout: four, count: 3, size: 12, want: true},
		{layout: Vector(3, 2, 2, four), count: 2, size: 48, want: true},
		{layout: Indexed([]int{1, 2}, []int{5, 6}, four), count: 1, at: 20, size: 12, want: true},
		{layout: Vector(2, 1, 2, four), count: 1},
		{layout: four.Resized(0, 8, 1), count: 2},
		{layout: Vector(2, 1, 2, four), count: 0, want: true},
		{layout: Layout{}, count: 7, want: true},
	} {
		if at, size, ok := c.layout.Whole(c.count); at != c.at || size != c.size || ok != c.want {
			t.Errorf("%d: %d bytes at %d, %v", k, size, at, ok)
		}
	}
}

// A layout keeps few runs of what is regular.
func TestLayout_Runs(t *testing.T) {
	column := Vector(1000, 1, 1000, Bytes(8))
	for k, c := range []struct {
		layout Layout
		want   int
	}{
		{column, 1},
		{Contiguous(2, column.Resized(0, 1_000_000, 8)), 1}, // the column of two matrices
		{Contiguous(2, column.Resized(0, 1, 8)), 2},         // two columns
		{Subarray([]int{100, 100}, []int{50, 50}, []int{3, 4}, Bytes(8)), 1},
		{Contiguous(math.MaxInt>>16, Contiguous(0, Bytes(8))), 0},
	} {
		if got := len(c.layout.runs); got != c.want || c.layout.err != nil {
			t.Errorf("%d: %d runs, want %d: %v", k, got, c.want, c.layout.err)
		}
	}
}

// What cannot be made is an error, also of all that is made of it; so is what overflows.
func TestLayout_Errors(t *testing.T) {
	one, huge := Bytes(1), math.MaxInt
	for k, l := range []Layout{
		Bytes(0), Bytes(-1), Bytes(huge), Contiguous(-1, one), Contiguous(huge, one), Contiguous(mostBytes/2, Bytes(8)),
		Vector(2, -1, 1, one), Vector(2, 1, huge, one), Vector(3, 1, math.MinInt, one), Vector(1<<30, 1, 1<<30, one),
		Indexed([]int{1}, nil, one), Indexed([]int{1}, []int{huge}, one), Indexed([]int{-1}, []int{0}, one),
		Struct([]int{1}, []int{0}, 1, nil), Struct([]int{1}, nil, 1, []Layout{one}), Struct([]int{1}, []int{huge / 2}, 8, []Layout{one}),
		Subarray([]int{4}, []int{5}, []int{0}, one), Subarray([]int{4}, []int{2}, []int{3}, one), Subarray([]int{4}, []int{2}, []int{-1}, one),
		Subarray([]int{4}, []int{2}, nil, one), Subarray([]int{4}, nil, []int{2}, one), Subarray([]int{huge, huge}, []int{1, 1}, []int{0, 0}, one),
		Indexed(slices.Repeat([]int{1}, 3), make([]int, 3), Vector(mostBytes/2, 1, 0, one)),
		one.Resized(0, huge, 2), one.Resized(huge, 0, 1), Contiguous(mostRuns, Indexed([]int{1, 1}, []int{0, 2}, one)),
	} {
		outer := Contiguous(2, l)
		for _, err := range []error{l.err, outer.err, l.Check(huge, 1)} {
			if !errors.Is(err, ErrArgument) {
				t.Errorf("%d: %v", k, err)
			}
		}
	}
	if err := one.Check(10, -1); !errors.Is(err, ErrArgument) {
		t.Errorf("a negative count: %v", err)
	}
	if err := one.Check(10, huge); err == nil {
		t.Error("so many are in ten bytes")
	}
	if l := Bytes(8).Resized(0, 0, 1); !errors.Is(l.Check(8, mostBytes/4), ErrArgument) { // one on the other
		t.Error("so many have a size")
	}
}

// Sizes and the number of pieces are bounded, and a layout that would have more keeps none.
func TestLayout_Bounds(t *testing.T) {
	const pieces = 1 << 20
	most := map[int]int{32: 512 << 20, 64: math.MaxInt>>16 + 1}[bits.UintSize]
	one, two := Bytes(1), Indexed([]int{1, 1}, []int{0, 2}, Bytes(1)).Resized(0, 4, 1)
	for k, l := range []Layout{
		Bytes(most), Contiguous(most, one), Contiguous(pieces/2, two),
		Indexed([]int{1, pieces/2 - 1}, []int{-7, 0}, two),
	} {
		if l.err != nil {
			t.Errorf("%d: %v", k, l.err)
		}
	}
	for k, l := range []Layout{
		Bytes(most + 1), Contiguous(most+1, one), Contiguous(pieces/2+1, two),
		Indexed([]int{1, pieces / 2}, []int{-7, 0}, two),
	} {
		if l.err == nil || len(l.runs) > 2 {
			t.Errorf("%d: %v, and has %d runs", k, l.err, len(l.runs))
		}
	}
}
