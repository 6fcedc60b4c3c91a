package optimize

import (
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
)

// maxChain bounds how many pairs change places in one chain. In a fat tree of n leaves Kempe's chains have at most
// n pairs when each leaf has one pair of each VID; a chain that has not ended by then seldom does.
const maxChain = 200

const (
	// kicks is how many pairs are moved anywhere, to begin again near by.
	kicks = 3
	// exploreSeed begins the one row of numbers by which they are chosen.
	exploreSeed = 1
)

// search betters an assignment step by step. Each step is on the trail, so that it can go back.
type search struct {
	*assignment
	effort int // paths that may be tried
	trail  []step
	inWay  []bool // by pair: has changed in the chain under way
}

// step is a pair's change of choice.
type step struct {
	pair int
	from int32
}

func (s *search) spent() bool { return s.tried >= s.effort }

// move lets pair i choose c, and remembers what it chose.
func (s *search) move(i int, c int32) {
	s.trail = append(s.trail, step{i, s.choice[i]})
	s.take(i, c)
}

// goBack undoes the steps after the first n.
func (s *search) goBack(n int) {
	for k := len(s.trail) - 1; k >= n; k-- {
		s.take(s.trail[k].pair, s.trail[k].from)
	}
	s.trail = s.trail[:n]
}

// improve goes downhill until no step leads further: the worst link first, then the sum of squares, which may open
// another way for the worst link.
func (s *search) improve() {
	for !s.spent() {
		for s.relieve() {
		}
		if !s.settle() {
			return
		}
	}
}

// settle moves single pairs to where they cost least, without making any link as bad as the worst. It reports whether it
// moved any.
func (s *search) settle() (any bool) {
	_, limit := s.worstHop()
	for moved := true; moved && !s.spent(); any = any || moved {
		moved = false
		for i := range s.Pairs {
			if c := s.cheapest(i, limit); c != s.choice[i] {
				s.move(i, c)
				moved = true
			}
		}
	}
	return any
}

// cheapest returns the choice of pair i that costs least, of those whose path stays at limit or below: another one than it has
// only if that is worth it, or takes it back to its start.
func (s *search) cheapest(i int, limit float64) int32 {
	p, old := &s.Pairs[i], s.choice[i]
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
		if cost < least-s.still || c == p.Start && cost <= least+s.still {
			best, least = c, cost
		}
	}
	return best
}

// relieve takes load off the worst hop so that fewer hops are as bad, by one pair that moves, or a chain of them. It
// reports whether it could.
func (s *search) relieve() bool {
	worst, u := s.worstHop()
	if u <= s.Bound*(1+near) || s.spent() {
		return false
	}
	limit := u * (1 - tolerance)
	crossing := slices.Clone(s.on[worst/2])
	slices.Sort(crossing) // the list's order tells how the search came here: forget it
	return s.relieveByOne(worst, limit, crossing) || s.relieveByChain(worst, limit, crossing)
}

// relieveByOne moves that pair off the worst hop which then costs least, if there is one whose new path stays below limit.
func (s *search) relieveByOne(worst int32, limit float64, crossing []int32) bool {
	best, to, least := -1, int32(NoChoice), 0.0
	for _, i := range crossing {
		i := int(i)
		old := s.choice[i]
		if s.burden(i, s.Pairs[i].paths[old], worst) == 0 {
			continue
		}
		s.addLoad(i, old, -1)
		_, was := s.after(i, old)
		c, cost := s.lowest(i, old, limit)
		s.addLoad(i, old, 1)
		if c != NoChoice && (best < 0 || cost-was < least-s.still) {
			best, to, least = i, c, cost-was
		}
	}
	if best < 0 {
		return false
	}
	s.move(best, to)
	return true
}

// lowest returns the choice other than old that costs least, of those whose path stays below limit, and noChoice if there
// is none. The load of pair i must not be on any.
func (s *search) lowest(i int, old int32, limit float64) (best int32, least float64) {
	best = NoChoice
	for c, path := range s.Pairs[i].paths {
		c := int32(c)
		if c == old || path == nil || !s.allowed(i, old, c) {
			continue
		}
		if peak, cost := s.after(i, c); peak < limit && (best == NoChoice || cost < least) {
			best, least = c, cost
		}
	}
	return best, least
}

// relieveByChain lets one pair after the other begin a chain, for each choice that it has.
func (s *search) relieveByChain(worst int32, limit float64, crossing []int32) bool {
	for _, i := range crossing {
		p, old := &s.Pairs[i], s.choice[i]
		if s.burden(int(i), p.paths[old], worst) == 0 {
			continue
		}
		for c := range p.paths {
			if s.spent() {
				return false
			}
			if int32(c) != old && p.paths[c] != nil && s.chain(int(i), int32(c), worst, limit) {
				return true
			}
		}
	}
	return false
}

// chain moves pair i to choice c, then what is in its way there, and so on, until no hop on the way is at limit or above.
// If that does not come about, it goes back and reports false.
//
// A pair in the way goes where there is room. If there is room nowhere it takes the choice that i had, if it had c, or the
// other way round: so the chain runs through pairs of these two choices alone, each at most once.
func (s *search) chain(i int, c int32, worst int32, limit float64) bool {
	begin, two := len(s.trail), [2]int32{s.choice[i], c}
	full := s.chainMove(i, c, []int32{worst})
	done := false
	for len(s.trail)-begin < maxChain && !s.spent() {
		for len(full) > 0 && s.utilisation(full[len(full)-1]) < limit {
			full = full[:len(full)-1]
		}
		if len(full) == 0 {
			done = s.changed <= s.most
			break
		}
		j, to := s.inTheWay(full[len(full)-1], two, limit)
		if j < 0 {
			break
		}
		full = s.chainMove(j, to, full)
	}
	for _, st := range s.trail[begin:] {
		s.inWay[st.pair] = false
	}
	if !done {
		s.goBack(begin)
	}
	return done
}

// chainMove moves a pair as part of a chain, and appends the hops that it now loads.
func (s *search) chainMove(i int, c int32, full []int32) []int32 {
	s.move(i, c)
	s.inWay[i] = true
	for _, h := range s.Pairs[i].paths[c] {
		full = append(full, h, h^1)
	}
	return full
}

// inTheWay returns the pair that should leave a hop, and its new choice, or -1 if there is none.
func (s *search) inTheWay(hop int32, two [2]int32, limit float64) (pair int, to int32) {
	pair = -1
	fits, least := false, 0.0
	for _, j := range s.on[hop/2] {
		j := int(j)
		p, old := &s.Pairs[j], s.choice[j]
		if s.inWay[j] || s.burden(j, p.paths[old], hop) == 0 {
			continue
		}
		other := int32(NoChoice)
		switch old {
		case two[0]:
			other = two[1]
		case two[1]:
			other = two[0]
		}
		s.addLoad(j, old, -1)
		_, was := s.after(j, old)
		if c, cost := s.lowest(j, old, limit); c != NoChoice && (!fits || cost-was < least || cost-was == least && j < pair) {
			pair, to, fits, least = j, c, true, cost-was
		}
		if !fits && other != NoChoice && p.paths[other] != nil {
			if _, cost := s.after(j, other); pair < 0 || cost-was < least || cost-was == least && j < pair {
				pair, to, least = j, other, cost-was
			}
		}
		s.addLoad(j, old, 1)
	}
	return pair, to
}

// explore begins again from places near the best one, as long as the worst link is above its bound: a pair on it and a few
// others go anywhere, and from there it is downhill.
func (s *search) explore() {
	s.trail = s.trail[:0]
	best, random := s.Score(), prng.Source(exploreSeed)
	for best.Worst > s.Bound*(1+near) && !s.spent() {
		worst, _ := s.worstHop()
		for k := range kicks {
			i := random.Below(len(s.Pairs))
			if on := s.on[worst/2]; k == 0 {
				i = int(on[random.Below(len(on))])
			}
			s.kick(i, random.Below(len(s.Vids)))
		}
		s.improve()
		if now := s.Score(); s.changed <= s.most && !s.better(best, now) {
			best, s.trail = now, s.trail[:0]
		} else {
			s.goBack(0)
		}
	}
}

// kick moves pair i to choice c, if it may.
func (s *search) kick(i, c int) {
	if s.Pairs[i].paths[c] != nil && s.allowed(i, s.choice[i], int32(c)) {
		s.move(i, int32(c))
	}
	s.tried++
}
