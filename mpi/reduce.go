package mpi

import (
	"cmp"
	"context"
)

// Op combines elements: into[k] becomes the combination of into[k] and with[k]. It has to be
// associative, and need not be commutative: elements are combined in the order of ranks. So all
// processes get the same, to the bit.
type Op[T Element] func(into, with []T)

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

// Reduce combines the data of all processes into result at root; elsewhere result does not matter.
// It is MPI_Reduce.
func Reduce[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T], root int) error {
	o := c.collective(ctx, "reduce")
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if c.rank == root && len(result) != len(data) {
		return o.errCount("result", len(result), len(data))
	}
	mine := append([]T(nil), data...)
	other := make([]T, len(data))
	// A binomial tree to rank 0, in which each has the ranks from its own on; then to root.
	for bit := 1; bit < c.Size(); bit *= 2 {
		if c.rank&bit != 0 {
			if err := o.send(c.rank-bit, bytesOf(mine)); err != nil {
				return o.error(err)
			}
			break
		}
		if c.rank+bit < c.Size() {
			if err := o.recv(c.rank+bit, bytesOf(other)); err != nil {
				return o.error(err)
			}
			op(mine, other)
		}
	}
	var err error
	switch {
	case root == 0 && c.rank == 0:
		copy(result, mine)
	case c.rank == 0:
		err = o.send(root, bytesOf(mine))
	case c.rank == root:
		err = o.recv(0, bytesOf(result))
	}
	return o.error(err)
}

// Allreduce combines the data of all processes into result, everywhere: MPI_Allreduce. data and
// result may be the same.
//
// Source: recursive doubling; R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective
// Communication Operations in MPICH, IJHPCA 19 (2005), §4.5.
func Allreduce[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	o := c.collective(ctx, "allreduce")
	if len(result) != len(data) {
		return o.errCount("result", len(result), len(data))
	}
	mine, other := append([]T(nil), data...), make([]T, len(data))
	power := 1 // the largest power of two that is not above the size
	for ; 2*power <= c.Size(); power *= 2 {
	}
	// The first 2·extra ranks fold in pairs, so that a power of two is left.
	extra := c.Size() - power
	at := c.rank - extra
	if c.rank < 2*extra {
		if c.rank%2 == 0 {
			err := o.send(c.rank+1, bytesOf(mine))
			if err == nil {
				err = o.recv(c.rank+1, bytesOf(result))
			}
			return o.error(err)
		}
		if err := o.recv(c.rank-1, bytesOf(other)); err != nil {
			return o.error(err)
		}
		op(other, mine)
		mine, other = other, mine
		at = c.rank / 2
	}
	for bit := 1; bit < power; bit *= 2 {
		partner := at ^ bit
		rank := partner + extra
		if partner < extra {
			rank = 2*partner + 1
		}
		if err := o.exchange(rank, bytesOf(mine), rank, bytesOf(other)); err != nil {
			return o.error(err)
		}
		if partner < at {
			op(other, mine)
			mine, other = other, mine
		} else {
			op(mine, other)
		}
	}
	copy(result, mine)
	if c.rank < 2*extra {
		return o.error(o.send(c.rank-1, bytesOf(mine)))
	}
	return nil
}

// Scan combines the data of the processes up to this one: MPI_Scan. Source: recursive doubling.
func Scan[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	o := c.collective(ctx, "scan")
	if len(result) != len(data) {
		return o.errCount("result", len(result), len(data))
	}
	mine, other := append([]T(nil), data...), make([]T, len(data)) // mine: of ranks rank-bit+1 to rank
	for bit := 1; bit < c.Size(); bit *= 2 {
		var requests []*Request
		if c.rank >= bit {
			requests = append(requests, o.irecv(c.rank-bit, bytesOf(other)))
		}
		sent := append([]T(nil), mine...)
		if c.rank+bit < c.Size() {
			requests = append(requests, o.isend(c.rank+bit, bytesOf(sent)))
		}
		if err := o.wait(requests...); err != nil {
			return o.error(err)
		}
		if c.rank >= bit {
			op(other, mine)
			mine, other = other, mine
		}
	}
	copy(result, mine)
	return nil
}

// Exscan combines the data of the processes before this one; at rank 0 result is left as it is. It
// is MPI_Exscan.
func Exscan[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	if len(result) != len(data) {
		return c.collective(ctx, "exscan").errCount("result", len(result), len(data))
	}
	upTo := make([]T, len(data))
	if err := Scan(ctx, c, data, upTo, op); err != nil {
		return err
	}
	o := c.collective(ctx, "exscan")
	var requests []*Request
	if c.rank > 0 {
		requests = append(requests, o.irecv(c.rank-1, bytesOf(result)))
	}
	if c.rank+1 < c.Size() {
		requests = append(requests, o.isend(c.rank+1, bytesOf(upTo)))
	}
	return o.error(o.wait(requests...))
}

// ReduceScatter combines the data of all processes, and gives rank k its part of the result: that
// of parts[k] elements, behind those of the ranks before it. It is MPI_Reduce_scatter.
func ReduceScatter[T Element](ctx context.Context, c *Comm, data, part []T, parts []int, op Op[T]) error {
	o := c.collective(ctx, "reduce-scatter")
	if len(parts) != c.Size() {
		return o.errCount("parts", len(parts), c.Size())
	}
	total := 0
	of := make([][2]int, len(parts)) // from, to
	for k, n := range parts {
		of[k] = [2]int{total, total + max(n, 0)}
		total += max(n, 0)
	}
	if len(data) != total {
		return o.errCount("data", len(data), total)
	}
	if len(part) != parts[c.rank] {
		return o.errCount("part", len(part), parts[c.rank])
	}
	// Each gets what all others have for it, and combines it in the order of ranks.
	all := make([][]T, c.Size())
	for k := range all {
		all[k] = make([]T, len(part))
	}
	err := alltoall(o, func(k int) []T { return data[of[k][0]:of[k][1]] }, func(k int) []T { return all[k] })
	if err != nil {
		return err
	}
	for _, other := range all[1:] {
		op(all[0], other)
	}
	copy(part, all[0])
	return nil
}
