package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Collective operations are called by all processes of a communicator, in one order, with arguments
// of one size and one root. Their messages are in a context of their own, and each receive is
// posted before what it waits for is sent, so that long messages are written into place.

// collective is one operation. Its tag is its number: all processes call operations in one order,
// and several may be under way.
type collective struct {
	*Comm
	ctx  context.Context
	name string
	tag  int32
}

func (c *Comm) collective(ctx context.Context, name string) collective {
	return collective{c, ctx, name, int32(c.operations.Add(1) & MaxTag)}
}

// error returns an error of the operation.
func (o collective) error(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", o.name, err)
}

// checkRoot checks the root of an operation.
func (o collective) checkRoot(root int) error {
	if err := o.checkRank(root); err != nil {
		return fmt.Errorf("%s: root: %w", o.name, err)
	}
	return nil
}

// errCount is a slice that is too short, or too long.
func (o collective) errCount(what string, got, want int) error {
	return fmt.Errorf("%s: %s has %d elements, want %d", o.name, what, got, want)
}

// request returns a pooled one.
func (o collective) request(memory []byte) *Request {
	r := o.w.request()
	o.begin(r, memory)
	r.blocking = true
	return r
}

func (o collective) isend(to int, data []byte) *Request {
	return o.Comm.send(o.request(data), o.context+1, o.members[to], o.tag, false)
}

func (o collective) irecv(from int, buf []byte) *Request {
	return o.Comm.receive(o.request(buf), o.context+1, o.members[from], o.tag)
}

// wait waits for all of the requests, and returns the errors.
func (o collective) wait(requests ...*Request) error {
	var errs []error
	for _, r := range requests {
		_, err := r.Wait(o.ctx)
		if !r.completion.Done() {
			if r.receive.Owner == r {
				_, err = r.cancel(err)
			} else {
				err = r.abandon(err)
			}
		}
		errs = append(errs, err)
		if r.completion.Done() {
			o.w.putRequest(r)
		}
	}
	return errors.Join(errs...)
}

func (o collective) send(to int, data []byte) error { return o.wait(o.isend(to, data)) }

func (o collective) recv(from int, buf []byte) error { return o.wait(o.irecv(from, buf)) }

// exchange sends and receives at once.
func (o collective) exchange(to int, data []byte, from int, buf []byte) error {
	r := o.irecv(from, buf)
	return o.wait(o.isend(to, data), r)
}

// Barrier waits until all processes have called it: MPI_Barrier. It is package barrier's, and says
// nothing of messages.
func (c *Comm) Barrier(ctx context.Context) error {
	g, err := c.barrierGroup()
	if err == nil {
		err = g.Barrier(ctx)
	}
	return c.collective(ctx, "barrier").error(err)
}

// barrierGroup makes the communicator's group at its first barrier.
func (c *Comm) barrierGroup() (*barrier.Group, error) {
	c.once.Do(func() {
		nodes := make([]mcd.NodeID, len(c.members))
		for k, rank := range c.members {
			nodes[k] = c.w.all[rank].ID
		}
		c.group, c.groupErr = c.w.barriers.Group(barrier.GroupConfig{
			ID: c.context, Members: barrier.MaskOf(nodes...), PeerTimeout: c.w.cfg.PeerTimeout,
		})
	})
	return c.group, c.groupErr
}

// Bcast gives root's buf to all: MPI_Bcast. Source: binomial tree.
func Bcast[T Element](ctx context.Context, c *Comm, buf []T, root int) error {
	o := c.collective(ctx, "bcast")
	if err := o.checkRoot(root); err != nil {
		return err
	}
	return o.error(o.bcast(bytesOf(buf), root))
}

func (o collective) bcast(buf []byte, root int) error {
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

// Gather puts what each process has into all, by rank, at root, where all is as long as that of all
// together; elsewhere it does not matter. It is MPI_Gather.
func Gather[T Element](ctx context.Context, c *Comm, data, all []T, root int) error {
	o := c.collective(ctx, "gather")
	if c.rank == root && len(all) != len(data)*c.Size() {
		return o.errCount("all", len(all), len(data)*c.Size())
	}
	return gather(o, data, func(k int) []T { return all[k*len(data) : (k+1)*len(data)] }, root)
}

// Gatherv is Gather of unequal parts: that of rank k goes to parts[k]. It is MPI_Gatherv.
func Gatherv[T Element](ctx context.Context, c *Comm, data []T, parts [][]T, root int) error {
	o := c.collective(ctx, "gatherv")
	if c.rank == root && len(parts) != c.Size() {
		return o.errCount("parts", len(parts), c.Size())
	}
	return gather(o, data, func(k int) []T { return parts[k] }, root)
}

func gather[T Element](o collective, data []T, part func(k int) []T, root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if o.rank != root {
		return o.error(o.send(root, bytesOf(data)))
	}
	mine := part(root)
	if len(mine) != len(data) {
		return o.errCount("this rank's part", len(mine), len(data))
	}
	copy(mine, data)
	var requests []*Request
	for k := range o.Size() {
		if k != root {
			requests = append(requests, o.irecv(k, bytesOf(part(k))))
		}
	}
	return o.error(o.wait(requests...))
}

// Scatter gives each process its part of all, which root has: MPI_Scatter.
func Scatter[T Element](ctx context.Context, c *Comm, all, part []T, root int) error {
	o := c.collective(ctx, "scatter")
	if c.rank == root && len(all) != len(part)*c.Size() {
		return o.errCount("all", len(all), len(part)*c.Size())
	}
	return scatter(o, func(k int) []T { return all[k*len(part) : (k+1)*len(part)] }, part, root)
}

// Scatterv is Scatter of unequal parts: rank k gets parts[k]. It is MPI_Scatterv.
func Scatterv[T Element](ctx context.Context, c *Comm, parts [][]T, part []T, root int) error {
	o := c.collective(ctx, "scatterv")
	if c.rank == root && len(parts) != c.Size() {
		return o.errCount("parts", len(parts), c.Size())
	}
	return scatter(o, func(k int) []T { return parts[k] }, part, root)
}

func scatter[T Element](o collective, of func(k int) []T, part []T, root int) error {
	if err := o.checkRoot(root); err != nil {
		return err
	}
	if o.rank != root {
		return o.error(o.recv(root, bytesOf(part)))
	}
	if mine := of(root); len(mine) != len(part) {
		return o.errCount("this rank's part", len(mine), len(part))
	}
	copy(part, of(root))
	var requests []*Request
	for k := range o.Size() {
		if k != root {
			requests = append(requests, o.isend(k, bytesOf(of(k))))
		}
	}
	return o.error(o.wait(requests...))
}

// Allgather puts what each process has into all, by rank, everywhere: MPI_Allgather. Source: ring.
func Allgather[T Element](ctx context.Context, c *Comm, data, all []T) error {
	o := c.collective(ctx, "allgather")
	if len(all) != len(data)*c.Size() {
		return o.errCount("all", len(all), len(data)*c.Size())
	}
	return allgather(o, data, func(k int) []T { return all[k*len(data) : (k+1)*len(data)] })
}

// Allgatherv is Allgather of unequal parts: that of rank k goes to parts[k]. It is MPI_Allgatherv.
func Allgatherv[T Element](ctx context.Context, c *Comm, data []T, parts [][]T) error {
	o := c.collective(ctx, "allgatherv")
	if len(parts) != c.Size() {
		return o.errCount("parts", len(parts), c.Size())
	}
	if mine := parts[c.rank]; len(mine) != len(data) {
		return o.errCount("this rank's part", len(mine), len(data))
	}
	return allgather(o, data, func(k int) []T { return parts[k] })
}

func allgather[T Element](o collective, data []T, of func(k int) []T) error {
	size := o.Size()
	copy(of(o.rank), data)
	part := func(k int) []byte { return bytesOf(of((k + size) % size)) }
	left, right := (o.rank+size-1)%size, (o.rank+1)%size
	for step := range size - 1 {
		if err := o.exchange(right, part(o.rank-step), left, part(o.rank-step-1)); err != nil {
			return o.error(err)
		}
	}
	return nil
}

// Alltoall gives the k-th part of data to rank k, and puts the part that rank k has for this one
// into the k-th part of result: MPI_Alltoall.
func Alltoall[T Element](ctx context.Context, c *Comm, data, result []T) error {
	o := c.collective(ctx, "alltoall")
	n := len(data) / c.Size()
	if n*c.Size() != len(data) {
		return fmt.Errorf("alltoall: data has %d elements, want a multiple of %d", len(data), c.Size())
	}
	if len(result) != len(data) {
		return o.errCount("result", len(result), len(data))
	}
	return alltoall(o, func(k int) []T { return data[k*n : (k+1)*n] }, func(k int) []T { return result[k*n : (k+1)*n] })
}

// Alltoallv is Alltoall of unequal parts: rank k gets data[k], and what it has for this one goes to
// result[k]. It is MPI_Alltoallv.
func Alltoallv[T Element](ctx context.Context, c *Comm, data, result [][]T) error {
	o := c.collective(ctx, "alltoallv")
	if len(data) != c.Size() {
		return o.errCount("data", len(data), c.Size())
	}
	if len(result) != c.Size() {
		return o.errCount("result", len(result), c.Size())
	}
	if len(data[c.rank]) != len(result[c.rank]) {
		return o.errCount("this rank's result", len(result[c.rank]), len(data[c.rank]))
	}
	return alltoall(o, func(k int) []T { return data[k] }, func(k int) []T { return result[k] })
}

// alltoall posts all receives, and then sends, each process to another one first.
func alltoall[T Element](o collective, data, result func(k int) []T) error {
	size := o.Size()
	copy(result(o.rank), data(o.rank))
	var requests []*Request
	for step := 1; step < size; step++ {
		from := (o.rank - step + size) % size
		requests = append(requests, o.irecv(from, bytesOf(result(from))))
	}
	for step := 1; step < size; step++ {
		to := (o.rank + step) % size
		requests = append(requests, o.isend(to, bytesOf(data(to))))
	}
	return o.error(o.wait(requests...))
}

// Dup makes a communicator of the same processes, whose messages do not mix: MPI_Comm_dup.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// NoColor is for processes that are in no communicator of a Split: MPI_UNDEFINED.
const NoColor = -1

// Split makes communicators of the processes that give one color; their ranks are in the order of
// key, or else of the old ranks. It is MPI_Comm_split. It returns nil for NoColor.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	o := c.collective(ctx, "split")
	w := c.w
	w.mu.Lock()
	next := w.contexts
	w.mu.Unlock()
	all := make([]int, 3*c.Size())
	if err := Allgather(ctx, c, []int{color, key, int(next)}, all); err != nil {
		return nil, o.error(err)
	}
	context := uint32(0)
	for k := range c.Size() {
		context = max(context, uint32(all[3*k+2]))
	}
	if context >= maxContexts {
		return nil, fmt.Errorf("split: %d communicators are all that there may be", maxContexts/2)
	}
	w.mu.Lock()
	w.contexts = max(w.contexts, context+2)
	w.mu.Unlock()
	if color == NoColor {
		return nil, nil
	}
	return c.subset(context, color, all), nil
}

// subset makes the communicator of one color.
func (c *Comm) subset(context uint32, color int, all []int) *Comm {
	n := &Comm{w: c.w, context: context}
	var keys []int
	for k, rank := range c.members {
		if all[3*k] != color {
			continue
		}
		at := len(keys)
		for at > 0 && keys[at-1] > all[3*k+1] {
			at--
		}
		keys = append(keys[:at], append([]int{all[3*k+1]}, keys[at:]...)...)
		n.members = append(n.members[:at], append([]matching.Rank{rank}, n.members[at:]...)...)
	}
	n.rank = n.rankOf(c.members[c.rank])
	return n
}
