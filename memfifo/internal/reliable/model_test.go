package reliable

import (
	"encoding/binary"
	"fmt"
)

// stream is what one end has sent in one lane between two incarnations: records numbered from 0.
type stream struct {
	from, to int
	lane     Lane
	sent     uint32
	got      uint32
	end      *end // that receives it
}

// model knows all streams. The records of a stream arrive at one incarnation of one end, each once
// and in order.
type model struct {
	streams []stream
	records uint64 // delivered
	wrong   string
}

const recordHeader = 10

func (m *model) newStream(from, to int, l Lane) uint32 {
	m.streams = append(m.streams, stream{from: from, to: to, lane: l})
	return uint32(len(m.streams) - 1)
}

// write fills a record.
func (m *model) write(b []byte, id uint32) {
	s := &m.streams[id]
	binary.BigEndian.PutUint32(b, id)
	binary.BigEndian.PutUint32(b[4:], s.sent)
	binary.BigEndian.PutUint16(b[8:], uint16(len(b)))
	for i := recordHeader; i < len(b); i++ {
		b[i] = byte(s.sent) + byte(i)
	}
	s.sent++
}

// read checks the first record, and returns the others.
func (m *model) read(e *end, l Lane, b []byte) (rest []byte) {
	if len(b) < recordHeader || int(binary.BigEndian.Uint16(b[8:])) > len(b) || binary.BigEndian.Uint16(b[8:]) < recordHeader {
		m.fail("%d from %d: %d bytes that are no record", e.node, e.peer, len(b))
		return nil
	}
	id, number := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	b, rest = b[:binary.BigEndian.Uint16(b[8:])], b[binary.BigEndian.Uint16(b[8:]):]
	if int(id) >= len(m.streams) {
		m.fail("%d from %d: a record of no stream", e.node, e.peer)
		return nil
	}
	s := &m.streams[id]
	if number == 0 && e.in[l] == none && s.end == nil {
		e.in[l], s.end = id, e
	}
	if s.from != e.peer || s.to != e.node || s.lane != l || e.in[l] != id || s.end != e || number != s.got || number >= s.sent {
		m.fail("%d takes record %d of stream %d, want %d of %d: %+v", e.node, number, id, s.got, e.in[l], *s)
		return nil
	}
	for i := recordHeader; i < len(b); i++ {
		if b[i] != byte(number)+byte(i) {
			m.fail("record %d of %+v is altered", number, *s)
			return nil
		}
	}
	s.got++
	m.records++
	return rest
}

func (m *model) fail(format string, args ...any) {
	if m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...)
	}
}
