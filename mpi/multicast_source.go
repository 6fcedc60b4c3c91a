package mpi

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// source is what a process has of the multicasts of another one in a communicator: each is taken
// once. Its Bcasts are called and return in their order, more or less, and multicasts come before
// them or after: ended <= begun, and latest may be anywhere. World.mu guards it.
type source struct {
	rank        matching.Rank // in the world
	incarnation uint32        // whose frames are taken; 0: none
	begun       uint32        // how many Bcasts of it were called here
	ended       uint32        // all up to this one have returned
	told        uint32        // of these, up to which the root was told
	latest      uint32        // number that has come
	missed      uint16        // since the last Have, that have come as records and not as frames, too
	left        error         // why none comes any more, or nil
	slots       [multicastWindow]slot
}

// slot is for a multicast that has come, or is waited for.
type slot struct {
	came      bool
	data      []byte         // that came before its Bcast was called
	operation wire.Operation // of that
	request   *Request       // of the Bcast that waits for it, or nil
	over      bool           // that has returned
	record    uint32         // number of the last that came as a record
}

// errDiffers: a rank has called something else in the place of an operation.
var errDiffers = errors.New("collective operations are not called in one order, or with one root")

// errOrder: a program that has more Bcasts under way than there are slots calls them in no order.
var errOrder = errors.New("too many are under way at once")

func (s *source) slot(number uint32) *slot { return &s.slots[number%multicastWindow] }

// begin numbers a Bcast that is called.
func (s *source) begin() (number uint32, err error) {
	if s.begun-s.ended == multicastWindow {
		return 0, errOrder
	}
	s.begun++
	return s.begun, nil
}

// end says that a Bcast has returned. It reports whether the root is to be told which have: not if
// it was lately, and none was missed.
func (s *source) end(number uint32) (tell bool) {
	v := s.slot(number)
	v.request, v.over = nil, true
	for v = s.slot(s.ended + 1); v.over; v = s.slot(s.ended + 1) {
		*v = slot{data: v.data[:0], record: v.record}
		s.ended++
		news := s.ended-s.told >= multicastAck/2 || s.missed > 0
		tell = tell || s.ended == 1 || s.ended%multicastAck == 0 && news
	}
	return tell
}

// expects reports whether a multicast has not come, and is wanted.
func (s *source) expects(number uint32) bool {
	v := s.slot(number)
	return number-s.ended-1 < multicastWindow && !v.came && !v.over
}

// take takes a multicast in, if it is wanted. It returns the Bcast that has waited for it, or nil.
func (s *source) take(d *wire.Multicast, record bool) *Request {
	number := d.Number
	v := s.slot(number)
	if !s.expects(number) {
		if !record && v.record == number && s.missed > 0 { // it was late, and not lost
			v.record = 0
			s.missed--
		}
		return nil
	}
	if record && number != 1 {
		v.record = number
		s.missed++
	}
	if int32(number-s.latest) > 0 {
		s.latest = number
	}
	v.came = true
	if v.request == nil {
		v.data, v.operation = append(v.data[:0], d.Data...), d.Operation
		return nil
	}
	v.request.fill(d.Data)
	return v.request
}

// leave says that the process has freed the communicator alone: what has not come does not.
func (s *source) leave(c *Comm) {
	s.left = fmt.Errorf("rank %d: %w", c.rankOf(s.rank), ErrFreed)
	for k := range s.slots {
		if r := s.slots[k].request; r != nil {
			c.w.complete(r, s.left)
		}
	}
}

// fill puts a multicast into the memory of its Bcast.
func (r *Request) fill(data []byte) {
	r.status.size = len(data)
	copy(r.memory, data)
}

// operation is what multicasts of an operation say of which they are.
func (o collective) operation() wire.Operation {
	return wire.Operation{Collective: wire.CollectiveOf(o.name), Number: uint32(o.tag)}
}

// fits returns the error of a multicast of a rank that is of another operation than it should be,
// or of another length.
func (r *Request) fits(rank int, is, should wire.Operation) error {
	if is != should {
		return fmt.Errorf("%w: rank %d has given to operation %d, %v, what operation %d, %v, waits for",
			errDiffers, rank, is.Number, is.Collective, should.Number, should.Collective)
	}
	return r.misfit(rank)
}
