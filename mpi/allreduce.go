package mpi

import "context"

// Allreduce combines the data of all processes into result, everywhere: MPI_Allreduce. data and
// result may be the same. Where Algorithms says so it goes by multicasts, and has the errors of a
// Bcast.
func Allreduce[T Element](ctx context.Context, c *Comm, data, result []T, op Op[T]) error {
	return c.do(ctx, "allreduce", func(o collective) error {
		switch o.algorithm("allreduce", len(bytesOf(data))) {
		case byMulticast:
			return o.multicast(bytesOf(result), 0, func() error { return combine(o, data, result, op) })
		case byEach:
			return combineHere(o, data, result, op)
		}
		return allreduce(o, data, result, op)
	})
}

// Iallreduce begins an Allreduce: MPI_Iallreduce.
func Iallreduce[T Element](c *Comm, data, result []T, op Op[T]) *Request {
	return c.beginDo("allreduce", func(o collective) error { return allreduce(o, data, result, op) })
}

// combine has rank 0 combine what all have given it. That takes few messages, where doubling takes
// few steps.
func combine[T Element](o collective, data, result []T, op Op[T]) error {
	if err := op.check(len(result), len(data)); err != nil {
		return err
	}
	if o.rank != 0 {
		return o.send(0, bytesOf(data))
	}
	return withScratch(len(data)*o.Size(), func(all []T) error {
		if err := gather(o, data, parts(all, len(data)), 0); err != nil {
			return err
		}
		fold(all, result[:len(data)], op)
		return nil
	})
}

// combineHere has each process combine what all have told it.
func combineHere[T Element](o collective, data, result []T, op Op[T]) error {
	return withScratch(len(data)*o.Size(), func(all []T) error {
		copy(all[o.rank*len(data):], data)
		err := o.share(bytesOf(data), bytesOf(all), op.check(len(result), len(data)))
		if err == nil {
			fold(all, result[:len(data)], op)
		}
		return err
	})
}

// fold combines the parts of all, by rank, into result, which is as long as each of them.
func fold[T Element](all, result []T, op Op[T]) {
	n := copy(result, all)
	for all = all[n:]; len(all) > 0; all = all[n:] {
		op.apply(result, all[:n])
	}
}

// reduction is what a process combines in an Allreduce. A power of two of processes takes part: the
// first ranks fold in pairs.
type reduction[T Element] struct {
	collective
	op          Op[T]
	result      []T
	mine, other []T // what was combined, and memory of the same length: one of them is result
	power       int // how many take part
	extra       int // how many pairs have folded
	at          int // this one's number among them
}

func allreduce[T Element](o collective, data, result []T, op Op[T]) error {
	if err := op.check(len(result), len(data)); err != nil {
		return err
	}
	return withScratch(len(data), func(other []T) error {
		copy(result, data)
		r := reduction[T]{collective: o, op: op, result: result, mine: result, other: other}
		return r.reduceAll()
	})
}

// reduceAll combines what is in result with what the others have there.
func (r *reduction[T]) reduceAll() error {
	for r.power = 1; 2*r.power <= r.Size(); r.power *= 2 {
	}
	r.extra = r.Size() - r.power
	r.at = r.rank - r.extra
	folded := r.rank < 2*r.extra
	switch {
	case folded && r.rank%2 == 0:
		if err := r.send(r.rank+1, bytesOf(r.result)); err != nil {
			return err
		}
		return r.recv(r.rank+1, bytesOf(r.result))
	case folded:
		r.at = r.rank / 2
		if err := r.recv(r.rank-1, bytesOf(r.other)); err != nil {
			return err
		}
		r.behind()
	}
	combine := r.double
	if r.algorithm("allreduce", len(bytesOf(r.result))) == rabenseifner {
		combine = r.halve
	}
	if err := combine(); err != nil {
		return err
	}
	copy(r.result, r.mine)
	if folded {
		return r.send(r.rank-1, bytesOf(r.result))
	}
	return nil
}

// behind combines what is in other, of lower ranks, with what this process has.
func (r *reduction[T]) behind() {
	r.op.apply(r.other, r.mine)
	r.mine, r.other = r.other, r.mine
}

// partner returns the rank of the one whose number differs in a bit.
func (r *reduction[T]) partner(bit int) int {
	partner := r.at ^ bit
	if partner < r.extra {
		return 2*partner + 1
	}
	return partner + r.extra
}

// double is recursive doubling: in each step partners exchange what they have, of twice as many
// ranks as before.
func (r *reduction[T]) double() error {
	for bit := 1; bit < r.power; bit *= 2 {
		partner := r.partner(bit)
		if err := r.exchange(partner, bytesOf(r.mine), partner, bytesOf(r.other)); err != nil {
			return err
		}
		if r.at&bit != 0 {
			r.behind()
		} else {
			r.op.apply(r.mine, r.other)
		}
	}
	return nil
}

// halve is Rabenseifner's: in each step partners give each other half of what they have left to
// combine; then they give the combined parts back, in the opposite order.
func (r *reduction[T]) halve() error {
	type step struct{ mine, theirs [2]int } // from and to
	var steps []step
	from, to := 0, len(r.mine)
	for bit := 1; bit < r.power; bit *= 2 {
		middle := from + (to-from)/2/groups*groups
		s := step{[2]int{from, middle}, [2]int{middle, to}}
		if r.at&bit != 0 {
			s.mine, s.theirs = s.theirs, s.mine
		}
		from, to = s.mine[0], s.mine[1]
		mine, other, give := r.mine[from:to], r.other[from:to], r.mine[s.theirs[0]:s.theirs[1]]
		partner := r.partner(bit)
		if err := r.exchange(partner, bytesOf(give), partner, bytesOf(other)); err != nil {
			return err
		}
		if r.at&bit != 0 {
			r.op.apply(other, mine)
			copy(mine, other)
		} else {
			r.op.apply(mine, other)
		}
		steps = append(steps, s)
	}
	for bit, k := r.power/2, len(steps)-1; k >= 0; bit, k = bit/2, k-1 {
		s := steps[k]
		partner := r.partner(bit)
		give, get := r.mine[s.mine[0]:s.mine[1]], r.mine[s.theirs[0]:s.theirs[1]]
		if err := r.exchange(partner, bytesOf(give), partner, bytesOf(get)); err != nil {
			return err
		}
	}
	return nil
}
