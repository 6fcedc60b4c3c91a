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

// maxWindows is how many numbers windows have, and maxLent how many of them those of users and of
// sends have. The others are left to receives that are offered: of up to 511 other processes each
// is offered matching.MaxOffers. A receive has its window until it was waited for, so there may be
// none left: then nothing is offered, and messages go by the other ways.
const (
	maxWindows = 1<<16 - 1
	maxLent    = maxWindows / 2
)

// takeWindow returns a window that nobody else has, unless most of them are in use.
func (w *World) takeWindow(most int) (*memfifo.Window, error) {
	w.mu.Lock()
	s := &w.spare
	lent := int(s.made) - len(s.windows)
	if lent >= most {
		w.mu.Unlock()
		return nil, fmt.Errorf("%w (%d)", ErrWindows, most)
	}
	w.engine.SetLent(lent + 1)
	if n := len(s.windows); n > 0 {
		defer w.mu.Unlock()
		v := s.windows[n-1]
		s.windows = s.windows[:n-1]
		return v, nil
	}
	s.made++
	id := s.made
	w.mu.Unlock()
	return w.layer.Domain.Register(id, nil, memfifo.Read|memfifo.Write)
}

// giveWindow takes back a window that nobody may use any more. The caller holds mu.
func (w *World) giveWindow(v *memfifo.Window) {
	s := &w.spare
	s.windows = append(s.windows, v)
	w.engine.SetLent(int(s.made) - len(s.windows))
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

func (s *spare) keepRequest(r *Request) {
	r.memory, r.comm = nil, nil
	if len(s.requests) < maxSpare {
		s.requests = append(s.requests, r)
	}
}
