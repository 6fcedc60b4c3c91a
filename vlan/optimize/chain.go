package optimize

// maxChain bounds the pairs of one chain. In a fat tree of n leaves a Kempe chain has at most n
// pairs when each leaf has one pair of each VID; a chain that has not ended by then seldom does.
const maxChain = 200

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

// chain moves pair i to choice c, then a pair that is in its way there, and so on, until no hop on
// the way is at limit or above. If that does not succeed, it undoes all and reports false.
//
// A pair in the way goes where there is room. If there is room nowhere it takes the choice that i
// had, if it had c, or the other way round: so the chain runs through pairs of these two choices
// alone, each at most once.
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
// the one whose cost grows least, of the pairs with room elsewhere, or else of those of the two
// choices.
func (s *search) inTheWay(hop int32, two [2]int32, limit float64) (pair int, to int32) {
	pair = -1
	fits, least := false, 0.0
	s.inWay = s.appendLoading(s.inWay[:0], hop)
	for _, j := range s.inWay {
		if s.inChain[j] {
			continue
		}
		if c, growth := s.lowest(j, limit); c != noChoice && (!fits || growth < least) {
			pair, to, fits, least = j, c, true, growth
		}
		other := other(two, s.choice[j])
		if fits || other == noChoice || s.pairs[j].paths[other] == nil {
			continue
		}
		var was, cost float64
		s.without(j, func() {
			_, was = s.after(j, s.choice[j])
			_, cost = s.after(j, other)
		})
		if pair < 0 || cost-was < least {
			pair, to, least = j, other, cost-was
		}
	}
	return pair, to
}

// other returns the other of two choices, or noChoice.
func other(two [2]int32, c int32) int32 {
	switch c {
	case two[0]:
		return two[1]
	case two[1]:
		return two[0]
	}
	return noChoice
}
