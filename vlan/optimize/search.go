package optimize

import (
	"github.com/rawlane/rawlane/internal/prng"
)

const (
	// kicks is the number of pairs that are moved anywhere to restart nearby.
	kicks = 3
	// exploreSeed begins the one sequence of random numbers that chooses them.
	exploreSeed = 1
)

// search improves an assignment step by step. Each step is on the trail, so that it can be undone.
type search struct {
	*assignment
	effort  int // paths that may be tried
	trail   []step
	inChain []bool // by pair: has changed in the chain under way

	crossing, inWay []int // scratch memory of relieve and inTheWay
}

// step is a pair's change of choice.
type step struct {
	pair int
	from int32
}

func (s *search) spent() bool { return s.tried >= s.effort }

// move gives pair i choice c, and puts the step on the trail.
func (s *search) move(i int, c int32) {
	s.trail = append(s.trail, step{i, s.choice[i]})
	s.take(i, c)
}

// undo takes back the steps after the first n.
func (s *search) undo(n int) {
	for k := len(s.trail) - 1; k >= n; k-- {
		s.take(s.trail[k].pair, s.trail[k].from)
	}
	s.trail = s.trail[:n]
}

// improve goes downhill until no step leads further: the worst link first, then the sum of squares,
// which may open another way for the worst link.
func (s *search) improve() {
	for !s.spent() {
		for s.relieve() {
		}
		if !s.settle() {
			return
		}
	}
}

// settle moves single pairs to where they cost least, without making any link as bad as the worst.
// It reports whether it moved any.
func (s *search) settle() (any bool) {
	_, worst := s.worstHop()
	for moved := true; moved && !s.spent(); any = any || moved {
		moved = false
		for i := range s.pairs {
			c, growth := s.cheapest(i, worst*(1+tolerance))
			if c != noChoice && (growth < -s.still || c == s.pairs[i].start && growth <= s.still) {
				s.move(i, c)
				moved = true
			}
		}
	}
	return any
}

// relieve takes load off the worst hop so that fewer hops are as bad, by one pair that moves, or a
// chain of pairs. It reports whether it could.
func (s *search) relieve() bool {
	worst, u := s.worstHop()
	if u <= s.bound*(1+near) || s.spent() {
		return false
	}
	limit := u * (1 - tolerance)
	s.crossing = s.appendLoading(s.crossing[:0], worst)
	return s.relieveByOne(limit, s.crossing) || s.relieveByChain(worst, limit, s.crossing)
}

// relieveByOne moves the pair off the worst hop that then costs least, of those that have a path
// below limit.
func (s *search) relieveByOne(limit float64, crossing []int) bool {
	best, to, least := -1, int32(noChoice), 0.0
	for _, i := range crossing {
		c, growth := s.cheapest(i, limit)
		if c != noChoice && (best < 0 || growth < least-s.still) {
			best, to, least = i, c, growth
		}
	}
	if best < 0 {
		return false
	}
	s.move(best, to)
	return true
}

// explore restarts near the best plan, as long as the worst link is above its bound: a pair on it
// and a few others go anywhere, and from there it is downhill.
func (s *search) explore() {
	s.trail = s.trail[:0]
	best, random := s.score(), prng.Source(exploreSeed)
	for best.worst > s.bound*(1+near) && !s.spent() {
		worst, _ := s.worstHop()
		for k := range kicks {
			i := random.Below(len(s.pairs))
			if on := s.on[worst/2]; k == 0 {
				i = int(on[random.Below(len(on))])
			}
			if c := int32(random.Below(len(s.vids))); s.pairs[i].paths[c] != nil && s.allowed(i, s.choice[i], c) {
				s.move(i, c)
			}
			s.tried++
		}
		s.improve()
		if now := s.score(); s.changed <= s.most && !s.better(best, now) {
			best, s.trail = now, s.trail[:0]
		} else {
			s.undo(0)
		}
	}
}
