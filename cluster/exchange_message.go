package cluster

import (
	"slices"

	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// send sends a message to the life of a node that is known, or loses it if the link is full: it is
// asked for again.
func (x *Exchanger) send(i int, m wire.Message) { x.sendLife(i, x.peers[i].life, m) }

// sendLife sends a message to a life of a node.
func (x *Exchanger) sendLife(i int, life uint32, m wire.Message) {
	m.From, m.To = x.life, life
	_ = x.port.TrySend(x.peers[i].nic, mcd.To(mcd.Addr{Node: x.nodes[i], Port: x.cfg.Port}), m.Bytes())
}

// sendAsked asks a node for the rest of its answer, if anything is asked of it.
func (x *Exchanger) sendAsked(i int) {
	p := &x.peers[i]
	if p.asked.Kind != 0 {
		p.asked.Offset = uint32(len(p.blob))
		x.send(i, p.asked)
	}
}

// sendPart sends what fits of this node's blob of a round.
func (x *Exchanger) sendPart(i int, round, offset uint32) {
	x.send(i, part(wire.Message{Kind: wire.Part, Number: round}, x.posted[round%2], offset, x.ep.MaxPayload()))
}

// part returns m with what fits of a blob, from an offset on.
func part(m wire.Message, blob []byte, offset uint32, maxPayload int) wire.Message {
	m.Offset = min(offset, uint32(len(blob)))
	m.Length = uint32(len(blob))
	rest := blob[m.Offset:]
	m.Data = rest[:min(len(rest), maxPayload-wire.HeaderLen)]
	return m
}

// appendPart appends a part to what is here of a blob, if it is the next one. It reports whether
// the blob is complete, and else whether to ask for the next part: not for a duplicate, whose
// next part was asked for.
func appendPart(blob *[]byte, m *wire.Message) (complete, askNext bool) {
	if m.Length > MaxBlob || int(m.Offset) != len(*blob) || m.Offset > m.Length {
		return false, false
	}
	*blob = append(*blob, m.Data[:min(len(m.Data), int(m.Length)-len(*blob))]...)
	complete = len(*blob) == int(m.Length)
	return complete, !complete && len(m.Data) > 0
}

// receive takes messages, in the endpoint's progress.
func (x *Exchanger) receive(batch []mcd.Message, _ bool) {
	for i := range batch {
		from := slices.Index(x.nodes, batch[i].From.Node)
		if from < 0 || from == x.self {
			continue
		}
		if m := wire.Parse(batch[i].Payload); m.Kind == wire.Request {
			x.onRequest(from, batch[i].NIC, m)
		} else {
			x.handle(from, batch[i].NIC, m)
		}
	}
}

func (x *Exchanger) onRequest(from, nic int, m wire.Message) {
	reply := wire.Message{Kind: wire.Pending, Number: m.Number}
	if x.cfg.Answer != nil {
		if answer, ready := x.cfg.Answer(x.nodes[from], m.Data); ready {
			reply = part(wire.Message{Kind: wire.Answer, Number: m.Number}, answer, m.Offset, x.ep.MaxPayload())
		}
	}
	x.mu.Lock() // until the port is known
	defer x.mu.Unlock()
	x.peers[from].nic = nic
	x.isKnown(from, m)
	x.sendLife(from, m.From, reply)
}

func (x *Exchanger) handle(from, nic int, m wire.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.peers[from]
	if m.Kind != wire.Done { // which comes by each link
		p.nic = nic
	}
	if x.isKnown(from, m) {
		p.silent = 0
		x.handleKnown(from, m)
	}
	if !x.turn.Done() && (p.isApart() || !x.anyMissing()) {
		x.turn.Complete(nil)
	}
}

// handleKnown takes a message of the life of a node that is known. What is for a former life of
// this one does nothing.
func (x *Exchanger) handleKnown(from int, m wire.Message) {
	p := &x.peers[from]
	forThis := m.To == x.life
	switch {
	case m.Kind == wire.Fetch && p.anew:
		x.refuse(from)
	case m.Kind == wire.Fetch && (forThis || m.To == 0):
		x.onFetch(from, m)
	case m.Kind == wire.Fetch:
		x.send(from, wire.Message{Kind: wire.Here}) // it does not know that this node has begun anew
	case m.Kind == wire.Who:
		x.send(from, wire.Message{Kind: wire.Here, Number: m.Number})
	case m.Kind == wire.Done:
		p.done = max(p.done, m.Number)
	case !forThis:
	case m.Kind == wire.Answer, m.Kind == wire.Part:
		x.onPart(from, m)
	case m.Kind == wire.Pending:
		p.ask(clock.Now())
	case m.Kind == wire.Former:
		p.former = true
	}
}

// ask has a node asked again soon, as it answers.
func (p *peerState) ask(now monotime.Time) { p.again, p.pause = now.Add(askInterval), askInterval }

// onFetch sends a part, or notes that the node waits for it. A node is at most one round behind
// or ahead of another, as each round needs all.
func (x *Exchanger) onFetch(from int, m wire.Message) {
	switch m.Number {
	case x.posts, x.posts - 1:
		if m.Number > 0 {
			x.onOffset(from, m)
			x.sendPart(from, m.Number, m.Offset)
		}
	case x.posts + 1:
		x.peers[from].waits = m.Number
		x.send(from, wire.Message{Kind: wire.Part, Number: m.Number, Length: wire.NotPosted})
	}
}

// onOffset notes how much of the last round's blob a node has fetched.
func (x *Exchanger) onOffset(from int, m wire.Message) {
	p := &x.peers[from]
	if m.Number != x.round || m.Offset == 0 {
		return
	}
	p.waits = 0 // it has the begin
	if has := min(m.Offset, uint32(len(x.posted[m.Number%2]))); x.closing && p.linger && has > p.served {
		x.fetched += int(has - p.served)
		p.served = has
	}
}

// onPart appends a part of an answer, and asks for the next one.
func (x *Exchanger) onPart(from int, m wire.Message) {
	p := &x.peers[from]
	if p.asked.Kind == 0 || m.Kind != p.asked.Kind+1 || m.Number != p.asked.Number {
		return
	}
	now := clock.Now()
	p.ask(now)
	if m.Kind == wire.Part && m.Length == wire.NotPosted {
		p.again = now.Add(x.patience(now))
	}
	if m.Kind == wire.Answer && m.Length != p.length {
		if p.length, p.blob = m.Length, nil; m.Offset > 0 { // another answer than the one that was begun
			x.sendAsked(from)
			return
		}
	}
	complete, askNext := appendPart(&p.blob, &m)
	if complete || m.Kind == wire.Answer && m.Length > MaxBlob { // which Ask tells
		p.asked = wire.Message{}
	}
	if askNext {
		x.sendAsked(from)
	}
}
