package mpi

import "context"

// Bcast gives root's buf to all: MPI_Bcast. A short one is a multicast, as Algorithms says. Errors:
// ErrRank, ErrTruncate, ErrFreed, ErrRevoked, ErrClosed; ErrWithdrawn if the root has given up; a
// *ProcessError of the root, or at the root of another process; ctx's.
func Bcast[T Element](ctx context.Context, c *Comm, buf []T, root int) error {
	return c.do(ctx, "bcast", func(o collective) error {
		b := bytesOf(buf)
		if o.algorithm("bcast", len(b)) == byMulticast {
			return o.multicast(b, root, nil)
		}
		return o.bcast(b, root)
	})
}

// Ibcast begins a Bcast, by a binomial tree: MPI_Ibcast.
func Ibcast[T Element](c *Comm, buf []T, root int) *Request {
	return c.beginDo("bcast", func(o collective) error { return o.bcast(bytesOf(buf), root) })
}

func (o collective) bcast(buf []byte, root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	n := o.Size()
	at := (o.rank - root + n) % n // ranks as if root were 0
	lowest := at & -at
	if at == 0 {
		for lowest = 1; lowest < n; lowest *= 2 {
		}
	} else if err := o.recv((at-lowest+root)%n, buf); err != nil {
		return err
	}
	var sends []*Request
	for bit := lowest / 2; bit > 0; bit /= 2 {
		if at+bit < n {
			sends = append(sends, o.isend((at+bit+root)%n, buf))
		}
	}
	return o.wait(sends...)
}

// parts returns the part of each rank of what all have together: n elements each.
func parts[T Element](all []T, n int) func(rank int) []T {
	return func(rank int) []T { return all[rank*n : (rank+1)*n] }
}

// listed returns the part of each rank in a list.
func listed[T Element](list [][]T) func(rank int) []T {
	return func(rank int) []T { return list[rank] }
}

// Gather puts what each process has into all, by rank, at root, where all is as long as that of all
// together; elsewhere it does not matter. It is MPI_Gather.
func Gather[T Element](ctx context.Context, c *Comm, data, all []T, root int) error {
	return c.do(ctx, "gather", func(o collective) error { return gatherEqual(o, data, all, root) })
}

// Igather begins a Gather: MPI_Igather.
func Igather[T Element](c *Comm, data, all []T, root int) *Request {
	return c.beginDo("gather", func(o collective) error { return gatherEqual(o, data, all, root) })
}

func gatherEqual[T Element](o collective, data, all []T, root int) error {
	if o.rank == root {
		if err := checkCount("all", len(all), len(data)*o.Size()); err != nil {
			return err
		}
	}
	return gather(o, data, parts(all, len(data)), root)
}

// Gatherv is Gather of unequal parts: that of rank k goes to list[k]. It is MPI_Gatherv.
func Gatherv[T Element](ctx context.Context, c *Comm, data []T, list [][]T, root int) error {
	return c.do(ctx, "gatherv", func(o collective) error { return gatherListed(o, data, list, root) })
}

// Igatherv begins a Gatherv: MPI_Igatherv.
func Igatherv[T Element](c *Comm, data []T, list [][]T, root int) *Request {
	return c.beginDo("gatherv", func(o collective) error { return gatherListed(o, data, list, root) })
}

func gatherListed[T Element](o collective, data []T, list [][]T, root int) error {
	if o.rank == root {
		if err := checkCount("list", len(list), o.Size()); err != nil {
			return err
		}
	}
	return gather(o, data, listed(list), root)
}

func gather[T Element](o collective, data []T, part func(rank int) []T, root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if o.rank != root {
		return o.send(root, bytesOf(data))
	}
	if err := copyPart(part(root), data); err != nil {
		return err
	}
	var requests []*Request
	for k := range o.Size() {
		if k != root {
			requests = append(requests, o.irecv(k, bytesOf(part(k))))
		}
	}
	return o.wait(requests...)
}

// copyPart is what a process does for itself.
func copyPart[T Element](to, from []T) error {
	copy(to, from)
	return checkCount("this rank's part", len(to), len(from))
}

// Scatter gives each process its part of all, which root has: MPI_Scatter.
func Scatter[T Element](ctx context.Context, c *Comm, all, part []T, root int) error {
	return c.do(ctx, "scatter", func(o collective) error { return scatterEqual(o, all, part, root) })
}

// Iscatter begins a Scatter: MPI_Iscatter.
func Iscatter[T Element](c *Comm, all, part []T, root int) *Request {
	return c.beginDo("scatter", func(o collective) error { return scatterEqual(o, all, part, root) })
}

func scatterEqual[T Element](o collective, all, part []T, root int) error {
	if o.rank == root {
		if err := checkCount("all", len(all), len(part)*o.Size()); err != nil {
			return err
		}
	}
	return scatter(o, parts(all, len(part)), part, root)
}

// Scatterv is Scatter of unequal parts: rank k gets list[k]. It is MPI_Scatterv.
func Scatterv[T Element](ctx context.Context, c *Comm, list [][]T, part []T, root int) error {
	return c.do(ctx, "scatterv", func(o collective) error { return scatterListed(o, list, part, root) })
}

// Iscatterv begins a Scatterv: MPI_Iscatterv.
func Iscatterv[T Element](c *Comm, list [][]T, part []T, root int) *Request {
	return c.beginDo("scatterv", func(o collective) error { return scatterListed(o, list, part, root) })
}

func scatterListed[T Element](o collective, list [][]T, part []T, root int) error {
	if o.rank == root {
		if err := checkCount("list", len(list), o.Size()); err != nil {
			return err
		}
	}
	return scatter(o, listed(list), part, root)
}

func scatter[T Element](o collective, of func(rank int) []T, part []T, root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if o.rank != root {
		return o.recv(root, bytesOf(part))
	}
	if err := checkCount("this rank's part", len(part), len(of(root))); err != nil {
		return err
	}
	var requests []*Request
	for k := range o.Size() {
		if k != root {
			requests = append(requests, o.isend(k, bytesOf(of(k))))
		}
	}
	err := o.wait(requests...)
	copy(part, of(root)) // behind the sends, of memory that it may overlap
	return err
}

// Allgather puts what each process has into all, by rank, everywhere: MPI_Allgather. Where
// Algorithms says so it goes by multicasts, and has the errors of a Bcast.
func Allgather[T Element](ctx context.Context, c *Comm, data, all []T) error {
	return c.do(ctx, "allgather", func(o collective) error { return gatherAll(o, data, all) })
}

func gatherAll[T Element](o collective, data, all []T) error {
	switch o.algorithm("allgather", len(bytesOf(data))) {
	case byMulticast:
		return o.multicast(bytesOf(all), 0, func() error {
			err := gatherEqual(o, data, all, 0) // the others wait for this one's part
			if wrong := checkCount("all", len(all), len(data)*o.Size()); err == nil && wrong != nil {
				err = givenError{wrong}
			}
			return err
		})
	case byEach:
		return gatherHere(o, data, all)
	}
	return allgatherEqual(o, data, all)
}

// Iallgather begins an Allgather: MPI_Iallgather.
func Iallgather[T Element](c *Comm, data, all []T) *Request {
	return c.beginDo("allgather", func(o collective) error { return allgatherEqual(o, data, all) })
}

func allgatherEqual[T Element](o collective, data, all []T) error {
	if err := checkCount("all", len(all), len(data)*o.Size()); err != nil {
		return err
	}
	if o.algorithm("allgather", len(bytesOf(data))) == ring {
		return allgather(o, data, parts(all, len(data)))
	}
	return disseminate(o, bytesOf(data), bytesOf(all))
}

// gatherHere has each process tell all what it has.
func gatherHere[T Element](o collective, data, all []T) error {
	err := checkCount("all", len(all), len(data)*o.Size())
	if err == nil {
		own := all[o.rank*len(data):][:len(data)]
		copy(own, data)
		data = own // what was data may be changed by that
	}
	return o.share(bytesOf(data), bytesOf(all), err)
}

// disseminate is Bruck's: in step k each process gives what it has to the one 2^k ranks before it.
// It has the parts from its own rank on.
func disseminate(o collective, data, all []byte) error {
	size, part := o.Size(), len(data)
	have := make([]byte, 0, len(all))
	have = append(have, data...)
	for n := 1; n < size; n *= 2 {
		more := min(n, size-n) * part
		to, from := (o.rank-n+size)%size, (o.rank+n)%size
		if err := o.exchange(to, have[:more], from, have[len(have):len(have)+more]); err != nil {
			return err
		}
		have = have[:len(have)+more]
	}
	split := (size - o.rank) * part // where rank 0's is
	copy(all[o.rank*part:], have[:split])
	copy(all, have[split:])
	return nil
}

// Allgatherv is Allgather of unequal parts: that of rank k goes to list[k]. It is MPI_Allgatherv.
func Allgatherv[T Element](ctx context.Context, c *Comm, data []T, list [][]T) error {
	return c.do(ctx, "allgatherv", func(o collective) error { return allgatherListed(o, data, list) })
}

// Iallgatherv begins an Allgatherv: MPI_Iallgatherv.
func Iallgatherv[T Element](c *Comm, data []T, list [][]T) *Request {
	return c.beginDo("allgatherv", func(o collective) error { return allgatherListed(o, data, list) })
}

func allgatherListed[T Element](o collective, data []T, list [][]T) error {
	if err := checkCount("list", len(list), o.Size()); err != nil {
		return err
	}
	return allgather(o, data, listed(list))
}

// allgather has each process send on, around a ring, what it got last.
func allgather[T Element](o collective, data []T, of func(rank int) []T) error {
	if err := copyPart(of(o.rank), data); err != nil {
		return err
	}
	size := o.Size()
	part := func(k int) []byte { return bytesOf(of((k + size) % size)) }
	left, right := (o.rank+size-1)%size, (o.rank+1)%size
	for step := range size - 1 {
		if err := o.exchange(right, part(o.rank-step), left, part(o.rank-step-1)); err != nil {
			return err
		}
	}
	return nil
}

// Alltoall gives the k-th part of data to rank k, and puts the part that rank k has for this one
// into the k-th part of result: MPI_Alltoall. data and result may be the same, as MPI_IN_PLACE has
// it, or overlap; that takes a copy.
func Alltoall[T Element](ctx context.Context, c *Comm, data, result []T) error {
	return c.do(ctx, "alltoall", func(o collective) error { return alltoallEqual(o, data, result) })
}

// Ialltoall begins an Alltoall: MPI_Ialltoall.
func Ialltoall[T Element](c *Comm, data, result []T) *Request {
	return c.beginDo("alltoall", func(o collective) error { return alltoallEqual(o, data, result) })
}

func alltoallEqual[T Element](o collective, data, result []T) error {
	n := len(data) / o.Size()
	if err := checkCount("data", len(data), n*o.Size()); err != nil {
		return err
	}
	if err := checkCount("result", len(result), len(data)); err != nil {
		return err
	}
	if o.algorithm("alltoall", len(bytesOf(data))/o.Size()) == forwarding {
		return forward(o, bytesOf(data), bytesOf(result))
	}
	return alltoallFrom(o, parts(data, n), parts(result, n))
}

// forward is Bruck's index algorithm: a part for the process d ranks on goes by the powers of two
// of d, together with all others that have this one.
func forward(o collective, data, result []byte) error {
	return withScratch(2*len(data), func(memory []byte) error { return forwardBy(o, data, result, memory) })
}

// forwardBy needs twice the memory of data.
func forwardBy(o collective, data, result, memory []byte) error {
	size, part := o.Size(), len(data)/o.Size()
	mine, packed := memory[:len(data)], memory[len(data):]
	out, in := packed[:size/2*part], packed[size/2*part:]
	at := func(b []byte, k int) []byte { return b[k*part:][:part] }
	for d := range size {
		copy(at(mine, d), at(data, (o.rank+d)%size))
	}
	for step := 1; step < size; step *= 2 {
		n := 0
		for d := step; d < size; d = (d + 1) | step {
			n += copy(out[n:], at(mine, d))
		}
		if err := o.exchange((o.rank+step)%size, out[:n], (o.rank+size-step)%size, in[:n]); err != nil {
			return err
		}
		n = 0
		for d := step; d < size; d = (d + 1) | step {
			n += copy(at(mine, d), in[n:])
		}
	}
	for d := range size {
		copy(at(result, (o.rank+size-d)%size), at(mine, d))
	}
	return nil
}

// Alltoallv is Alltoall of unequal parts: rank k gets data[k], and what it has for this one goes to
// result[k]. It is MPI_Alltoallv. Parts of data and of result may be the same memory, or overlap.
func Alltoallv[T Element](ctx context.Context, c *Comm, data, result [][]T) error {
	return c.do(ctx, "alltoallv", func(o collective) error { return alltoallListed(o, data, result) })
}

// Ialltoallv begins an Alltoallv: MPI_Ialltoallv.
func Ialltoallv[T Element](c *Comm, data, result [][]T) *Request {
	return c.beginDo("alltoallv", func(o collective) error { return alltoallListed(o, data, result) })
}

func alltoallListed[T Element](o collective, data, result [][]T) error {
	if err := checkCount("data", len(data), o.Size()); err != nil {
		return err
	}
	if err := checkCount("result", len(result), o.Size()); err != nil {
		return err
	}
	return alltoallFrom(o, listed(data), listed(result))
}

// alltoallFrom is alltoall of data that may overlap the result: then of a copy.
func alltoallFrom[T Element](o collective, data, result func(rank int) []T) error {
	if !overlap(o.Size(), data, result) {
		return alltoall(o, data, result)
	}
	from := make([]int, 1, o.Size()+1)
	for k := range o.Size() {
		from = append(from, from[k]+len(data(k)))
	}
	return withScratch(from[o.Size()], func(memory []T) error {
		copied := func(rank int) []T { return memory[from[rank]:from[rank+1]] }
		for k := range o.Size() {
			copy(copied(k), data(k))
		}
		return alltoall(o, copied, result)
	})
}

// alltoall posts all receives, and then sends, each process to another one first.
func alltoall[T Element](o collective, data, result func(rank int) []T) error {
	if err := copyPart(result(o.rank), data(o.rank)); err != nil {
		return err
	}
	size := o.Size()
	var requests []*Request
	for step := 1; step < size; step++ {
		from := (o.rank - step + size) % size
		requests = append(requests, o.irecv(from, bytesOf(result(from))))
	}
	for step := 1; step < size; step++ {
		to := (o.rank + step) % size
		requests = append(requests, o.isend(to, bytesOf(data(to))))
	}
	return o.wait(requests...)
}
