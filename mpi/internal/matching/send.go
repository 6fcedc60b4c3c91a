package matching

import "slices"

// Send is a send. It belongs to the engine until CompleteSend, DropSend or FailSend, or until its
// bytes are not needed any more: after Push of Eager, and after Write.
type Send struct {
	To Rank
	Envelope
	// Synchronous says that it is complete only once it is matched.
	Synchronous bool
	// Direct says that the receiver posts a receive of its source and tag for the message, or is
	// about to: it waits for the offer.
	Direct bool
	// Owner is the driver's.
	Owner any

	aged bool // held since before the last Age
}

// HasOffer reports whether a send would be written into a receive that is offered.
func (e *Engine) HasOffer(to Rank, v *Envelope) bool {
	return slices.ContainsFunc(e.peers[to].offers, func(o offer) bool { return o.takes(v) })
}

// offer is a receive of a peer that may be written into.
type offer struct {
	id       uint64
	context  uint32
	tag      int32 // or AnyTag
	capacity int
	memory   Memory
}

func (o *offer) takes(e *Envelope) bool {
	return o.context == e.Context && (o.tag == e.Tag || o.tag == AnyTag)
}

// header is a message that no offer took.
type header struct {
	Envelope
	bound bool // it has gone into a receive whose offer it has crossed
}

// Send begins a send.
//
// It is complete after Write, or after Push of an Eager record if it is not synchronous; else with
// CompleteSend.
func (e *Engine) Send(s *Send, out []Output) []Output {
	p := &e.peers[s.To]
	if p.down {
		return append(out, Output{Do: FailSend, Send: s})
	}
	if k := slices.IndexFunc(p.offers, func(o offer) bool { return o.takes(&s.Envelope) }); k >= 0 {
		p.late = p.late && !s.Direct
		return e.write(p, s, k, out)
	}
	if s.To != e.cfg.Rank && p.holds(s) { // nothing is offered to itself
		p.held = append(p.held, s)
		return out
	}
	return e.pushOrWait(p, s, out)
}

// pushOrWait sends a message that no offer takes, as soon as there is credit.
func (e *Engine) pushOrWait(p *peer, s *Send, out []Output) []Output {
	if len(p.waiting) == 0 && p.headers > 0 {
		return e.push(p, s, false, out)
	}
	if p.waiting = append(p.waiting, s); len(p.waiting) == 1 {
		out = append(out, Output{Do: Push, To: p.rank, Record: Record{Kind: Waiting}})
	}
	return out
}

// write sends by an offer.
func (e *Engine) write(p *peer, s *Send, k int, out []Output) []Output {
	o := p.offers[k]
	p.offers = slices.Delete(p.offers, k, k+1)
	return append(out, Output{
		Do: Write, To: p.rank, Send: s, Memory: o.memory, Capacity: o.capacity,
		Record: Record{Kind: Done, ID: o.id, Envelope: s.Envelope},
	})
}

// push sends a message that no offer takes. more says that others wait behind it.
func (e *Engine) push(p *peer, s *Send, more bool, out []Output) []Output {
	r := Record{Kind: Request, Envelope: s.Envelope, More: more}
	if s.Size <= e.cfg.EagerLimit && s.Size <= p.bytes {
		r.Kind = Eager
		p.bytes -= s.Size
	}
	if r.Kind == Request || s.Synchronous {
		r.ID = e.sends.add(s)
	}
	p.headers--
	p.unbound = append(p.unbound, header{Envelope: s.Envelope})
	return append(out, Output{Do: Push, To: p.rank, Record: r, Send: s})
}

// handleOffer takes in an offer, unless the receive has taken a message that has crossed it.
func (e *Engine) handleOffer(p *peer, r *Record, out []Output) ([]Output, error) {
	if !e.trim(p, r.Seen) || len(p.offers) >= MaxOffers {
		return out, ErrProtocol
	}
	o := offer{r.ID, r.Context, r.Tag, r.Size, r.Memory}
	for k := range p.unbound {
		if h := &p.unbound[k]; !h.bound && o.takes(&h.Envelope) {
			h.bound = true
			return out, nil
		}
	}
	p.offers = append(p.offers, o)
	if s := p.takeFor(&o); s != nil { // no other offer takes one of them
		return e.write(p, s, len(p.offers)-1, out), nil
	}
	return out, nil
}

// trim forgets the messages that the receiver has taken.
func (e *Engine) trim(p *peer, seen uint32) bool {
	n := seen - p.taken
	if n > uint32(len(p.unbound)) {
		return false
	}
	p.unbound = slices.Delete(p.unbound, 0, int(n))
	p.taken = seen
	return true
}

// handleCredit sends what has waited.
func (e *Engine) handleCredit(p *peer, r *Record, out []Output) ([]Output, error) {
	if r.Headers < 0 || r.Bytes < 0 || r.Bytes > e.cfg.EagerBytes-p.bytes || !e.trim(p, r.Seen) {
		return out, ErrProtocol
	}
	p.headers += r.Headers
	p.bytes += r.Bytes
	for len(p.waiting) > 0 && p.headers > 0 {
		s := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		out = e.push(p, s, len(p.waiting) > 0, out)
	}
	return out, nil
}

// handleMatched completes a send whose receiver has what it needs.
func (e *Engine) handleMatched(p *peer, r *Record, out []Output) ([]Output, error) {
	s := e.sends.get(r.ID)
	if s == nil || s.To != p.rank {
		return out, ErrProtocol
	}
	e.sends.remove(r.ID)
	do := CompleteSend
	if r.Dropped {
		do = DropSend
	}
	return append(out, Output{Do: do, Send: s}), nil
}

// handleWithdraw takes an offer back. If it is not there, a message is on its way into the receive.
func (e *Engine) handleWithdraw(p *peer, r *Record, out []Output) []Output {
	k := slices.IndexFunc(p.offers, func(o offer) bool { return o.id == r.ID })
	if k < 0 {
		return out
	}
	p.offers = slices.Delete(p.offers, k, k+1)
	return append(out, Output{Do: Push, To: p.rank, Record: Record{Kind: Withdrawn, ID: r.ID}})
}

// CancelSend takes a send back that waits for credit, or for an offer. It returns false if it does
// not: then the message is on its way.
func (e *Engine) CancelSend(s *Send) bool {
	p := &e.peers[s.To]
	for _, list := range []*[]*Send{&p.waiting, &p.held} {
		if k := slices.Index(*list, s); k >= 0 {
			*list = slices.Delete(*list, k, k+1)
			return true
		}
	}
	return false
}

// Requested returns the send of this process that a Request to itself has named.
func (e *Engine) Requested(id uint64) *Send { return e.sends.get(id) }
