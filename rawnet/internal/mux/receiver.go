package mux

// receiver is the receiving half of a stream.
//
//	read        got         limit
//	 | buffered  |  credit   |
type receiver struct {
	read, got, limit uint64 // offsets: what the reader has taken, what has come, what the peer may send

	block  []byte // memory of the pool; nil: nothing is buffered
	head   int    // in block: where the buffered bytes begin
	posted []byte // of a Read that waits
	filled int    // bytes of posted that have come

	finished    bool // no more comes
	discarding  bool // nobody reads
	resetReason Reason
}

// buffered returns the bytes that nobody has read.
func (r *receiver) buffered() []byte { return r.block[r.head:] }

// Buffered returns how many bytes have come that nobody has read.
func (s *Stream) Buffered() int { return len(s.buffered()) }

// EOF reports whether no more bytes come than are buffered.
func (s *Stream) EOF() bool { return s.finished || s.discarding }

// Read moves buffered bytes into b, and returns how many.
func (s *Stream) Read(b []byte) int {
	n := copy(b, s.buffered())
	s.take(n)
	return n
}

// Post has the next bytes that come be written to b, until Unpost. Nothing is buffered.
func (s *Stream) Post(b []byte) { s.posted, s.filled = b, 0 }

// Unpost takes the memory of Post back, and returns how many bytes have come.
func (s *Stream) Unpost() int {
	n := s.filled
	s.posted, s.filled = nil, 0
	return n
}

// take drops n buffered bytes, as they are read, and their memory once none are left.
func (s *Stream) take(n int) {
	s.head += n
	if s.block != nil && s.head == len(s.block) {
		s.m.pool.put(s.block)
		s.block, s.head = nil, 0
	}
	s.consumed(n)
}

// consumed has the peer be told of its credit, once half of a window was read.
func (s *Stream) consumed(n int) {
	s.read += uint64(n)
	if s.state == Opened && !s.finished && s.limit-s.read <= uint64(s.m.cfg.Window)/2 {
		s.owe(owesWindow)
	}
}

// receive takes bytes that the credit allows.
func (s *Stream) receive(data []byte, out []Event) []Event {
	s.got += uint64(len(data))
	if s.discarding {
		s.consumed(len(data))
		return out
	}
	if s.block == nil && s.filled < len(s.posted) {
		n := copy(s.posted[s.filled:], data)
		if s.filled == 0 {
			out = append(out, Event{Kind: Readable, Stream: s})
		}
		s.filled += n
		s.consumed(n)
		data = data[n:]
	}
	if len(data) > 0 {
		s.buffer(data)
	}
	return out
}

// buffer appends to what is buffered. What was read makes room before the memory grows, if that is
// half of the memory: so a byte is moved once or twice. The memory is four windows at most.
func (s *Stream) buffer(data []byte) {
	if len(s.block)+len(data) > cap(s.block) {
		old := s.buffered()
		if need := len(old) + len(data); need > cap(s.block)/2 {
			block := append(s.m.pool.get(2*need), old...)
			s.m.pool.put(s.block)
			s.block = block
		} else {
			s.block = append(s.block[:0], old...)
		}
		s.head = 0
	}
	s.block = append(s.block, data...)
}
