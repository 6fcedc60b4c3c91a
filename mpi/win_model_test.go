package mpi_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Random programs on windows: epochs of all kinds, in which the ranks put, get and update elements
// as MPI allows it, in random order and at random times. After each epoch all memory is what the
// same program gives when it runs in sequence, and so is all that was read.
func TestWin_Model(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), runWinModel)
}

// winModel is the memory of all ranks, as each rank computes it for itself.
type winModel [][]int64

// span is what one rank does with the elements of another one, or all with the same update.
type span struct {
	owner, at, n int
	by           int // -1: all update it
	update       mpi.Update
	seed         uint64
}

// values is what a rank writes to a span, or updates it with.
func (s span) values(rank int) []int64 {
	random := rand.New(rand.NewPCG(s.seed, uint64(rank)))
	data := make([]int64, s.n)
	for k := range data {
		data[k] = random.Int64()
	}
	return data
}

// spans cuts the memory of all ranks into parts, each for one use in the next epoch.
func (m winModel) spans(program *rand.Rand) (all []span) {
	commute := []mpi.Update{mpi.Add, mpi.Multiply, mpi.Minimum, mpi.Maximum, mpi.And, mpi.Or, mpi.Xor}
	for owner, memory := range m {
		for at := 0; at < len(memory); {
			s := span{owner: owner, at: at, n: min(1+program.IntN(1<<program.IntN(12)), len(memory)-at), seed: program.Uint64()}
			if s.by = program.IntN(len(m)+1) - 1; s.by < 0 || program.IntN(2) == 0 {
				s.update = commute[program.IntN(len(commute))]
			}
			all = append(all, s)
			at += s.n
		}
	}
	return all
}

// apply does what the ranks do with a span.
func (m winModel) apply(s span) {
	into := m[s.owner][s.at : s.at+s.n]
	for rank := range m {
		if s.by >= 0 && s.by != rank {
			continue
		}
		for k, v := range s.values(rank) {
			switch s.update {
			case 0:
				into[k] = v
			case mpi.Add:
				into[k] += v
			case mpi.Multiply:
				into[k] *= v
			case mpi.Minimum:
				into[k] = min(into[k], v)
			case mpi.Maximum:
				into[k] = max(into[k], v)
			case mpi.And:
				into[k] &= v
			case mpi.Or:
				into[k] |= v
			case mpi.Xor:
				into[k] ^= v
			}
		}
	}
}

// rank runs one rank's part of the programs.
type winRank struct {
	t      *testing.T
	c      *mpi.Comm
	w      *mpi.Win[int64]
	memory []int64
	model  winModel
	random *rand.Rand // of this rank: when, and in which order
}

func runWinModel(t *testing.T, seed uint64) {
	program := rand.New(rand.NewPCG(seed, 0))
	n := 1 + program.IntN(4)
	faults := fault.Config{}
	if program.IntN(2) == 0 {
		faults = lossy
	}
	bubble(t, n, faults, mpi.Config{PeerTimeout: time.Minute}, func(t *testing.T, c *mpi.Comm) {
		program := rand.New(rand.NewPCG(seed, 1)) // the same at all ranks
		r := winRank{t: t, c: c, random: rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))}
		for range n {
			r.model = append(r.model, make([]int64, program.IntN(5000)))
		}
		r.memory = make([]int64, len(r.model[c.Rank()]))
		r.w = newWin(t, c, r.memory)
		for range 6 {
			before := winModel{}
			for _, memory := range r.model {
				before = append(before, slices.Clone(memory))
			}
			spans := r.model.spans(program)
			for _, s := range spans {
				r.model.apply(s)
			}
			r.epoch(program.IntN(4), spans, before)
			if !slices.Equal(r.memory, r.model[c.Rank()]) {
				t.Errorf("rank %d: its memory is not the model's", c.Rank())
			}
			must(t, c.Barrier(t.Context())) // so that nobody writes before all have looked
		}
		must(t, r.w.Free(t.Context()))
	})
}

// epoch does this rank's part of an epoch, of a kind. The others see nothing of it before it is
// over, and this rank not its memory.
func (r *winRank) epoch(kind int, spans []span, before winModel) {
	t, w, ctx := r.t, r.w, r.t.Context()
	all := make([]int, r.c.Size())
	for k := range all {
		all[k] = k
	}
	switch kind {
	case 0:
		must(t, w.Fence(ctx))
		r.operate(spans, before)
		must(t, w.Fence(ctx))
		return // all see what all have written
	case 1:
		must(t, w.Post(all...))
		must(t, w.Start(ctx, all...))
		r.operate(spans, before)
		must(t, w.Complete())
		must(t, w.Wait(ctx))
		return
	case 2:
		must(t, w.LockAll(ctx))
		r.operate(spans, before)
		must(t, w.UnlockAll(ctx))
	case 3:
		r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, owner := range all {
			mode := mpi.LockMode(1 + r.random.IntN(2))
			must(t, w.Lock(ctx, owner, mode))
			r.operate(slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.owner != owner }), before)
			if r.random.IntN(2) == 0 {
				must(t, w.Flush(ctx, owner))
			}
			must(t, w.Unlock(ctx, owner))
		}
	}
	must(t, r.c.Barrier(ctx))
}

// operate does what this rank does with spans, in any order.
func (r *winRank) operate(spans []span, before winModel) {
	t, ctx := r.t, r.t.Context()
	spans = slices.Clone(spans)
	r.random.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
	for _, s := range spans {
		if r.random.IntN(8) == 0 {
			time.Sleep(time.Duration(r.random.IntN(200)) * time.Microsecond)
		}
		if s.by >= 0 && s.by != r.c.Rank() {
			continue
		}
		data, was := s.values(r.c.Rank()), before[s.owner][s.at:s.at+s.n]
		buf := make([]int64, s.n)
		switch {
		case s.update == 0:
			if r.random.IntN(2) == 0 { // what nobody but this rank writes is as it was
				must(t, r.w.Get(ctx, buf, s.owner, s.at))
				r.check(s, buf, was)
			}
			must(t, r.w.Put(ctx, data, s.owner, s.at))
		case r.random.IntN(2) == 0:
			must(t, r.w.Accumulate(ctx, data, s.owner, s.at, s.update))
		default:
			must(t, r.w.GetAccumulate(ctx, data, buf, s.owner, s.at, s.update))
			if s.by >= 0 {
				r.check(s, buf, was)
			}
		}
		clear(data) // it is the caller's again
	}
}

func (r *winRank) check(s span, got, want []int64) {
	if !slices.Equal(got, want) {
		r.t.Errorf("rank %d reads %+v: not the model's", r.c.Rank(), s)
	}
}
