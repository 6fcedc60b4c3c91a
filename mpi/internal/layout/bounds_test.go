package layout

import (
	"errors"
	"testing"
)

// Layouts that are nested until they reach further than an address are refused: what they have
// together is no int.
func TestBounds_OfNestedLayouts(t *testing.T) {
	wide := func(of Layout) Layout {
		return Struct([]int{2}, []int{mostBytes / 8}, 8, []Layout{of.Resized(0, mostBytes/8, 8)})
	}
	far := Bytes(8)
	for range 1<<16 - 1 {
		far = Struct([]int{1}, []int{mostBytes / 8}, 8, []Layout{far}).Resized(0, 8, 1)
	}
	for name, l := range map[string]Layout{
		"two that are wide":   wide(wide(Bytes(8))),
		"65,535 that are far": Vector(2, 1, 1, far.Resized(0, mostBytes/8, 8)),
	} {
		if err := l.Check(64, 1); !errors.Is(err, ErrArgument) && !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v from %d to %d, want an error", name, err, l.first, l.end)
		}
	}
}

// The zero layout is none, and nothing can be made of it; that of no elements is one.
func TestBounds_OfNothing(t *testing.T) {
	var zero Layout
	for name, l := range map[string]Layout{
		"zero":    zero,
		"three":   Contiguous(3, zero),
		"a part":  Subarray([]int{2}, []int{1}, []int{0}, zero),
		"another": zero.Resized(0, 1, 8),
	} {
		if err := l.Check(64, 1); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: %v, want ErrArgument", name, err)
		}
	}
	for name, l := range map[string]Layout{
		"none":      Contiguous(0, Bytes(8)),
		"no blocks": Indexed(nil, nil, Bytes(8)),
		"no parts":  Struct(nil, nil, 8, nil),
	} {
		if err := l.Check(64, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A layout has a million pieces of memory at most, also one that names each.
func TestBounds_OfPieces(t *testing.T) {
	lengths, places := make([]int, mostRuns+1), make([]int, mostRuns+1)
	for k := range lengths {
		lengths[k], places[k] = 1, 2*k
	}
	if l := Indexed(lengths[1:], places[1:], Bytes(1)); l.err != nil {
		t.Errorf("%d pieces: %v", mostRuns, l.err)
	}
	if l := Indexed(lengths, places, Bytes(1)); !errors.Is(l.err, ErrArgument) {
		t.Errorf("%d pieces: %v, want ErrArgument", mostRuns+1, l.err)
	}
}

// A message that is shorter than the layout ends the unpacking: the rest would take days.
func TestUnpack_EndsWithTheMessage(t *testing.T) {
	memory, l := []byte{0}, Contiguous(mostBytes/8, Bytes(1).Resized(0, 0, 1))
	l.Unpack(memory, []byte{7}, 1)
	if memory[0] != 7 {
		t.Errorf("%d", memory[0])
	}
}
