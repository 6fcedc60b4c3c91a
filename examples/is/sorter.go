package main

import (
	"context"
	"math/bits"
	"slices"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// sorter is a rank's part of the sort.
type sorter struct {
	problem
	c     *mpi.Comm
	shift int // the bucket of a key is key >> shift

	keys    []int32 // that begin here
	grouped []int32 // the same, by bucket
	ends    []int   // of each bucket in grouped
	sizes   []int32 // of the buckets here; behind them, the keys of tests that are here
	totals  []int32 // the sizes of all ranks, added; and all keys of tests

	own    []int32 // the keys of all ranks that are in this rank's buckets
	low    int32   // the least one that it may be
	upTo   []int32 // upTo[k]: how many of own are low+k or less
	below  int     // how many keys lower ranks have
	passed int     // checks
}

// newSorter makes this rank's keys: the sum of four random numbers each, so most are middling.
func newSorter(c *mpi.Comm, p problem) *sorter {
	n := p.keys / c.Size()
	s := &sorter{
		problem: p, c: c, shift: bits.Len(uint(p.maxKey/p.buckets)) - 1,
		keys: make([]int32, n), grouped: make([]int32, n), ends: make([]int, p.buckets),
		sizes: make([]int32, p.buckets+len(p.tests)), totals: make([]int32, p.buckets+len(p.tests)),
	}
	random := npb.NewRandom(npb.Seed)
	random.Skip(4 * uint64(n*c.Rank()))
	for k := range s.keys {
		sum := random.Float64() + random.Float64() + random.Float64() + random.Float64()
		s.keys[k] = int32(float64(p.maxKey/4) * sum)
	}
	return s
}

// rankKeys is one iteration: it finds how many keys are below each of those that this rank has.
func (s *sorter) rankKeys(ctx context.Context, iteration int) error {
	if s.c.Rank() == 0 { // no two iterations are the same
		s.keys[iteration] = int32(iteration)
		s.keys[iteration+iterations] = int32(s.maxKey - iteration)
	}
	s.group()
	if err := mpi.Allreduce(ctx, s.c, s.sizes, s.totals, mpi.Sum); err != nil {
		return err
	}
	shares := share(s.totals[:s.buckets], s.c.Size(), len(s.keys))
	if err := s.exchange(ctx, shares); err != nil {
		return err
	}
	first := 0
	if s.c.Rank() > 0 {
		first = shares[s.c.Rank()-1]
	}
	s.count(first, shares[s.c.Rank()])
	s.check(iteration)
	return nil
}

// group sorts this rank's keys into buckets.
func (s *sorter) group() {
	clear(s.sizes)
	sizes, ends, grouped, shift := s.sizes, s.ends, s.grouped, s.shift // not read again for each key
	for _, key := range s.keys {
		sizes[key>>shift]++
	}
	for k, t := range s.tests {
		if t.index/len(s.keys) == s.c.Rank() {
			s.sizes[s.buckets+k] = s.keys[t.index%len(s.keys)]
		}
	}
	sum := 0
	for bucket := range ends { // where it begins: it ends where its last key will be put
		ends[bucket] = sum
		sum += int(sizes[bucket])
	}
	for _, key := range s.keys {
		bucket := key >> shift
		end := ends[bucket]
		grouped[end] = key
		ends[bucket] = end + 1
	}
}

// share gives each rank consecutive buckets, of about as many keys: it returns the bucket behind
// each rank's last one. The last ranks may have none.
func share(totals []int32, ranks, keys int) []int {
	shares := make([]int, 0, ranks)
	sum := 0
	for bucket, n := range totals {
		if sum += int(n); sum >= (len(shares)+1)*keys {
			shares = append(shares, bucket+1)
		}
	}
	for len(shares) < ranks {
		shares = append(shares, len(totals))
	}
	return shares
}

// exchange sends each key to the rank that has its bucket.
func (s *sorter) exchange(ctx context.Context, shares []int) error {
	send, sent := make([][]int32, len(shares)), make([]int32, len(shares))
	begin := 0
	for rank, bucket := range shares {
		end := s.ends[bucket-1]
		send[rank], sent[rank] = s.grouped[begin:end], int32(end-begin)
		begin = end
	}
	came := make([]int32, len(shares))
	if err := mpi.Alltoall(ctx, s.c, sent, came); err != nil {
		return err
	}
	total := 0
	for _, n := range came {
		total += int(n)
	}
	s.own = slices.Grow(s.own[:0], total)[:total]
	receive, rest := make([][]int32, len(shares)), s.own
	for rank, n := range came {
		receive[rank], rest = rest[:n], rest[n:]
	}
	return mpi.Alltoallv(ctx, s.c, send, receive)
}

// count counts the keys of this rank's buckets, from first to before end.
func (s *sorter) count(first, end int) {
	s.low = int32(first << s.shift)
	values := (end - first) << s.shift
	s.upTo = slices.Grow(s.upTo[:0], values)[:values]
	clear(s.upTo)
	upTo, low := s.upTo, s.low
	for _, key := range s.own {
		upTo[key-low]++
	}
	var sum int32
	for k, n := range upTo {
		sum += n
		upTo[k] = sum
	}
	s.below = 0
	for _, n := range s.totals[:first] {
		s.below += int(n)
	}
}

// rankOf returns how many keys are less than one that may be in this rank's buckets.
func (s *sorter) rankOf(key int32) int {
	if key == s.low {
		return s.below
	}
	return s.below + int(s.upTo[key-s.low-1])
}

// check compares the ranks of those keys of the tests that are in this rank's buckets.
func (s *sorter) check(iteration int) {
	for k, t := range s.tests {
		key := s.totals[s.buckets+k]
		if key < s.low || int(key-s.low) >= len(s.upTo) {
			continue
		}
		if s.rankOf(key) == t.rank+t.up*(iteration-t.from) {
			s.passed++
		}
	}
}

// sorted puts this rank's keys where their ranks say, and returns whether they are sorted then, and
// above those of all lower ranks. Each rank calls it once, at the end.
func (s *sorter) sorted(ctx context.Context) (bool, error) {
	all := make([]int32, len(s.own))
	for _, key := range s.own {
		s.upTo[key-s.low]--
		all[s.upTo[key-s.low]] = key
	}
	last, before := []int32{-1}, []int32{-1}
	if len(all) > 0 {
		last[0] = all[len(all)-1]
	}
	if err := mpi.Exscan(ctx, s.c, last, before, mpi.Max); err != nil {
		return false, err
	}
	return slices.IsSorted(all) && (len(all) == 0 || before[0] <= all[0]), nil
}
