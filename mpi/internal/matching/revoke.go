package matching

import "slices"

// Revoke ends a context: messages in it that no receive takes are dropped, now and later, and their
// credit is given back. Its receives and sends the driver cancels.
func (e *Engine) Revoke(context uint32, out []Output) []Output {
	if e.revoked == nil {
		e.revoked = map[uint32]uint64{}
	}
	e.revoked[context/64] |= 1 << (context % 64)
	for _, m := range slices.Clone(e.kept) {
		if m.Context == context {
			e.unkeep(m)
			out = e.discard(m, out)
			e.Release(m)
		}
	}
	return out
}

// Revoked reports whether a context was ended.
func (e *Engine) Revoked(context uint32) bool { return e.revoked[context/64]>>(context%64)&1 == 1 }

// Drop drops a message that was taken.
func (e *Engine) Drop(m *Message, out []Output) []Output {
	p := &e.peers[m.Source]
	out = e.grant(p, e.discard(m, out))
	e.Release(m)
	return out
}

// discard drops a message that is in no list, as if it had gone into a receive; where its context
// was ended, its sender is told.
func (e *Engine) discard(m *Message, out []Output) []Output {
	p := &e.peers[m.Source]
	p.owedHeaders++
	if !m.fetch {
		p.owedBytes += m.Size
	}
	if m.id != 0 && !p.down {
		out = append(out, Output{Do: Push, To: p.rank, Record: Record{
			Kind: Matched, ID: m.id, Dropped: e.Revoked(m.Context),
		}})
	}
	return e.giveBack(p, out)
}

// Disown gives the place of a send that waits for Matched to a copy with another owner: the send is
// the driver's again.
func (e *Engine) Disown(s *Send, owner any) {
	for k := range e.sends.entries {
		if v := &e.sends.entries[k].v; *v == s {
			disowned := *s
			disowned.Owner = owner
			*v = &disowned
		}
	}
}
