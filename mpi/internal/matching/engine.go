package matching

import (
	"errors"
	"slices"
)

// Config of an engine. All processes have the same.
type Config struct {
	Rank Rank // of this process
	Size int  // how many there are
	// EagerLimit is the longest message, in bytes, that is sent with its bytes unless there is an
	// offer.
	EagerLimit int
	// EagerBytes bounds the bytes of messages of one process that another one keeps.
	EagerBytes int
	// Headers is how many messages a process may send to another one that takes none.
	Headers int
	// OfferFrom is the shortest receive that is offered, in bytes.
	OfferFrom int
	// MaxLent bounds the pieces of memory that the driver lends, those of receives that are offered
	// among them: nothing is offered beyond. 0 is no bound.
	MaxLent int
}

// Engine is one process' part in the matching of all communicators.
type Engine struct {
	cfg   Config
	peers []peer

	lent     int        // pieces of memory, as the driver says
	posts    uint64     // receives posted
	arrivals uint64     // messages kept
	wild     []*Receive // posted, from any source, in their order
	probes   []*Pattern // that somebody waits for
	asked    Pattern    // one of these, for the time of Ask
	kept     []*Message // in the order in which they came
	blocked  []Rank     // who has a receive that is to be offered once an earlier one is gone
	earlier  []*Pattern // scratch
	steps    int        // what offerTo has looked at, for tests: receives, and pairs of them

	sends    table[Send]    // that wait for Matched
	receives table[Receive] // that are offered
	current  Message        // the one that is being handled
	pool     []*Message
	revoked  map[uint32]uint64 // contexts, a bit each
}

// peer is what this process knows of another one.
type peer struct {
	rank Rank
	down bool

	// As a sender to it.
	offers  []offer
	unbound []header // messages that no offer took, and that it is not known to have taken
	taken   uint32   // how many it is known to have taken
	waiting []*Send  // that have no credit
	held    []*Send  // that wait for an offer
	late    bool     // its offers are not waited for
	headers int      // credit
	bytes   int      // credit

	// As a receiver from it.
	received    uint32     // messages
	posted      []*Receive // from this source, in their order
	kept        []*Message // in theirs
	offered     int        // of posted
	blocked     bool       // it is in Engine.blocked
	starved     bool       // its sends wait
	headersLeft int        // of its credit
	bytesLeft   int        // likewise
	extra       int        // headers granted beyond its due
	owedHeaders int        // to be given back to it
	owedBytes   int        // likewise
}

// ErrProtocol: a record makes no sense at this point.
var ErrProtocol = errors.New("matching: a record that makes no sense")

// New makes an engine.
func New(cfg Config) *Engine {
	e := &Engine{cfg: cfg, peers: make([]peer, cfg.Size)}
	for k := range e.peers {
		p := &e.peers[k]
		p.rank = Rank(k)
		p.headers, p.headersLeft = cfg.Headers, cfg.Headers
		p.bytes, p.bytesLeft = cfg.EagerBytes, cfg.EagerBytes
	}
	return e
}

// Handle takes in a record of another process. data is the bytes of an eager message. A record that
// makes no sense changes nothing, and the error is ErrProtocol.
func (e *Engine) Handle(from Rank, r *Record, data []byte, out []Output) ([]Output, error) {
	if from < 0 || int(from) >= len(e.peers) || r.Size < 0 {
		return out, ErrProtocol
	}
	p := &e.peers[from]
	switch r.Kind {
	case Eager, Request:
		return e.handleMessage(p, r, data, out)
	case Matched:
		return e.handleMatched(p, r, out)
	case Offer:
		return e.handleOffer(p, r, out)
	case Done:
		return e.handleDone(p, r, out)
	case Withdraw:
		return e.handleWithdraw(p, r, out), nil
	case Withdrawn:
		return e.handleWithdrawn(p, r, out)
	case Credit:
		return e.handleCredit(p, r, out)
	case Waiting:
		p.starved = true
		return e.grant(p, out), nil
	}
	return out, ErrProtocol
}

// Down ends what is under way with a process that is down: it fails. What it has sent whole is
// still there to be received.
func (e *Engine) Down(rank Rank, out []Output) []Output {
	p := &e.peers[rank]
	p.down = true
	for _, s := range slices.Concat(p.waiting, p.held) {
		out = append(out, Output{Do: FailSend, Send: s})
	}
	e.sends.removeWhere(func(s *Send) bool {
		if s.To == rank {
			out = append(out, Output{Do: FailSend, Send: s})
		}
		return s.To == rank
	})
	for _, r := range p.posted {
		e.unoffer(p, r)
		out = append(out, Output{Do: FailReceive, Receive: r})
	}
	p.waiting, p.held, p.posted, p.offers, p.unbound = nil, nil, nil, nil, nil
	for _, m := range slices.Clone(p.kept) {
		if m.fetch { // its bytes are gone
			e.unkeep(m)
			e.Release(m)
		}
	}
	return e.offerAll(out)
}

// remove removes an element of a slice that has it.
func remove[T comparable](s []T, v T) []T {
	k := slices.Index(s, v)
	return slices.Delete(s, k, k+1)
}
