package cluster

import (
	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/internal/clock"
)

// peerLife is which life of a node an Exchanger goes with. Messages may be late, so that one of
// another life says nothing by itself: the node is asked who is there, and its answer tells.
type peerLife struct {
	life   uint32 // its incarnation; 0: it was not heard
	who    uint32 // number of the question who is there, while that has no answer; 0: there is none
	anew   bool   // it has begun anew since a round was completed here
	former bool   // it has completed a round with a former life of this node
}

// isApart reports whether there is no round in common with a node.
func (p *peerLife) isApart() bool { return p.anew || p.former }

// isKnown reports whether a message is of the life of a node that is known, as the first one is
// that is heard. Where it is not, the node is asked who is there; unless this is its answer.
func (x *Exchanger) isKnown(from int, m wire.Message) bool {
	p := &x.peers[from]
	switch {
	case !m.Kind.Valid() || m.From == 0:
		return false
	case p.life == 0:
		p.life = m.From
	}
	answers := m.Kind == wire.Here && m.To == x.life && m.Number == p.who && p.who != 0
	if answers {
		p.who = 0
	}
	switch {
	case m.From == p.life:
		return true
	case answers:
		x.beginAnew(from, m.From)
		return true
	case m.Kind == wire.Who: // it does not know who is here either
		x.sendLife(from, m.From, wire.Message{Kind: wire.Here, Number: m.Number})
	}
	if p.who == 0 {
		x.questions++
		p.who = x.questions
	}
	x.sendLife(from, m.From, wire.Message{Kind: wire.Who, Number: p.who})
	return false
}

// beginAnew goes on with another life of a node. Where no round was completed here, its blob takes
// the place of what the former one has sent; and so does its answer to an Ask.
func (x *Exchanger) beginAnew(from int, life uint32) {
	p := &x.peers[from]
	p.life, p.waits, p.done, p.served, p.linger, p.former = life, 0, 0, 0, false, false
	if x.ended > 0 {
		p.anew = true
		x.refuse(from)
	}
	if p.asked.Kind != 0 || x.ended == 0 && p.asks.Kind == wire.Fetch {
		p.asked, p.blob, p.length = p.asks, nil, 0
		p.ask(clock.Now())
		x.sendAsked(from)
	}
}

// refuse tells a node that has begun anew that this one goes on with its former life. In Close it
// does not: the next Exchanger of this port may go on with the new one.
func (x *Exchanger) refuse(from int) {
	if !x.closing {
		x.send(from, wire.Message{Kind: wire.Former})
	}
}

// apart returns an error if some of the nodes whose blobs a round wants have no round in common
// with this one.
func (x *Exchanger) apart(what string, asked wire.Kind, nodes []int) error {
	if asked != wire.Fetch {
		return nil
	}
	e := &RestartError{Operation: what}
	for _, i := range nodes {
		switch p := &x.peers[i]; {
		case p.anew:
			e.Anew = append(e.Anew, x.nodes[i])
		case p.former:
			e.Former = append(e.Former, x.nodes[i])
		}
	}
	if len(e.Anew)+len(e.Former) == 0 {
		return nil
	}
	return e
}
