package mpi

import (
	"fmt"

	"github.com/rawlane/rawlane/memfifo"
)

// spare is memory that is used again. World.mu guards it.
type spare struct {
	requests []*Request
	kept     [][]byte          // of messages
	windows  []*memfifo.Window // that were made: nobody may use them now
	made     uint16
}

// maxSpare bounds what is kept of each.
const maxSpare = 1024

func (s *spare) memory() []byte {
	n := len(s.kept)
	if n == 0 {
		return nil
	}
	b := s.kept[n-1]
	s.kept = s.kept[:n-1]
	return b[:0]
}

// keepMemory keeps memory of a message that was received.
func (s *spare) keepMemory(b []byte) {
	if cap(b) > 0 && len(s.kept) < maxSpare {
		s.kept = append(s.kept, b)
	}
}

func (s *spare) window() *memfifo.Window {
	n := len(s.windows)
	if n == 0 {
		return nil
	}
	v := s.windows[n-1]
	s.windows = s.windows[:n-1]
	return v
}

// newWindow makes one more window.
func (w *World) newWindow() (*memfifo.Window, error) {
	w.mu.Lock()
	w.spare.made++
	id := w.spare.made
	w.mu.Unlock()
	if id == 0 {
		w.mu.Lock()
		w.spare.made--
		w.mu.Unlock()
		return nil, fmt.Errorf("%w (%d)", ErrWindows, 1<<16-1)
	}
	return w.layer.Domain.Register(id, nil, memfifo.Read|memfifo.Write)
}

func (s *spare) request() *Request {
	n := len(s.requests)
	if n == 0 {
		return new(Request)
	}
	r := s.requests[n-1]
	s.requests = s.requests[:n-1]
	return r
}
