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
	_, limit := s.worstHop()
	for moved := true; moved && !s.spent(); any = any || moved {
		moved = false
		for i := range s.pairs {
			if c := s.cheapest(i, limit); c != s.choice[i] {
				s.move(i, c)
				moved = true
			}
		}
	}
	return any
}

// cheapest returns the choice of pair i that costs least, of those whose path stays at limit or
// below. It is another than the present one only if it costs noticeably less, or is the pair's
// start.
func (s *search) cheapest(i int, limit float64) int32 {
	p, old := &s.pairs[i], s.choice[i]
	s.addLoad(i, old, -1)
	defer s.addLoad(i, old, 1)
	best := old
	_, least := s.after(i, old)
	for c := range p.paths {
		c := int32(c)
		if c == old || p.paths[c] == nil || !s.allowed(i, old, c) {
			continue
		}
		peak, cost := s.after(i, c)
		if peak > limit*(1+tolerance) {
			continue
		}
		if cost < least-s.still || c == p.start && cost <= least+s.still {
			best, least = c, cost
		}
	}
	return best
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
		c, gain := s.lowest(i, limit)
		if c != noChoice && (best < 0 || gain < least-s.still) {
			best, to, least = i, c, gain
		}
	}
	if best < 0 {
		return false
	}
	s.move(best, to)
	return true
}

// lowest returns the choice of pair i, other than the present one, that costs least, of those whose
// path stays below limit; and by how much the cost grows. It is noChoice if there is none.
func (s *search) lowest(i int, limit float64) (best int32, growth float64) {
	best = noChoice
	old := s.choice[i]
	s.addLoad(i, old, -1)
	defer s.addLoad(i, old, 1)
	_, was := s.after(i, old)
	for c, path := range s.pairs[i].paths {
		c := int32(c)
		if c == old || path == nil || !s.allowed(i, old, c) {
			continue
		}
		if peak, cost := s.after(i, c); peak < limit && (best == noChoice || cost-was < growth) {
			best, growth = c, cost-was
		}
	}
	return best, growth
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
			s.kick(i, int32(random.Below(len(s.vids))))
		}
		s.improve()
		if now := s.score(); s.changed <= s.most && !s.better(best, now) {
			best, s.trail = now, s.trail[:0]
		} else {
			s.undo(0)
		}
	}
}

// kick moves pair i to choice c, if that is allowed.
func (s *search) kick(i int, c int32) {
	if s.pairs[i].paths[c] != nil && s.allowed(i, s.choice[i], c) {
		s.move(i, c)
	}
	s.tried++
}
