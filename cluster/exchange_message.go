package cluster

import (
	"encoding/binary"
	"slices"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
)

// kind of a message of an exchange.
type kind uint8

const (
	kindRequest kind = iota + 1 // of Ask
	kindAnswer                  // to it
	kindPending                 // there is no answer yet
	kindFetch                   // of a node's blob of a round, from an offset on
	kindPart                    // of it
	kindDone                    // the sender has completed a round
)

// message of an exchange. Integers are big-endian.
//
//	 0 kind, 1 byte; 3 bytes of 0
//	 4 number of the request, or round, 4 bytes
//	 8 offset in the blob, 4 bytes
//	12 length of the blob, 4 bytes; notPosted if the round has not begun there
//	16 data: request, answer, or bytes of the blob
type message struct {
	kind           kind
	number         uint32
	offset, length uint32
	data           []byte
}

const messageHeaderLen = 16

// notPosted is the length of a blob that is not there yet.
const notPosted = 1<<32 - 1

func (m message) bytes() []byte {
	b := make([]byte, 4, messageHeaderLen+len(m.data))
	b[0] = byte(m.kind)
	b = binary.BigEndian.AppendUint32(b, m.number)
	b = binary.BigEndian.AppendUint32(b, m.offset)
	b = binary.BigEndian.AppendUint32(b, m.length)
	return append(b, m.data...)
}

// parseMessage reads a message; its kind is 0 if b is none.
func parseMessage(b []byte) (m message) {
	if len(b) < messageHeaderLen {
		return m
	}
	return message{
		kind: kind(b[0]), number: binary.BigEndian.Uint32(b[4:]),
		offset: binary.BigEndian.Uint32(b[8:]), length: binary.BigEndian.Uint32(b[12:]), data: b[messageHeaderLen:],
	}
}

// to returns the destination of a node's place.
func (x *Exchanger) to(i int) mcd.Dest {
	return mcd.To(mcd.Addr{Node: x.nodes[i], Port: x.cfg.Port})
}

// send sends a message, or loses it if the link is full: it is asked for again.
func (x *Exchanger) send(i int, m message) { _ = x.port.TrySend(0, x.to(i), m.bytes()) }

// sendFetch asks for the rest of a node's blob.
func (x *Exchanger) sendFetch(i int) {
	x.send(i, message{kind: kindFetch, number: x.round, offset: uint32(len(x.peers[i].blob))})
}

// sendPart sends what fits of this node's blob of a round.
func (x *Exchanger) sendPart(i int, round, offset uint32) {
	blob := x.posted[round%2]
	if uint64(offset) > uint64(len(blob)) {
		return
	}
	rest := blob[offset:]
	x.send(i, message{
		kind: kindPart, number: round, offset: offset, length: uint32(len(blob)),
		data: rest[:min(len(rest), x.ep.MaxPayload()-messageHeaderLen)],
	})
}

// receive takes messages, in the endpoint's progress.
func (x *Exchanger) receive(batch []mcd.Message, _ bool) {
	for i := range batch {
		from := slices.Index(x.nodes, batch[i].From.Node)
		if from < 0 || from == x.self {
			continue
		}
		if m := parseMessage(batch[i].Payload); m.kind == kindRequest {
			x.onRequest(from, m)
		} else {
			x.handle(from, m)
		}
	}
}

func (x *Exchanger) onRequest(from int, m message) {
	reply := message{kind: kindPending, number: m.number}
	if x.cfg.Answer != nil {
		if answer, ready := x.cfg.Answer(x.nodes[from], m.data); ready {
			reply.kind, reply.data = kindAnswer, answer
		}
	}
	x.mu.Lock() // until the port is known
	defer x.mu.Unlock()
	x.send(from, reply)
}

func (x *Exchanger) handle(from int, m message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.peers[from]
	p.heard = clock.Now()
	switch m.kind {
	case kindAnswer:
		if m.number == x.ask.number && x.nodes[from] == x.ask.to && !x.ask.done {
			x.ask.answer, x.ask.done = slices.Clone(m.data), true
		}
	case kindFetch:
		x.onFetch(from, m)
	case kindPart:
		x.onPart(from, m)
	case kindDone:
		p.done = max(p.done, m.number)
	}
	if x.isMissing != nil && !x.turn.Done() && len(x.missing()) == 0 {
		x.turn.Complete(nil)
	}
}

// onFetch sends a part, or notes that the node waits for it. A node is at most one round behind or ahead of another, as
// each round needs all.
func (x *Exchanger) onFetch(from int, m message) {
	switch m.number {
	case x.posts, x.posts - 1:
		if m.number > 0 {
			x.sendPart(from, m.number, m.offset)
		}
	case x.posts + 1:
		x.peers[from].waits = m.number
		x.send(from, message{kind: kindPart, number: m.number, length: notPosted})
	}
}

// onPart appends a part of a blob, and asks for the next one.
func (x *Exchanger) onPart(from int, m message) {
	p := &x.peers[from]
	if !p.awaited || m.number != x.round || m.length > MaxBlob || int(m.offset) != len(p.blob) {
		return
	}
	p.blob = append(p.blob, m.data[:min(len(m.data), int(m.length)-len(p.blob))]...)
	if p.awaited = len(p.blob) < int(m.length); p.awaited && len(m.data) > 0 {
		x.sendFetch(from)
	}
}
