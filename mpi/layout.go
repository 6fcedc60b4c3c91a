package mpi

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/mpi/internal/layout"
)

// Layout says which elements of a slice a message has, and in which order: MPI's derived datatypes.
// It is made of others, from Single on, and counts from the slice's first element. Of one that
// cannot be made, as of the zero value, all that uses it fails. Source: MPI 5.0 §5.1.
type Layout[T Element] struct{ core layout.Layout }

// Single is the layout of one element.
func Single[T Element]() Layout[T] { return Layout[T]{layout.Bytes(sizeOf[T]())} }

// Contiguous is n layouts, one behind the other: MPI_Type_contiguous.
func Contiguous[T Element](n int, of Layout[T]) Layout[T] {
	return Layout[T]{layout.Contiguous(n, of.core)}
}

// Vector is count blocks of layouts, each stride layouts behind the last one: MPI_Type_vector. A
// column of a matrix, by rows, is Vector(rows, 1, columns, Single[T]()).
func Vector[T Element](count, block, stride int, of Layout[T]) Layout[T] {
	return Layout[T]{layout.Vector(count, block, stride, of.core)}
}

// Indexed is blocks of layouts, the k-th one of lengths[k] at places[k], counted in layouts:
// MPI_Type_indexed.
func Indexed[T Element](lengths, places []int, of Layout[T]) Layout[T] {
	return Layout[T]{layout.Indexed(lengths, places, of.core)}
}

// Struct is blocks of different layouts, lengths[k] of of[k] at places[k], counted in elements:
// MPI_Type_create_struct. If some of them are of Resized or Subarray, it reaches as far as these
// do.
func Struct[T Element](lengths, places []int, of []Layout[T]) Layout[T] {
	cores := make([]layout.Layout, len(of))
	for k, l := range of {
		cores[k] = l.core
	}
	return Layout[T]{layout.Struct(lengths, places, sizeOf[T](), cores)}
}

// Subarray is a part of an array, by rows, that has sizes[k] layouts in its k-th dimension: part[k]
// of them, from start[k] on. The next one is behind the whole array: MPI_Type_create_subarray.
func Subarray[T Element](sizes, part, start []int, of Layout[T]) Layout[T] {
	return Layout[T]{layout.Subarray(sizes, part, start, of.core)}
}

// Resized is the layout with another beginning and distance to the next one, in elements:
// MPI_Type_create_resized.
func (l Layout[T]) Resized(lower, extent int) Layout[T] {
	return Layout[T]{l.core.Resized(lower, extent, sizeOf[T]())}
}

// Size returns how many elements it has: MPI_Type_size.
func (l Layout[T]) Size() int { return l.core.Size() / sizeOf[T]() }

// Extent returns where it begins, and the distance from one to the next, in elements:
// MPI_Type_get_extent.
func (l Layout[T]) Extent() (lower, extent int) {
	lower, extent = l.core.Extent()
	return lower / sizeOf[T](), extent / sizeOf[T]()
}

// Pack copies the elements from data to packed, which has room for them: MPI_Pack. Errors:
// ErrLayout.
func (l Layout[T]) Pack(packed, data []T) error {
	err := l.check(data)
	if err == nil && len(packed) < l.Size() {
		err = fmt.Errorf("%d elements, and room for %d: %w", l.Size(), len(packed), ErrLayout)
	}
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	l.core.Pack(bytesOf(packed), bytesOf(data), 1)
	return nil
}

// Unpack copies packed elements to where they belong in data; there may be fewer of them:
// MPI_Unpack. Errors: ErrLayout.
func (l Layout[T]) Unpack(data, packed []T) error {
	if err := l.check(data); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	l.core.Unpack(bytesOf(data), bytesOf(packed), 1)
	return nil
}

func (l *Layout[T]) check(data []T) error {
	if err := l.core.Check(len(bytesOf(data)), 1); err != nil {
		return fmt.Errorf("%w: %w", ErrLayout, err)
	}
	return nil
}

// Send sends the elements of data, as one message: MPI_Send. Errors: those of the function Send;
// ErrLayout.
func (l Layout[T]) Send(ctx context.Context, c *Comm, data []T, to, tag int) error {
	_, err := l.Isend(c, data, to, tag).finish(ctx)
	return err
}

// Isend begins a Send.
func (l Layout[T]) Isend(c *Comm, data []T, to, tag int) *Request {
	r := new(Request)
	l.beginSend(c, r, data, to, tag)
	return r
}

// SendInit makes a persistent Send of what data has at each Start.
func (l Layout[T]) SendInit(c *Comm, data []T, to, tag int) *Persistent {
	return persistent(func(r *Request) { l.beginSend(c, r, data, to, tag) })
}

func (l *Layout[T]) beginSend(c *Comm, r *Request, data []T, to, tag int) {
	memory, packed, err := l.memory(data)
	if err != nil {
		c.fail(r, fmt.Errorf("send to rank %d: %w", to, err))
		return
	}
	if packed != nil {
		l.core.Pack(memory, bytesOf(data), 1)
	}
	c.beginSend(r, memory, to, tag, false)
	r.packed = packed
}

// Recv receives a message into the elements of buf: MPI_Recv. What the message does not have stays
// as it is; so does all of buf after an error, unless the elements are one piece of memory. Errors:
// those of the function Recv; ErrLayout.
func (l Layout[T]) Recv(ctx context.Context, c *Comm, buf []T, from, tag int) (Status, error) {
	return l.Irecv(c, buf, from, tag).finish(ctx)
}

// Irecv begins a Recv. The message is in place when Wait or Test has said that it is.
func (l Layout[T]) Irecv(c *Comm, buf []T, from, tag int) *Request {
	r := new(Request)
	l.beginReceive(c, r, buf, from, tag)
	return r
}

// RecvInit makes a persistent Recv.
func (l Layout[T]) RecvInit(c *Comm, buf []T, from, tag int) *Persistent {
	return persistent(func(r *Request) { l.beginReceive(c, r, buf, from, tag) })
}

func (l *Layout[T]) beginReceive(c *Comm, r *Request, buf []T, from, tag int) {
	memory, packed, err := l.memory(buf)
	if err != nil {
		c.fail(r, fmt.Errorf("receive from rank %d: %w", from, err))
		return
	}
	c.beginReceive(r, memory, from, tag)
	if packed != nil {
		r.packed = packed
		r.unpack = func(n int) { l.core.Unpack(bytesOf(buf), memory[:n], 1) }
	}
}

// memory returns the memory of a message: that of the elements if they are one piece of it, or as
// much of its own, which is packed's.
func (l *Layout[T]) memory(data []T) (memory []byte, packed *scratch, err error) {
	if err := l.check(data); err != nil {
		return nil, nil, err
	}
	if at, size, ok := l.core.Whole(1); ok {
		return bytesOf(data)[at:][:size], nil, nil
	}
	size := l.core.Size()
	if size > max(maxRepeated, len(bytesOf(data))) {
		return nil, nil, fmt.Errorf("%w: %d bytes out of %d, some of them again and again (want up to %d)",
			ErrLayout, size, len(bytesOf(data)), maxRepeated)
	}
	packed = takeScratch(size)
	return packed.memory()[:size], packed, nil
}
