package matching

import (
	"slices"
	"sort"
)

// Receive is a receive. It belongs to the engine until Deliver, CompleteReceive, CancelReceive or
// FailReceive, or until Fetched.
type Receive struct {
	Pattern
	Capacity int // bytes
	// Owner is the driver's.
	Owner any

	order      uint64
	offer      uint64 // its number; 0: it is not offered
	cancelling bool
}

// Message is one that has come.
type Message struct {
	Source Rank
	Envelope
	Data []byte // of an eager one

	id      uint64 // of the send, which wants Matched; or 0
	fetch   bool   // its bytes are at the sender,
	memory  Memory // here
	arrival uint64
}

// Kept reports whether Keep was called for the message.
func (m *Message) Kept() bool { return m.arrival != 0 }

// Post posts a receive.
func (e *Engine) Post(r *Receive, out []Output) []Output {
	if m := e.find(&r.Pattern); m != nil {
		e.unkeep(m)
		return e.bind(m, r, out)
	}
	e.posts++
	r.order, r.offer, r.cancelling = e.posts, 0, false
	if r.Source == AnySource {
		e.wild = append(e.wild, r)
		return e.grantAll(out)
	}
	p := &e.peers[r.Source]
	if p.down {
		return append(out, Output{Do: FailReceive, Receive: r})
	}
	p.posted = append(p.posted, r)
	if r.Capacity >= e.cfg.OfferFrom || p.blocked { // else there is nothing to offer
		out = e.offerTo(p, out)
	}
	return e.grant(p, out)
}

// find returns the oldest kept message that a pattern takes, or nil.
func (e *Engine) find(q *Pattern) *Message {
	kept := e.kept
	if q.Source != AnySource {
		kept = e.peers[q.Source].kept
	}
	for _, m := range kept {
		if q.takes(m.Source, &m.Envelope) {
			return m
		}
	}
	return nil
}

// unkeep takes a message out of those that are kept.
func (e *Engine) unkeep(m *Message) {
	k := sort.Search(len(e.kept), func(k int) bool { return e.kept[k].arrival >= m.arrival })
	e.kept = slices.Delete(e.kept, k, k+1)
	p := &e.peers[m.Source]
	p.kept = remove(p.kept, m)
}

// bind has a message go into a receive. Neither is in a list any more.
func (e *Engine) bind(m *Message, r *Receive, out []Output) []Output {
	p := &e.peers[m.Source]
	p.owedHeaders++
	if m.fetch {
		request := Record{Kind: Request, Envelope: m.Envelope, ID: m.id, Memory: m.memory}
		out = append(out, Output{Do: Fetch, To: p.rank, Record: request, Receive: r})
		e.Release(m)
		return e.giveBack(p, out)
	}
	p.owedBytes += m.Size
	if m.id != 0 && !p.down {
		out = append(out, Output{Do: Push, To: p.rank, Record: Record{Kind: Matched, ID: m.id}})
	}
	out = append(out, Output{Do: Deliver, Receive: r, Message: m})
	return e.giveBack(p, out)
}

// Fetched is told once the bytes of a request were read, or could not be.
func (e *Engine) Fetched(from Rank, id uint64, out []Output) []Output {
	if e.peers[from].down {
		return out
	}
	return append(out, Output{Do: Push, To: from, Record: Record{Kind: Matched, ID: id}})
}

// handleMessage has a message go into the first receive that takes it, or keeps it.
func (e *Engine) handleMessage(p *peer, r *Record, data []byte, out []Output) ([]Output, error) {
	switch {
	case p.headersLeft == 0, r.Kind == Request && r.ID == 0,
		r.Kind == Eager && (len(data) != r.Size || r.Size > min(e.cfg.EagerLimit, p.bytesLeft)):
		return out, ErrProtocol
	case r.Kind == Eager:
		p.bytesLeft -= r.Size
	}
	p.headersLeft--
	p.received++
	p.starved = r.More
	m := &e.current
	*m = Message{Source: p.rank, Envelope: r.Envelope, Data: data, id: r.ID, fetch: r.Kind == Request, memory: r.Memory}
	if to := e.takePosted(p, &r.Envelope); to != nil {
		out = e.bind(m, to, out)
		return e.grant(p, e.offerAll(out)), nil
	}
	if e.Revoked(m.Context) {
		return e.grant(p, e.discard(m, out)), nil
	}
	m = e.keep(p, *m)
	out = append(out, Output{Do: Keep, Message: m})
	return e.grant(p, out), nil
}

func (e *Engine) keep(p *peer, v Message) *Message {
	var m *Message
	if n := len(e.pool); n > 0 {
		m, e.pool = e.pool[n-1], e.pool[:n-1]
	} else {
		m = new(Message)
	}
	*m = v
	e.arrivals++
	m.arrival = e.arrivals
	e.kept, p.kept = append(e.kept, m), append(p.kept, m)
	return m
}

// Release gives the memory of a message back that was kept, and has gone into a receive.
func (e *Engine) Release(m *Message) {
	if m != &e.current {
		*m = Message{}
		e.pool = append(e.pool, m)
	}
}

// takePosted removes the first receive that takes a message, and returns it, or nil.
func (e *Engine) takePosted(p *peer, v *Envelope) *Receive {
	takes := func(r *Receive) bool { return r.takes(p.rank, v) }
	named, wild := slices.IndexFunc(p.posted, takes), slices.IndexFunc(e.wild, takes)
	switch {
	case named < 0 && wild < 0:
		return nil
	case named < 0 || wild >= 0 && e.wild[wild].order < p.posted[named].order:
		r := e.wild[wild]
		e.wild = slices.Delete(e.wild, wild, wild+1)
		return r
	}
	r := p.posted[named]
	p.posted = slices.Delete(p.posted, named, named+1)
	e.unoffer(p, r)
	return r
}

// Offered returns the receive that is offered by a number, or nil if a message went into it.
func (e *Engine) Offered(id uint64) *Receive { return e.receives.get(id) }

// unoffer forgets that a receive was offered, which is gone.
func (e *Engine) unoffer(p *peer, r *Receive) {
	if r.offer != 0 {
		e.receives.remove(r.offer)
		p.offered--
	}
}

// SetLent says how many pieces of memory the driver has lent: also those of receives that are
// complete, as long as it has not taken them back.
func (e *Engine) SetLent(n int) { e.lent = n }

// mayOffer reports whether the driver can lend the memory of one more receive to a peer. It has not
// lent that of all that are offered yet.
func (e *Engine) mayOffer(p *peer) bool {
	return p.offered < MaxOffers && (e.cfg.MaxLent == 0 || e.lent+e.receives.len() < e.cfg.MaxLent)
}

// offerTo offers a peer the receives that it may write into. Source: the package's text.
func (e *Engine) offerTo(p *peer, out []Output) []Output {
	if p.rank == e.cfg.Rank {
		return out
	}
	wild, blocked := e.wild, false
	e.earlier = e.earlier[:0]
	for _, r := range p.posted {
		e.steps++
		for ; len(wild) > 0 && wild[0].order < r.order && len(e.earlier) < maxEarlier; wild = wild[1:] {
			e.earlier = append(e.earlier, &wild[0].Pattern)
		}
		if r.offer != 0 {
			continue
		}
		long := r.Capacity >= e.cfg.OfferFrom
		if len(e.earlier) >= maxEarlier || long && !e.mayOffer(p) {
			blocked = true
			break // nor will those behind it be offered
		}
		e.steps += len(e.earlier)
		if !long || slices.ContainsFunc(e.earlier, r.overlaps) {
			blocked = blocked || long
			e.earlier = append(e.earlier, &r.Pattern)
			continue
		}
		r.offer = e.receives.add(r)
		p.offered++
		out = append(out, Output{Do: Push, To: p.rank, Receive: r, Record: Record{
			Kind: Offer, Envelope: Envelope{r.Context, r.Tag, r.Capacity}, ID: r.offer, Seen: p.received,
		}})
	}
	if blocked && !p.blocked {
		e.blocked = append(e.blocked, p.rank)
	} else if !blocked && p.blocked {
		e.blocked = remove(e.blocked, p.rank)
	}
	p.blocked = blocked
	return out
}

// offerAll offers what waited for a receive that is gone.
func (e *Engine) offerAll(out []Output) []Output {
	for _, rank := range slices.Clone(e.blocked) {
		out = e.offerTo(&e.peers[rank], out)
	}
	return out
}

// handleDone completes a receive that its sender has written into.
func (e *Engine) handleDone(p *peer, r *Record, out []Output) ([]Output, error) {
	to := e.receives.get(r.ID)
	if to == nil || to.Source != p.rank || !to.takes(p.rank, &r.Envelope) {
		return out, ErrProtocol
	}
	p.posted = remove(p.posted, to)
	e.unoffer(p, to)
	e.current = Message{Source: p.rank, Envelope: r.Envelope}
	out = append(out, Output{Do: CompleteReceive, Receive: to, Message: &e.current})
	return e.offerAll(out), nil
}

// Cancel cancels a receive: CancelReceive follows, at once or later, unless a message goes into it.
func (e *Engine) Cancel(r *Receive, out []Output) []Output {
	if r.Source == AnySource {
		if k := slices.Index(e.wild, r); k >= 0 {
			e.wild = slices.Delete(e.wild, k, k+1)
			return e.offerAll(append(out, Output{Do: CancelReceive, Receive: r}))
		}
		return out
	}
	p := &e.peers[r.Source]
	k := slices.Index(p.posted, r)
	switch {
	case k < 0 || r.cancelling:
		return out
	case r.offer == 0:
		p.posted = slices.Delete(p.posted, k, k+1)
		return e.offerAll(append(out, Output{Do: CancelReceive, Receive: r}))
	}
	r.cancelling = true
	return append(out, Output{Do: Push, To: p.rank, Record: Record{Kind: Withdraw, ID: r.offer}})
}

// handleWithdrawn ends a receive that was cancelled in time.
func (e *Engine) handleWithdrawn(p *peer, r *Record, out []Output) ([]Output, error) {
	to := e.receives.get(r.ID)
	if to == nil || to.Source != p.rank || !to.cancelling {
		return out, ErrProtocol
	}
	p.posted = remove(p.posted, to)
	e.unoffer(p, to)
	return e.offerAll(append(out, Output{Do: CancelReceive, Receive: to})), nil
}

// Probe returns the oldest message that a pattern takes and no receive has taken, or nil.
func (e *Engine) Probe(q *Pattern) *Message { return e.find(q) }

// Take is Probe, and takes the message: it is for Receive alone from then on.
func (e *Engine) Take(q *Pattern) *Message {
	m := e.find(q)
	if m != nil {
		e.unkeep(m)
	}
	return m
}

// Receive has a message that was taken go into a receive, which was not posted. It fails if the
// bytes are at a sender that is down.
func (e *Engine) Receive(m *Message, r *Receive, out []Output) []Output {
	if m.fetch && e.peers[m.Source].down {
		r.Source = m.Source
		e.Release(m)
		return append(out, Output{Do: FailReceive, Receive: r})
	}
	return e.bind(m, r, out)
}

// Await says that somebody waits until Probe finds something; Unawait that it does not any more.
func (e *Engine) Await(q *Pattern, out []Output) []Output {
	e.probes = append(e.probes, q)
	return e.grantAll(out)
}

// Unawait undoes Await.
func (e *Engine) Unawait(q *Pattern) { e.probes = remove(e.probes, q) }

// Ask says that somebody has looked for a message and will look again: each time what might be it
// comes as far as for one that waits.
func (e *Engine) Ask(q Pattern, out []Output) []Output {
	e.asked = q
	out = e.Await(&e.asked, out)
	e.Unawait(&e.asked)
	return out
}
