package matching

import "slices"

// A send whose receiver is about to post a receive for it, as both are in one collective operation,
// waits for the offer: so its bytes are written, where they would go before their receive by an end
// that is early. It waits for nothing else, and keeps only its own kind waiting: those of its
// envelope. An offer may not come, as the receiver has made as many as it may, is very late, or
// takes another part in the operation than its sender thinks. Then Age has the send go as others
// do, and those behind it, until one finds an offer there.

// holds reports whether a send waits for an offer.
func (p *peer) holds(s *Send) bool {
	if slices.ContainsFunc(p.held, s.follows) {
		return true // it may not overtake
	}
	return s.Direct && !p.late && !slices.ContainsFunc(p.waiting, s.follows)
}

// follows reports whether a receive of one tag may take either of two sends.
func (s *Send) follows(other *Send) bool {
	return s.Context == other.Context && s.Tag == other.Tag
}

// takeFor takes the first send that an offer takes out of those that wait, or returns nil.
func (p *peer) takeFor(o *offer) *Send {
	takes := func(s *Send) bool { return o.takes(&s.Envelope) }
	if k := slices.IndexFunc(p.waiting, takes); k >= 0 { // older than those that are held
		s := p.waiting[k]
		p.waiting = slices.Delete(p.waiting, k, k+1)
		return s
	}
	if k := slices.IndexFunc(p.held, takes); k >= 0 {
		s := p.held[k]
		p.held = slices.Delete(p.held, k, k+1)
		return s
	}
	return nil
}

// Held reports whether a send waits for an offer, and so for Age.
func (e *Engine) Held(s *Send) bool { return slices.Contains(e.peers[s.To].held, s) }

// Age has those sends go without an offer that have waited for one since before the last call. A
// driver calls it from time to time as long as it reports that some are left.
func (e *Engine) Age(out []Output) (_ []Output, left bool) {
	for k := range e.peers {
		p := &e.peers[k]
		aged := 0
		for aged < len(p.held) && p.held[aged].aged {
			aged++ // they are in the order in which they came
		}
		p.late = p.late || aged > 0
		for range aged {
			s := p.held[0]
			p.held = slices.Delete(p.held, 0, 1)
			out = e.pushOrWait(p, s, out)
		}
		for _, s := range p.held {
			s.aged = true
		}
		left = left || len(p.held) > 0
	}
	return out, left
}
