package mpi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

var (
	modelRuns = flag.Int("model.runs", 20, "random programs that are run")
	modelSeed = flag.Uint64("model.seed", 0, "of the first, the others count on from it; 0 is a random one")
)

// Random programs: each rank sends to each other one messages of all sizes with random tags, and
// receives as many, from that rank or from any, by tag or by none, early or late, some after a
// cancel. All arrive, whole; those that one receive would take do not overtake each other.
func TestModel(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), runModel)
}

// modelPrograms is how many random programs run.
func modelPrograms() int { return enough(*modelRuns, (*modelRuns+3)/4) }

// eachSeed runs programs from a seed on, or from a random one if it is 0. If one fails it says how
// to repeat it: by flags that begin so.
func eachSeed(t *testing.T, flags string, seed uint64, runs int, run func(t *testing.T, seed uint64)) {
	if seed == 0 {
		seed = rand.Uint64()
	}
	for range runs {
		if repeatable(t, flags, seed, run); t.Failed() {
			return
		}
		seed++
	}
	t.Logf("figures {\"programs\": %d}", runs)
}

// repeatable runs a program that says how to repeat it if it fails, or does not end.
func repeatable(t *testing.T, flags string, seed uint64, run func(t *testing.T, seed uint64)) {
	repeat := fmt.Sprintf("repeat: go test ./mpi -run '^%s$' -%s.runs 1 -%[2]s.seed %d", t.Name(), flags, seed)
	// The limit of go test itself tells no seed.
	endless := time.AfterFunc(5*time.Minute, func() { panic(repeat) })
	defer func() { // a bubble that fails ends the test
		endless.Stop()
		if t.Failed() {
			t.Log(repeat)
		}
	}()
	run(t, seed)
}

// message is what a rank sends: its rank, tag and number lead its bytes.
func message(random *rand.Rand, rank, tag, number int) []byte {
	size := 12
	switch kind := random.IntN(16); {
	case kind == 0:
		size = 50_000
	case kind < 3:
		size = 2000 + random.IntN(20_000)
	case kind < 6:
		size = 1000 + random.IntN(1000)
	case kind < 12:
		size += random.IntN(100)
	}
	b := pattern(number, size)
	binary.BigEndian.PutUint32(b, uint32(rank))
	binary.BigEndian.PutUint32(b[4:], uint32(tag))
	binary.BigEndian.PutUint32(b[8:], uint32(number))
	return b
}

func runModel(t *testing.T, seed uint64) {
	program := rand.New(rand.NewPCG(seed, 0))
	n, each, tags := 2+program.IntN(3), 1+program.IntN(1+program.IntN(30)), 1+program.IntN(3)
	faults := fault.Config{}
	if program.IntN(2) == 0 {
		faults = fault.Config{Loss: .05, Duplicate: .05, Reorder: .1, Delay: .1, DelayMax: time.Millisecond}
	}
	cfg := mpi.Config{EagerLimit: 1 + program.IntN(20_000), OfferFrom: 1 + program.IntN(3000), PeerTimeout: time.Minute}
	bubble(t, n, faults, cfg, func(t *testing.T, c *mpi.Comm) {
		random := rand.New(rand.NewPCG(seed, uint64(c.Rank())+1))
		var all sync.WaitGroup
		all.Go(func() { sendAll(t, rand.New(rand.NewPCG(seed, uint64(c.Rank())+100)), c, each, tags) })
		receiveAll(t, random, c, each, tags)
		all.Wait()
		must(t, c.Barrier(t.Context())) // so that nobody leaves before the last acknowledgement
	})
}

func sendAll(t *testing.T, random *rand.Rand, c *mpi.Comm, each, tags int) {
	var requests []*mpi.Request
	for number := range each * c.Size() {
		to := number % c.Size()
		tag := random.IntN(tags)
		data := message(random, c.Rank(), tag, number)
		switch random.IntN(4) {
		case 0:
			time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
			requests = append(requests, mpi.Issend(c, data, to, tag))
		default:
			requests = append(requests, mpi.Isend(c, data, to, tag))
		}
	}
	for _, r := range requests {
		_, err := r.Wait(t.Context())
		must(t, err)
	}
}

// receiveAll receives by AnySource alone at first, with some receives by rank that may be cancelled.
func receiveAll(t *testing.T, random *rand.Rand, c *mpi.Comm, each, tags int) {
	last := make([][]int, c.Size()) // by source and tag: the number received last
	for k := range last {
		last[k] = slices.Repeat([]int{-1}, tags)
	}
	took := func(s mpi.Status, b []byte) {
		rank, tag, number := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:])), int(binary.BigEndian.Uint32(b[8:]))
		if rank != s.Source || tag != s.Tag || !bytes.Equal(b[12:s.Bytes()], patternView(number, s.Bytes())[12:]) {
			t.Errorf("a message of rank %d, tag %d, number %d is %+v", rank, tag, number, s)
		}
		if number <= last[rank][tag] {
			t.Errorf("message %d of rank %d, tag %d, comes after %d", number, rank, tag, last[rank][tag])
		}
		last[rank][tag] = number
	}
	buf := make([]byte, 50_000)
	for left := each * c.Size(); left > 0; {
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(200)) * time.Microsecond)
		}
		from, tag := mpi.AnySource, mpi.AnyTag
		if random.IntN(2) == 0 {
			from = random.IntN(c.Size())
		}
		if random.IntN(2) == 0 {
			tag = random.IntN(tags)
		}
		patience := time.Duration(random.IntN(1000)) * time.Microsecond
		if from == mpi.AnySource && tag == mpi.AnyTag {
			patience = time.Hour
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		s, err := mpi.Recv(ctx, c, buf, from, tag)
		cancel()
		switch {
		case err == nil:
			took(s, buf)
			left--
		case patience == time.Hour || !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("rank %d, which lacks %d messages: %v", c.Rank(), left, err)
			return
		}
	}
}
