package cluster

import (
	"encoding/binary"
	"slices"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
)

// kind of a message of an exchange. The answer to a kind is the kind after it.
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
//	 8 offset in the answer or blob, 4 bytes
//	12 length of the answer or blob, 4 bytes; notPosted if there is none yet
//	16 data: the request, or bytes of the answer or blob
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

// send sends a message, or loses it if the link is full: it is asked for again.
func (x *Exchanger) send(i int, m message) {
	_ = x.port.TrySend(0, mcd.To(mcd.Addr{Node: x.nodes[i], Port: x.cfg.Port}), m.bytes())
}

// sendAsked asks a node for the rest of its answer, if anything is asked of it.
func (x *Exchanger) sendAsked(i int) {
	p := &x.peers[i]
	if p.asked.kind != 0 {
		p.asked.offset = uint32(len(p.blob))
		x.send(i, p.asked)
	}
}

// sendPart sends what fits of this node's blob of a round.
func (x *Exchanger) sendPart(i int, round, offset uint32) {
	x.send(i, message{kind: kindPart, number: round}.part(x.posted[round%2], offset, x.ep.MaxPayload()))
}

// part returns m with what fits of a blob, from an offset on.
func (m message) part(blob []byte, offset uint32, maxPayload int) message {
	m.offset = min(offset, uint32(len(blob)))
	m.length = uint32(len(blob))
	rest := blob[m.offset:]
	m.data = rest[:min(len(rest), maxPayload-messageHeaderLen)]
	return m
}

// appendTo appends a part to what is here of a blob, if it is the next one. It reports whether
// the blob is complete, and else whether to ask for the next part: not for a duplicate, whose
// next part was asked for.
func (m message) appendTo(blob *[]byte) (complete, askNext bool) {
	if m.length > MaxBlob || int(m.offset) != len(*blob) {
		return false, false
	}
	*blob = append(*blob, m.data[:min(len(m.data), int(m.length)-len(*blob))]...)
	complete = len(*blob) == int(m.length)
	return complete, !complete && len(m.data) > 0
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
			reply = message{kind: kindAnswer, number: m.number}.part(answer, m.offset, x.ep.MaxPayload())
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
	case kindFetch:
		x.onFetch(from, m)
	case kindAnswer, kindPart:
		x.onPart(from, m)
	case kindDone:
		p.done = max(p.done, m.number)
	}
	if !x.turn.Done() && len(x.missing()) == 0 {
		x.turn.Complete(nil)
	}
}

// onFetch sends a part, or notes that the node waits for it. A node is at most one round behind
// or ahead of another, as each round needs all.
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

// onPart appends a part of an answer, and asks for the next one.
func (x *Exchanger) onPart(from int, m message) {
	p := &x.peers[from]
	if p.asked.kind == 0 || m.kind != p.asked.kind+1 || m.number != p.asked.number {
		return
	}
	p.again = p.heard
	if m.kind == kindPart && m.length == notPosted {
		p.again = p.heard.Add(x.patience(p.heard))
	}
	complete, askNext := m.appendTo(&p.blob)
	if complete {
		p.asked = message{}
	}
	if askNext {
		x.sendAsked(from)
	}
}
