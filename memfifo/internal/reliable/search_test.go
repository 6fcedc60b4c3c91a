package reliable

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/simfault"
)

var searchStates = flag.Int("search.states", 3_000, "TestSearch: the most states of each space; 0: all")

// space is a space of states: two ends, what they write, and what may go wrong.
type space struct {
	name                            string
	records                         [2]int // of each end
	perFrame                        int    // records
	replies                         bool   // end 1 writes in the lane of replies
	losses, duplicates, overtakings int
	early                           int // deadlines that pass while frames are on their way
	restarts                        int // with a bye or without
	holds                           int
}

var spaces = []space{
	{name: "one record", records: [2]int{1, 0}, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "one record, a restart", records: [2]int{1, 0}, restarts: 1, losses: 1},
	{name: "one record, a restart, a duplicate", records: [2]int{1, 0}, restarts: 1, duplicates: 1, overtakings: 1},
	{name: "two records, held", records: [2]int{2, 0}, holds: 1, losses: 1, duplicates: 1},
	{name: "two records", records: [2]int{2, 0}, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "three records", records: [2]int{3, 0}, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "three records, two losses", records: [2]int{3, 0}, losses: 2, duplicates: 1, overtakings: 1},
	{name: "one each way", records: [2]int{1, 1}, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "a request and a reply", records: [2]int{1, 1}, replies: true, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "two records, a restart", records: [2]int{2, 0}, restarts: 1, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "one each way, a restart", records: [2]int{1, 1}, restarts: 1, losses: 1, duplicates: 1, overtakings: 1},
	{name: "one record, two restarts", records: [2]int{1, 0}, restarts: 2, losses: 1, duplicates: 1, overtakings: 1},
	{name: "three records, held", records: [2]int{3, 0}, holds: 1, losses: 1, duplicates: 1, overtakings: 1, early: 1},
	{name: "held within a frame", records: [2]int{3, 0}, perFrame: 2, holds: 2, losses: 1, duplicates: 1, overtakings: 1},
	{name: "held, and a restart", records: [2]int{2, 0}, holds: 1, restarts: 1, losses: 1, duplicates: 1},
}

// All states that two ends can reach in any order of events, with a loss, a duplicate, a frame that
// overtakes others, a restart. In each one the invariants hold, and what has come is what was sent,
// once and in order. From each quiet one both ends come to rest, all has come, and they can talk.
//
// Time is abstract: of instants the key of a state has their order. A deadline passes when nothing
// is on its way, or early, those of the two ends in any order. Retries, round-trip times and windows
// do not count, as no fault lasts.
func TestSearch(t *testing.T) {
	sum := simfault.Figures{}
	for _, s := range spaces {
		most := *searchStates
		switch {
		case most == 0:
			most = math.MaxInt
		case testing.Short(): // with the race detector, from which a core without goroutines gains little
			most /= 10
		}
		r := s.search(most)
		t.Logf("%s: %d states, %d of them quiet, all of them: %t", s.name, r.states, r.quiet, r.states < most)
		if r.wrong != "" {
			t.Errorf("%s: %s\nhistory:\n%v", s.name, r.wrong, r.path)
		}
		sum["states"] += uint64(r.states)
		sum["quiet states"] += uint64(r.quiet)
		sum["searches"]++
		if r.states >= most {
			sum["searches cut short"]++
		}
	}
	t.Logf("figures %v", sum)
}

type searchResult struct {
	states, quiet int
	wrong         string
	path          *step
}

// step is what led to a world.
type step struct {
	before *step
	move
}

func (s *step) String() string {
	var all []string
	for ; s != nil; s = s.before {
		all = append(all, s.move.String())
	}
	slices.Reverse(all)
	return strings.Join(all, "\n")
}

// search visits all states of a space, or the first so many.
func (s space) search(most int) (r searchResult) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	var buf []byte
	visit := func(w *world) bool {
		buf = w.key(buf[:0])
		k := maphash.Bytes(seed, buf)
		if _, was := seen[k]; was {
			return false
		}
		seen[k] = struct{}{}
		return true
	}
	start := newWorld(s)
	visit(start)
	for stack := []*world{start}; len(stack) > 0 && len(seen) < most && r.wrong == ""; {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.quiet() {
			r.quiet++
			w.wrong = w.settles()
		}
		if w.wrong != "" {
			r.wrong, r.path = w.wrong, w.path
		}
		for _, m := range w.moves() {
			if n := w.after(m); n.wrong != "" || visit(n) {
				stack = append(stack, n)
			} else {
				spareConns = append(spareConns, n.ends[m.to].c)
			}
		}
	}
	r.states = len(seen)
	return r
}

// move is an event at an end.
type move struct {
	kind string
	to   int
	k    int // which frame
}

func (m move) String() string { return fmt.Sprintf("%s %d, frame %d", m.kind, m.to, m.k) }
