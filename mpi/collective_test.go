package mpi_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// sizes are those of communicators: 1 to 9 processes, or some of these numbers.
func sizes() []int { return []int{1, 2, 3, 6, 4, 5, 7, 8, 9}[:enough(9, 4)] }

// everySize runs a program in communicators of all sizes, with few and with many elements.
func everySize(t *testing.T, program func(t *testing.T, c *mpi.Comm, count int)) {
	t.Helper()
	for _, n := range sizes() {
		bubble(t, n, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			for _, count := range []int{1, 3, 5000} {
				program(t, c, count)
			}
		})
	}
}

// sequence is count numbers from first on.
func sequence(first, count int) []int {
	v := make([]int, count)
	for k := range v {
		v[k] = first + k
	}
	return v
}

func TestBcast(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		for root := range c.Size() {
			buf := make([]int, count)
			if c.Rank() == root {
				buf = sequence(root, count)
			}
			must(t, mpi.Bcast(t.Context(), c, buf, root))
			if !slices.Equal(buf, sequence(root, count)) {
				t.Errorf("rank %d of %d, root %d: %v", c.Rank(), c.Size(), root, buf[:1])
			}
		}
	})
}

// affine combines maps x -> a·x + b, modulo a prime: pairs of elements, associative and not
// commutative.
func affine(into, with []int) {
	const p = 1_000_003
	for k := 0; k+1 < len(into); k += 2 {
		a, b := into[k], into[k+1]
		into[k], into[k+1] = a*with[k]%p, (b*with[k]+with[k+1])%p
	}
}

// mapOf is the map of a rank.
func mapOf(rank, count int) []int {
	v := make([]int, 2*count)
	for k := range v {
		v[k] = rank + 2 + k
	}
	return v
}

// combined is the maps of ranks first to last, in their order.
func combined(first, last, count int) []int {
	v := mapOf(first, count)
	for rank := first + 1; rank <= last; rank++ {
		affine(v, mapOf(rank, count))
	}
	return v
}

func TestReduce(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		n := c.Size()
		data, result := mapOf(c.Rank(), count), make([]int, 2*count)
		for root := range n {
			must(t, mpi.Reduce(t.Context(), c, data, result, affine, root))
			if c.Rank() == root && !slices.Equal(result, combined(0, n-1, count)) {
				t.Errorf("reduce of %d to %d: %v", n, root, result[:2])
			}
		}
		must(t, mpi.Allreduce(t.Context(), c, data, result, affine))
		if !slices.Equal(result, combined(0, n-1, count)) {
			t.Errorf("allreduce of %d: %v", n, result[:2])
		}
		must(t, mpi.Scan(t.Context(), c, data, result, affine))
		if !slices.Equal(result, combined(0, c.Rank(), count)) {
			t.Errorf("scan of %d at %d: %v", n, c.Rank(), result[:2])
		}
		clear(result)
		must(t, mpi.Exscan(t.Context(), c, data, result, affine))
		if c.Rank() > 0 && !slices.Equal(result, combined(0, c.Rank()-1, count)) || c.Rank() == 0 && result[0] != 0 {
			t.Errorf("exscan of %d at %d: %v", n, c.Rank(), result[:2])
		}
		parts, from := make([]int, n), 0
		for k := range parts { // of unequal, even lengths, some empty
			parts[k] = min(2*(k%3), 2*count-from)
			from += parts[k]
		}
		parts[n-1] += 2*count - from
		part := make([]int, parts[c.Rank()])
		must(t, mpi.ReduceScatter(t.Context(), c, data, part, parts, affine))
		at := 0
		for _, k := range parts[:c.Rank()] {
			at += k
		}
		if !slices.Equal(part, combined(0, n-1, count)[at:at+len(part)]) {
			t.Errorf("reduce-scatter of %d at %d: %v", n, c.Rank(), part)
		}
		if !slices.Equal(data, mapOf(c.Rank(), count)) {
			t.Error("the data has changed")
		}
		must(t, mpi.Allreduce(t.Context(), c, data, data, affine))
		if !slices.Equal(data, combined(0, n-1, count)) {
			t.Error("in place")
		}
	})
}

func TestOps(t *testing.T) {
	for _, b := range []struct {
		op   mpi.Op[float64]
		want float64
	}{{mpi.Sum[float64], 5}, {mpi.Prod[float64], 6}, {mpi.Min[float64], 2}, {mpi.Max[float64], 3}} {
		into := []float64{2, 3}
		b.op(into, []float64{3, 2})
		if into[0] != b.want || into[1] != b.want {
			t.Errorf("%v, want %v", into, b.want)
		}
	}
}

func TestGatherScatter(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		ctx, n := t.Context(), c.Size()
		whole := sequence(0, n*count)
		mine := sequence(c.Rank()*count, count)
		for root := range n {
			all, part := make([]int, n*count), make([]int, count)
			must(t, mpi.Gather(ctx, c, mine, all, root))
			if c.Rank() == root && !slices.Equal(all, whole) {
				t.Errorf("gather: %v", all[:1])
			}
			must(t, mpi.Scatter(ctx, c, whole, part, root))
			if !slices.Equal(part, mine) {
				t.Errorf("scatter: %v", part[:1])
			}
		}
		all := make([]int, n*count)
		must(t, mpi.Allgather(ctx, c, mine, all))
		if !slices.Equal(all, whole) {
			t.Errorf("allgather: %v", all[:1])
		}
		data, result := make([]int, n*count), make([]int, n*count)
		for k := range n {
			copy(data[k*count:], sequence(1000*c.Rank()+k, count))
		}
		must(t, mpi.Alltoall(ctx, c, data, result))
		for k := range n {
			if !slices.Equal(result[k*count:(k+1)*count], sequence(1000*k+c.Rank(), count)) {
				t.Errorf("alltoall: part %d is %v", k, result[k*count])
			}
		}
	})
}

// Parts need not be equal.
func TestUnequalParts(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		ctx, n := t.Context(), c.Size()
		// The part of rank k for rank j has (k+2j)%4 times count elements, from 1000k+j on.
		part := func(k, j int) []int { return sequence(1000*k+j, (k+2*j)%4*count) }
		room := func(length func(k int) []int) [][]int {
			parts := make([][]int, n)
			for k := range parts {
				parts[k] = make([]int, len(length(k)))
			}
			return parts
		}
		check := func(what string, parts [][]int, want func(k int) []int) {
			for k, got := range parts {
				if !slices.Equal(got, want(k)) {
					t.Errorf("%s of %d at %d: part %d has %d elements, want %d", what, n, c.Rank(), k, len(got), len(want(k)))
				}
			}
		}
		for root := range n {
			to := func(k int) []int { return part(k, root) }
			all := room(to)
			must(t, mpi.Gatherv(ctx, c, to(c.Rank()), all, root))
			if c.Rank() == root {
				check("gatherv", all, to)
			}
			from := func(k int) []int { return part(root, k) }
			parts, mine := room(from), make([]int, len(from(c.Rank())))
			if c.Rank() == root {
				for k := range parts {
					copy(parts[k], from(k))
				}
			}
			must(t, mpi.Scatterv(ctx, c, parts, mine, root))
			check("scatterv", [][]int{mine}, func(int) []int { return from(c.Rank()) })
		}
		first := func(k int) []int { return part(k, 0) }
		all := room(first)
		must(t, mpi.Allgatherv(ctx, c, first(c.Rank()), all))
		check("allgatherv", all, first)
		data := make([][]int, n)
		for k := range data {
			data[k] = part(c.Rank(), k)
		}
		mine := func(k int) []int { return part(k, c.Rank()) }
		result := room(mine)
		must(t, mpi.Alltoallv(ctx, c, data, result))
		check("alltoallv", result, mine)
	})
}

// Any number of barriers is under way at once, also more than a group of package barrier has numbers.
func TestIbarrier_Many(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		for range 2 {
			requests := make([]*mpi.Request, 2*barrier.Numbers)
			for k := range requests {
				requests[k] = c.Ibarrier()
			}
			if c.Rank() == 0 {
				slices.Reverse(requests)
			}
			must(t, mpi.WaitAll(t.Context(), requests...))
		}
	})
}

// Operations that were begun go on while others are begun, and end in any order.
func TestNonBlocking(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		n := c.Size()
		mine := sequence(c.Rank()*count, count)
		sum, scanned, least := make([]int, count), make([]int, count), make([]int, count)
		all, gathered, swapped := make([]int, n*count), make([]int, n*count), make([]int, n*count)
		part, word := make([]int, count), []int{0}
		if c.Rank() == n-1 {
			word[0] = 42
		}
		requests := []*mpi.Request{
			mpi.Iallreduce(c, mine, sum, mpi.Sum), c.Ibarrier(), mpi.Ibcast(c, word, n-1),
			mpi.Iscan(c, mine, scanned, mpi.Max), mpi.Iallgather(c, mine, all), mpi.Igather(c, mine, gathered, 0),
			mpi.Ireduce(c, mine, least, mpi.Min, 0), mpi.Iscatter(c, sequence(0, n*count), part, 0),
			mpi.Ialltoall(c, sequence(0, n*count), swapped), c.Ibarrier(),
		}
		slices.Reverse(requests)
		must(t, mpi.WaitAll(t.Context(), requests...))
		if want := count*n*(n-1)/2 + n*(count-1); sum[count-1] != want || word[0] != 42 || scanned[0] != c.Rank()*count {
			t.Errorf("%d, want %d; %d, %d", sum[count-1], want, word[0], scanned[0])
		}
		whole := sequence(0, n*count)
		if !slices.Equal(all, whole) || !slices.Equal(part, mine) || swapped[(n-1)*count] != c.Rank()*count ||
			c.Rank() == 0 && (!slices.Equal(gathered, whole) || !slices.Equal(least, mine)) {
			t.Errorf("rank %d of %d", c.Rank(), n)
		}
		if err := mpi.WaitAll(t.Context(), mpi.Ibcast(c, word, n)); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("%v", err)
		}
	})
}

// So do those of unequal parts: rank k has, or gets, k%3 times count elements.
func TestNonBlocking_UnequalParts(t *testing.T) {
	everySize(t, func(t *testing.T, c *mpi.Comm, count int) {
		n := c.Size()
		part := func(k int) []int { return sequence(1000*k, k%3*count) }
		room := func() [][]int {
			parts := make([][]int, n)
			for k := range parts {
				parts[k] = make([]int, len(part(k)))
			}
			return parts
		}
		mine, whole, counts := part(c.Rank()), [][]int{}, []int{}
		var joined []int
		for k := range n {
			whole, joined, counts = append(whole, part(k)), append(joined, part(k)...), append(counts, len(part(k)))
		}
		gathered, all := room(), room()
		scattered, reduced, before := make([]int, len(mine)), make([]int, len(mine)), []int{0}
		swapped := make([][]int, n)
		for k := range swapped {
			swapped[k] = make([]int, len(mine))
		}
		must(t, mpi.WaitAll(t.Context(),
			mpi.Iallgatherv(c, mine, all), mpi.Igatherv(c, mine, gathered, n-1), mpi.Iscatterv(c, whole, scattered, 0),
			mpi.Ialltoallv(c, whole, swapped), mpi.IreduceScatter(c, joined, reduced, counts, mpi.Max),
			mpi.Iexscan(c, []int{c.Rank() + 1}, before, mpi.Sum),
		))
		for k := range n {
			if !slices.Equal(all[k], part(k)) || c.Rank() == n-1 && !slices.Equal(gathered[k], part(k)) || !slices.Equal(swapped[k], mine) {
				t.Errorf("rank %d of %d: the part of rank %d: %d, %d, %d", c.Rank(), n, k, all[k], gathered[k], swapped[k])
			}
		}
		if !slices.Equal(scattered, mine) || !slices.Equal(reduced, mine) || before[0] != c.Rank()*(c.Rank()+1)/2 {
			t.Errorf("rank %d of %d: %d, %d, want %d; %d", c.Rank(), n, scattered, reduced, mine, before)
		}
	})
}

// The result of an Exscan does not matter at rank 0, which has nobody before it; elsewhere it does.
func TestExscan_Lengths(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		result := make([]int, c.Rank()) // none at rank 0
		must(t, mpi.Exscan(t.Context(), c, []int{5 + c.Rank()}, result, mpi.Sum))
		must(t, second(mpi.Iexscan(c, []int{5 + c.Rank()}, result, mpi.Sum).Wait(t.Context())))
		if c.Rank() == 1 && result[0] != 5 {
			t.Errorf("%d", result)
		}
		err := mpi.Exscan(t.Context(), c, []int{1}, []int{7, 7}, mpi.Sum)
		if (err != nil) != (c.Rank() == 1) {
			t.Errorf("rank %d, 2 elements for 1: %v", c.Rank(), err)
		}
	})
}

// A process returns from an operation once its data has gone: it may close its world then, though another
// one is late.
func TestExscan_DataHasGone(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		data, result := sequence(c.Rank(), 20_000), make([]int, 20_000)
		late := func(a, b []int) {
			time.Sleep(time.Second)
			mpi.Sum(a, b)
		}
		must(t, mpi.Exscan(t.Context(), c, data, result, late))
		if c.Rank() == 0 {
			must(t, c.World().Close())
		} else if !slices.Equal(result, sequence(0, 20_000)) {
			t.Errorf("it begins with %d", result[:3])
		}
	})
}

// Lengths that do not fit are refused, before anything is sent.
func TestCollectives_Misuse(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, one, two := t.Context(), []int{1}, []int{1, 2}
		for what, err := range map[string]error{
			"gather":         mpi.Gather(ctx, c, one, two, 0),
			"gatherv":        mpi.Gatherv(ctx, c, one, [][]int{one, two}, 0),
			"gatherv's part": mpi.Gatherv(ctx, c, one, [][]int{two}, 0),
			"scatter":        mpi.Scatter(ctx, c, two, one, 0),
			"scatterv":       mpi.Scatterv(ctx, c, [][]int{one, one}, one, 0),
			"allgather":      mpi.Allgather(ctx, c, one, two),
			"allgatherv":     mpi.Allgatherv(ctx, c, one, [][]int{one, one}),
			"its own part":   mpi.Allgatherv(ctx, c, one, [][]int{two}),
			"alltoall":       mpi.Alltoall(ctx, c, one, two),
			"alltoallv":      mpi.Alltoallv(ctx, c, [][]int{one}, [][]int{one, one}),
			"alltoallv, too": mpi.Alltoallv(ctx, c, [][]int{one, one}, [][]int{one}),
			"alltoallv part": mpi.Alltoallv(ctx, c, [][]int{one}, [][]int{two}),
			"reduce":         mpi.Reduce(ctx, c, one, two, mpi.Sum, 0),
			"allreduce":      mpi.Allreduce(ctx, c, one, two, mpi.Sum),
			"scan":           mpi.Scan(ctx, c, one, two, mpi.Sum),
			"reduce-scatter": mpi.ReduceScatter(ctx, c, one, two, one, mpi.Sum),
			"its counts":     mpi.ReduceScatter(ctx, c, one, one, two, mpi.Sum),
			"its count":      mpi.ReduceScatter(ctx, c, one, one, []int{-1}, mpi.Sum),
			"its data":       mpi.ReduceScatter(ctx, c, two, one, one, mpi.Sum),
		} {
			if err == nil || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "left") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := mpi.Bcast(ctx, c, one, 1); !errors.Is(err, mpi.ErrRank) || !strings.HasPrefix(err.Error(), "bcast: root: ") {
			t.Errorf("%v", err)
		}
	})
}

// No process leaves a barrier before all have entered it.
func TestBarrier(t *testing.T) {
	bubble(t, 5, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		for last := range c.Size() {
			begin := time.Now()
			if c.Rank() == last {
				time.Sleep(time.Second)
			}
			must(t, c.Barrier(t.Context()))
			if took := time.Since(begin); took < time.Second {
				t.Errorf("rank %d left after %v", c.Rank(), took)
			}
		}
	})
}

// Communicators of a split have the processes of one color, in the order of their keys, and their
// messages do not mix with those of others.
func TestSplit(t *testing.T) {
	bubble(t, 7, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		color := c.Rank() % 3
		if c.Rank() == 6 {
			color = mpi.NoColor
		}
		part, err := c.Split(ctx, color, -c.Rank())
		must(t, err)
		if color == mpi.NoColor {
			if part != nil {
				t.Error("a communicator of no color")
			}
			return
		}
		if part.Size() != 2 || part.Rank() != 1-c.Rank()/3 {
			t.Errorf("rank %d is %d of %d", c.Rank(), part.Rank(), part.Size())
		}
		ranks := make([]int, 2)
		must(t, mpi.Allgather(ctx, part, []int{c.Rank()}, ranks))
		if want := []int{color + 3, color}; !slices.Equal(ranks, want) {
			t.Errorf("%v, want %v", ranks, want)
		}
		must(t, part.Barrier(ctx))
		twin, err := part.Dup(ctx)
		must(t, err)
		if part.Rank() == 0 {
			must(t, mpi.Send(ctx, part, []int{1}, 1, 0))
			must(t, mpi.Send(ctx, twin, []int{2}, 1, 0))
			return
		}
		buf := make([]int, 1)
		for want, comm := range []*mpi.Comm{part, twin} {
			s, err := mpi.Recv(ctx, []*mpi.Comm{twin, part}[want], buf, mpi.AnySource, mpi.AnyTag)
			must(t, err)
			if buf[0] != 2-want || s.Source != 0 || comm.Size() != 2 {
				t.Errorf("%v, %+v", buf, s)
			}
		}
	})
}

// Communicators that are made at once, from different ones, are different.
func TestDup_AtOnce(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		first, err := c.Dup(ctx)
		must(t, err)
		var both sync.WaitGroup
		var made [2]*mpi.Comm
		for k, from := range []*mpi.Comm{c, first} {
			both.Go(func() {
				n, err := from.Dup(ctx)
				must(t, err)
				made[k] = n
			})
		}
		both.Wait()
		if c.Rank() == 0 {
			must(t, mpi.Send(ctx, made[0], []byte{1}, 1, 0))
			return
		}
		time.Sleep(time.Second)
		if s, found, err := made[1].Iprobe(0, 0); found || err != nil {
			t.Errorf("a message of another communicator: %+v, %v", s, err)
		}
		must(t, second(mpi.Recv(ctx, made[0], make([]byte, 1), 0, 0)))
	})
}

// An operation that Close has ended uses no memory of its caller's once Wait has returned.
func TestIallreduce_Closed(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		slow := func(into, with []int) {
			time.Sleep(2 * time.Second)
			mpi.Sum(into, with)
		}
		result := []int{0}
		r := mpi.Iallreduce(c, []int{1}, result, slow)
		time.Sleep(time.Second) // both combine
		var closing sync.WaitGroup
		closing.Go(func() { must(t, c.World().Close()) })
		if _, err := r.Wait(t.Context()); !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
		result[0] = -1
		closing.Wait()
		if result[0] != -1 {
			t.Errorf("rank %d: what came after Wait is %d", c.Rank(), result[0])
		}
	})
}
