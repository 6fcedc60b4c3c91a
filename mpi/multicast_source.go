package mpi

import (
	"errors"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// source is what a process has of the multicasts of another one in a communicator: each is taken
// once. World.mu guards it.
type source struct {
	rank        matching.Rank // in the world
	incarnation uint32        // whose frames are taken; 0: none
	begun       uint32        // how many Bcasts of it were called here
	ended       uint32        // all up to this one have returned
	latest      uint32        // number that has come
	slots       [multicastWindow]slot
}

// slot is for a multicast that has come, or is waited for.
type slot struct {
	came    bool
	data    []byte   // that came before its Bcast was called
	request *Request // of its Bcast
	over    bool     // that has returned
}

func (s *source) slot(number uint32) *slot { return &s.slots[number%multicastWindow] }

// errOrder: a program that has more Bcasts under way than there are slots calls them in no order.
var errOrder = errors.New("too many are under way at once")

// begin numbers a Bcast that is called.
func (s *source) begin(r *Request) (number uint32, err error) {
	if s.begun-s.ended == multicastWindow {
		return 0, errOrder
	}
	s.begun++
	s.slot(s.begun).request = r
	r.source = s
	return s.begun, nil
}

// end says that a Bcast has returned.
func (s *source) end(number uint32) {
	s.slot(number).over = true
	for v := s.slot(s.ended + 1); v.over; v = s.slot(s.ended + 1) {
		*v = slot{data: v.data[:0]}
		s.ended++
	}
}

// expects reports whether a multicast has not come, and may.
func (s *source) expects(number uint32) bool {
	return number-s.ended-1 < multicastWindow && !s.slot(number).came
}

// take takes a multicast in, if it is wanted. It returns the Bcast that has waited for it, or nil.
func (s *source) take(number uint32, data []byte) *Request {
	if !s.expects(number) {
		return nil
	}
	if number-s.latest < multicastWindow {
		s.latest = number
	}
	v := s.slot(number)
	v.came = true
	if v.request == nil {
		v.data = append(v.data[:0], data...)
		return nil
	}
	v.request.fill(data)
	return v.request
}

// deliver gives a Bcast that was called its multicast, if that has come before.
func (s *source) deliver(number uint32) bool {
	v := s.slot(number)
	if v.came {
		v.request.fill(v.data)
	}
	return v.came
}

// fill puts a multicast into the memory of its Bcast.
func (r *Request) fill(data []byte) {
	r.status.size = len(data)
	copy(r.memory, data)
}

// overflow is the error of a multicast that is longer than its memory.
func (r *Request) overflow() error {
	if r.status.size > len(r.memory) {
		return truncated(r.status.size, len(r.memory))
	}
	return nil
}
