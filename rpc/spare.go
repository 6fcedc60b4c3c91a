package rpc

// spare keeps memory for another use. Domain.mu guards it.
type spare struct {
	calls  []*call
	memory [][]byte
}

func (s *spare) getCall() *call {
	last := len(s.calls) - 1
	if last < 0 {
		return &call{}
	}
	c := s.calls[last]
	s.calls = s.calls[:last]
	return c
}

func (s *spare) putCall(c *call) {
	c.response = nil
	if len(s.calls) < spareMemory && cap(c.buf) <= spareSize {
		s.calls = append(s.calls, c)
	}
}

// getMemory returns an empty slice.
func (s *spare) getMemory() []byte {
	last := len(s.memory) - 1
	if last < 0 {
		return nil
	}
	b := s.memory[last]
	s.memory = s.memory[:last]
	return b[:0]
}

func (s *spare) putMemory(b []byte) {
	if cap(b) > 0 && len(s.memory) < spareMemory && cap(b) <= spareSize {
		s.memory = append(s.memory, b)
	}
}
