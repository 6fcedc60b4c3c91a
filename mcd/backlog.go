package mcd

// backlog keeps messages that came while no buffer was posted: a ring of copies, made on first use.
type backlog struct {
	limit, size int // messages, bytes of each
	slots       []Message
	head, count int
}

func (b *backlog) init(limit, size int) { b.limit, b.size = limit, size }

// push keeps a copy of m, or returns false if there is no room.
func (b *backlog) push(m *Message) bool {
	if b.count >= b.limit {
		return false
	}
	if b.slots == nil {
		b.slots = make([]Message, b.limit)
		memory := make([]byte, b.limit*b.size)
		for i := range b.slots {
			b.slots[i].Payload = memory[i*b.size : i*b.size : (i+1)*b.size]
		}
	}
	slot := &b.slots[(b.head+b.count)%b.limit]
	payload := append(slot.Payload[:0], m.Payload...)
	*slot = *m
	slot.Payload = payload
	b.count++
	return true
}

// pop returns the oldest message, valid until the next push, or nil.
func (b *backlog) pop() *Message {
	if b.count == 0 {
		return nil
	}
	m := &b.slots[b.head]
	b.head = (b.head + 1) % b.limit
	b.count--
	return m
}
