package mpi

import (
	"cmp"
	"fmt"
	"reflect"
	"unsafe"
)

// Update says how an operation changes the elements of a window.
type Update uint8

// The updates. And, Or and Xor are for integers, Minimum and Maximum not for complex numbers.
const (
	Add      Update = iota + 1 // MPI_SUM
	Multiply                   // MPI_PROD
	Minimum                    // MPI_MIN
	Maximum                    // MPI_MAX
	And                        // MPI_BAND
	Or                         // MPI_BOR
	Xor                        // MPI_BXOR
	Replace                    // MPI_REPLACE
	Keep                       // MPI_NO_OP
	updates
)

// String names u.
func (u Update) String() string {
	return [...]string{
		"?", "add", "multiply", "minimum", "maximum", "and", "or", "xor", "replace", "keep", "?",
	}[min(u, updates)]
}

// updater updates elements with others: two slices of one length, aligned as elements are. It
// reports whether the update is one of such elements, also if there are none.
type updater func(u Update, into, with []byte) bool

// updaterOf returns that of a type, and a number that is the same for types of one layout.
func updaterOf[T Element]() (kind reflect.Kind, f updater) {
	kind = reflect.TypeFor[T]().Kind()
	switch small := sizeOf[T]() == 4; {
	case kind == reflect.Int && small:
		kind = reflect.Int32
	case kind == reflect.Int:
		kind = reflect.Int64
	case kind == reflect.Uint && small:
		kind = reflect.Uint32
	case kind == reflect.Uint:
		kind = reflect.Uint64
	}
	return kind, map[reflect.Kind]updater{
		reflect.Int8: integers[int8], reflect.Int16: integers[int16],
		reflect.Int32: integers[int32], reflect.Int64: integers[int64],
		reflect.Uint8: integers[uint8], reflect.Uint16: integers[uint16],
		reflect.Uint32: integers[uint32], reflect.Uint64: integers[uint64],
		reflect.Float32: ordered[float32], reflect.Float64: ordered[float64],
		reflect.Complex64: numbers[complex64], reflect.Complex128: numbers[complex128],
	}[kind]
}

func integers[T interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}](u Update, into, with []byte) bool {
	a, b := elementsOf[T](into), elementsOf[T](with)
	switch u {
	case And:
		for k, v := range b {
			a[k] &= v
		}
	case Or:
		for k, v := range b {
			a[k] |= v
		}
	case Xor:
		for k, v := range b {
			a[k] ^= v
		}
	default:
		return ordered[T](u, into, with)
	}
	return true
}

func ordered[T interface {
	Element
	cmp.Ordered
}](u Update, into, with []byte) bool {
	switch u {
	case Minimum:
		Min(elementsOf[T](into), elementsOf[T](with))
	case Maximum:
		Max(elementsOf[T](into), elementsOf[T](with))
	default:
		return numbers[T](u, into, with)
	}
	return true
}

func numbers[T Element](u Update, into, with []byte) bool {
	switch u {
	case Add:
		Sum(elementsOf[T](into), elementsOf[T](with))
	case Multiply:
		Prod(elementsOf[T](into), elementsOf[T](with))
	case Replace:
		copy(into, with)
	case Keep:
	default:
		return false
	}
	return true
}

// elementsOf is the inverse of bytesOf.
func elementsOf[T Element](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

// update updates elements of this process' memory. It returns what they were, valid until the next
// call, or nil if it cannot be done: the number, the data or the update came by the wire. The
// caller holds World.mu.
func (v *window) update(u Update, at uint64, data []byte) (old []byte) {
	into := v.elements(at, len(data))
	if into == nil {
		return nil
	}
	// Elements in a record are not aligned: they go to memory that is, and the old ones behind.
	need := (len(data) + 7) / 8
	if len(v.aligned) < 2*need {
		v.aligned = make([]uint64, 2*need)
	}
	with := bytesOf(v.aligned[:need])[:len(data)]
	copy(with, data)
	old = bytesOf(v.aligned[need:])[:len(data)]
	copy(old, into)
	if !v.updater(u, into, with) {
		return nil
	}
	return old
}

// compareSwap replaces an element by the second one of data if it is the first one, to the bit, and
// returns what it was. The caller holds World.mu.
func (v *window) compareSwap(at uint64, data []byte) (old []byte) {
	into := v.elements(at, v.element)
	if into == nil || len(data) != 2*v.element {
		return nil
	}
	if string(into) == string(data[:v.element]) {
		return v.update(Replace, at, data[v.element:])
	}
	return v.update(Keep, at, data[:v.element])
}

// elements returns the bytes of some elements of this process' memory, or nil if they are not
// there.
func (v *window) elements(at uint64, size int) []byte {
	most := uint64(len(v.memory))
	if size == 0 || size%v.element != 0 || at > most/uint64(v.element) {
		return nil
	}
	if at *= uint64(v.element); uint64(size) > most-at {
		return nil
	}
	return v.memory[at : at+uint64(size)]
}

// checkUpdate says whether an update is one of the window's elements.
func (v *window) checkUpdate(u Update) error {
	if !v.updater(u, nil, nil) {
		return fmt.Errorf("update %v: %w", u, ErrOp)
	}
	return nil
}
