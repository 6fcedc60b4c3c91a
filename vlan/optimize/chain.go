package optimize

import "slices"

// maxChain bounds the pairs of one chain: one that has not ended by then seldom does.
const maxChain = 100

// relieveByChain begins a chain with one pair after the other, for each choice that it has.
func (s *search) relieveByChain(worst int32, limit float64, crossing []int) bool {
	for _, i := range crossing {
		for c, path := range s.pairs[i].paths {
			if s.spent() {
				return false
			}
			if int32(c) != s.choice[i] && path != nil && s.chain(i, int32(c), worst, limit) {
				return true
			}
		}
	}
	return false
}

// chain moves pair i to choice c, then a pair that is in its way there, and so on, each at most
// once, until no hop on the way is at limit or above. If that does not succeed, it undoes all and
// reports false.
func (s *search) chain(i int, c int32, worst int32, limit float64) bool {
	begin := len(s.trail)
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
		j, to := s.inTheWay(full[len(full)-1], limit)
		if j < 0 {
			break
		}
		full = s.chainMove(j, to, full)
	}
	for _, st := range s.trail[begin:] {
		s.inChain[st.pair] = false
	}
	if !done {
		s.undo(begin)
	}
	return done
}

// chainMove moves a pair as part of a chain, and appends the hops that it now loads.
func (s *search) chainMove(i int, c int32, full []int32) []int32 {
	s.move(i, c)
	s.inChain[i] = true
	for _, h := range s.pairs[i].paths[c] {
		full = append(full, h, h^1)
	}
	return full
}

// inTheWay returns the pair that should leave a hop, and its new choice, or -1 if there is none:
// those after which cost is least, of the choices with room, or else of all by another hop.
func (s *search) inTheWay(hop int32, limit float64) (pair int, to int32) {
	pair = -1
	fits, least := false, 0.0
	s.inWay = s.appendLoading(s.inWay[:0], hop)
	for _, j := range s.inWay {
		if s.inChain[j] {
			continue
		}
		old := s.choice[j]
		s.addLoad(j, old, -1)
		_, was := s.after(j, old)
		for c, path := range s.pairs[j].paths {
			if int32(c) == old || path == nil || slices.Contains(path, hop) || slices.Contains(path, hop^1) {
				continue
			}
			peak, cost := s.after(j, int32(c))
			if fit := peak < limit; pair < 0 || fit && !fits || fit == fits && cost-was < least {
				pair, to, fits, least = j, int32(c), fit, cost-was
			}
		}
		s.addLoad(j, old, 1)
	}
	return pair, to
}
