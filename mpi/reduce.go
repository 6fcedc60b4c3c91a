package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Op combines elements: into[k] becomes the combination of into[k] and with[k]. It has to be
// associative, and need not be commutative: elements are combined in the order of ranks. So all
// processes get the same, to the bit. It is called with some of the elements at a time, from a
// multiple of 64 on, but for the parts of a ReduceScatter: so an Op may be of groups of 2, 4, and
// so on up to 64. Where there is none to combine it is not called.
type Op[T Element] func(into, with []T)

// apply calls op, if there are elements.
func (op Op[T]) apply(into, with []T) {
	if len(into) > 0 {
		op(into, with)
	}
}

// errNoOp: an Op was forgotten.
var errNoOp = errors.New("op is nil (want a function that combines, such as mpi.Sum)")

// check refuses what cannot be combined: without an Op, or into a result of another length.
func (op Op[T]) check(result, data int) error {
	if op == nil {
		return errNoOp
	}
	return checkCount("result", result, data)
}

// groups is how many elements an Op may combine with each other.
const groups = 64

// Sum is MPI_SUM.
func Sum[T Element](into, with []T) {
	for k, v := range with[:len(into)] {
		into[k] += v
	}
}

// Prod is MPI_PROD.
func Prod[T Element](into, with []T) {
	for k, v := range with[:len(into)] {
		into[k] *= v
	}
}

// Min is MPI_MIN.
func Min[T interface {
	Element
	cmp.Ordered
}](into, with []T) {
	for k, v := range with[:len(into)] {
		into[k] = min(into[k], v)
	}
}

// Max is MPI_MAX.
func Max[T interface {
	Element
	cmp.Ordered
}](into, with []T) {
	for k, v := range with[:len(into)] {
		into[k] = max(into[k], v)
	}
}

// Reduce combines the data of all processes into result at root, which is as long as data there;
// elsewhere result does not matter, and may be nil. It is MPI_Reduce.
func Reduce[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T], root int) error {
	return c.do(ctx, "reduce", func(o collective) error { return reduce(o, data, result, op, root) })
}

// Ireduce begins a Reduce: MPI_Ireduce.
func Ireduce[T Element](c *Comm, data, result []T, op Op[T], root int) *Request {
	return c.beginDo("reduce", func(o collective) error { return reduce(o, data, result, op, root) })
}

// reduce combines by a binomial tree to rank 0, in which each has the ranks from its own on; then
// rank 0 sends to root.
func reduce[T Element](o collective, data, result []T, op Op[T], root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if op == nil {
		return errNoOp
	}
	if o.rank == root {
		if err := checkCount("result", len(result), len(data)); err != nil {
			return err
		}
	}
	err := withScratch(2*len(data), func(memory []T) error {
		mine, other := memory[:len(data)], memory[len(data):]
		copy(mine, data)
		for bit := 1; bit < o.Size(); bit *= 2 {
			if o.rank&bit != 0 {
				return o.send(o.rank-bit, bytesOf(mine))
			}
			if o.rank+bit < o.Size() {
				if err := o.recv(o.rank+bit, bytesOf(other)); err != nil {
					return err
				}
				op.apply(mine, other)
			}
		}
		if root == 0 {
			copy(result, mine)
			return nil
		}
		return o.send(root, bytesOf(mine))
	})
	if err == nil && o.rank == root && root != 0 {
		err = o.recv(0, bytesOf(result))
	}
	return err
}

// Scan combines the data of the processes up to this one: MPI_Scan.
func Scan[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	return c.do(ctx, "scan", func(o collective) error { return scan(o, data, result, op) })
}

// Iscan begins a Scan: MPI_Iscan.
func Iscan[T Element](c *Comm, data, result []T, op Op[T]) *Request {
	return c.beginDo("scan", func(o collective) error { return scan(o, data, result, op) })
}

// scan is recursive doubling: before step bit, mine is of the last bit ranks up to this one.
func scan[T Element](o collective, data, result []T, op Op[T]) error {
	if err := op.check(len(result), len(data)); err != nil {
		return err
	}
	return withScratch(2*len(data), func(memory []T) error {
		mine, other := memory[:len(data)], memory[len(data):]
		copy(mine, data)
		for bit := 1; bit < o.Size(); bit *= 2 {
			var requests []*Request
			if o.rank >= bit {
				requests = append(requests, o.irecv(o.rank-bit, bytesOf(other)))
			}
			if o.rank+bit < o.Size() {
				requests = append(requests, o.isend(o.rank+bit, bytesOf(mine)))
			}
			if err := o.wait(requests...); err != nil {
				return err
			}
			if o.rank >= bit {
				op.apply(other, mine)
				mine, other = other, mine
			}
		}
		copy(result, mine)
		return nil
	})
}

// Exscan combines the data of the processes before this one; at rank 0 result is left as it is, and
// does not matter. It is MPI_Exscan.
func Exscan[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	return c.do(ctx, "exscan", func(o collective) error { return exscan(o, data, result, op) })
}

// Iexscan begins an Exscan: MPI_Iexscan.
func Iexscan[T Element](c *Comm, data, result []T, op Op[T]) *Request {
	return c.beginDo("exscan", func(o collective) error { return exscan(o, data, result, op) })
}

// exscan has each process give what a scan has come to to the next one.
func exscan[T Element](o collective, data, result []T, op Op[T]) error {
	if o.rank > 0 {
		if err := checkCount("result", len(result), len(data)); err != nil {
			return err
		}
	}
	return withScratch(len(data), func(upTo []T) error {
		if err := scan(o, data, upTo, op); err != nil {
			return err
		}
		var requests []*Request
		if o.rank > 0 {
			requests = append(requests, o.irecv(o.rank-1, bytesOf(result)))
		}
		if o.rank+1 < o.Size() {
			requests = append(requests, o.isend(o.rank+1, bytesOf(upTo)))
		}
		return o.wait(requests...)
	})
}

// ReduceScatter combines the data of all processes, and gives rank k its part of the result: that
// of counts[k] elements, behind those of the ranks before it. It is MPI_Reduce_scatter. op is
// called with one part at a time, whose first element may be any one of data: no group of an Op's
// elements may be of two parts.
func ReduceScatter[T Element](
	ctx context.Context, c *Comm, data, part []T, counts []int, op Op[T],
) error {
	return c.do(ctx, "reduce-scatter", func(o collective) error {
		return reduceScatter(o, data, part, counts, op)
	})
}

// IreduceScatter begins a ReduceScatter: MPI_Ireduce_scatter.
func IreduceScatter[T Element](c *Comm, data, part []T, counts []int, op Op[T]) *Request {
	return c.beginDo("reduce-scatter", func(o collective) error {
		return reduceScatter(o, data, part, counts, op)
	})
}

// reduceScatter gives each process what all others have for it, which it combines.
func reduceScatter[T Element](o collective, data, part []T, counts []int, op Op[T]) error {
	if err := checkCount("counts", len(counts), o.Size()); err != nil {
		return err
	}
	list, rest := make([][]T, len(counts)), data
	for k, n := range counts {
		if n < 0 || n > len(rest) {
			return fmt.Errorf("counts[%d] is %d, of %d elements that are left", k, n, len(rest))
		}
		list[k], rest = rest[:n], rest[n:]
	}
	if err := checkCount("data", len(data), len(data)-len(rest)); err != nil {
		return err
	}
	if err := checkCount("part", len(part), counts[o.rank]); err != nil {
		return err
	}
	if op == nil {
		return errNoOp
	}
	return withScratch(len(part)*o.Size(), func(all []T) error {
		if err := alltoall(o, listed(list), parts(all, len(part))); err != nil {
			return err
		}
		fold(all, part, op)
		return nil
	})
}
