package mcd

// backlog keeps messages that came while no buffer was posted: a ring of copies, which grows as
// they come.
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
	if b.count == len(b.slots) {
		b.grow()
	}
	slot := &b.slots[(b.head+b.count)%len(b.slots)]
	payload := append(slot.Payload[:0], m.Payload...)
	*slot = *m
	slot.Payload = payload
	b.count++
	return true
}

// grow makes room for as many messages again, where each slot holds one: the oldest is in the first
// one then.
func (b *backlog) grow() {
	n := min(b.limit, max(2*len(b.slots), DefaultBacklog))
	slots := append(append(make([]Message, 0, n), b.slots[b.head:]...), b.slots[:b.head]...)
	for memory := make([]byte, (n-len(slots))*b.size); len(slots) < n; memory = memory[b.size:] {
		slots = append(slots, Message{Payload: memory[:0:b.size]})
	}
	b.slots, b.head = slots, 0
}

// pop returns the oldest message, valid until the next push, or nil.
func (b *backlog) pop() *Message {
	if b.count == 0 {
		return nil
	}
	m := &b.slots[b.head]
	b.head = (b.head + 1) % len(b.slots)
	b.count--
	return m
}
