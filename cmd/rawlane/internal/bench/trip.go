package bench

import (
	"encoding/binary"
	"time"
)

// The parts of a round trip, in their order.
//
//	node 0:  Send ── driver ─┐            ┌─ driver ── awake ── Poll ── Recv
//	            send         │ wire  wire │    wake-up  receive  program
//	node 1:                  └─ driver ── awake ── Poll ── Send ── driver ─┘
//	                            wake-up  receive  program  send
//
// Each is taken on one host's clock, as those of two hosts differ. The wire's, there and back, is
// what node 0 waits between the drivers less what node 1 takes between them.
const (
	partSend = iota
	partWire
	partWake1
	partReceive1
	partProgram1
	partSend1
	partWake
	partReceive
	partProgram
	numParts
)

// half is one node's part in a round trip: of a message that has come, and of one that was sent.
// Those of node 0 are of one that was sent and then of one that has come.
type half struct{ wake, receive, program, send time.Duration }

// arrived returns the parts of a message's arrival, until the program has it. ok is false if
// another frame came, too, or a stamp is missing.
func (h *half) arrived(a arrival, program time.Time) (ok bool) {
	driver, polled := a.stamp.Software, a.polled
	if a.frames != 1 || driver.IsZero() {
		return false
	}
	awake := driver
	if a.woken.After(driver) && !a.woken.After(polled) {
		awake = a.woken
	}
	h.wake, h.receive, h.program = wall(driver, awake), wall(awake, polled), wall(polled, program)
	return h.wake >= 0 && h.receive >= 0 && h.program >= 0
}

// departed is the part of a message's departure.
func (h *half) departed(called time.Time, d departure) (ok bool) {
	if d.frames != 1 || d.stamp.Software.IsZero() {
		return false
	}
	h.send = wall(called, d.stamp.Software)
	return h.send >= 0
}

// wall is the time between two readings of this host's clock of the day, as kernels' stamps are.
func wall(from, to time.Time) time.Duration { return to.Round(0).Sub(from.Round(0)) }

// trip is a round trip as node 0 sees it.
type trip struct {
	half
	between  time.Duration // the drivers: the message's departure and its echo's arrival
	hardware time.Duration // the NICs, likewise; 0 if they do not stamp
	whole    time.Duration // by the monotonic clock
}

// turn is a round trip as node 1 sees it: its half, and how long the message was beyond its NIC.
type turn struct {
	half
	hardware time.Duration
}

// parts returns a round trip's parts, and the time between the NICs: 0 if they do not stamp, or if
// it cannot be of the wire's. ok is false if the stamps contradict each other, or the parts are not
// the whole: a clock was set meanwhile, by more than clocks are slewed.
func parts(t trip, u turn) (p [numParts]time.Duration, hardware time.Duration, ok bool) {
	between1 := u.wake + u.receive + u.program + u.send
	p = [numParts]time.Duration{
		partSend: t.send, partWire: t.between - between1,
		partWake1: u.wake, partReceive1: u.receive, partProgram1: u.program, partSend1: u.send,
		partWake: t.wake, partReceive: t.receive, partProgram: t.program,
	}
	if t.hardware > 0 && u.hardware > 0 {
		hardware = t.hardware - u.hardware
	}
	if hardware < 0 || hardware > p[partWire] {
		hardware = 0
	}
	var sum time.Duration
	for _, d := range p {
		sum += d
	}
	return p, hardware, p[partWire] >= 0 && (sum-t.whole).Abs() <= time.Microsecond+t.whole/1000
}

// record is a turn as node 1 tells it: the number of the message, and the parts in ns.
const recordLen = 4 + 5*8

// appendRecord appends the record of a message's turn.
func appendRecord(b []byte, number uint32, t turn) []byte {
	b = binary.BigEndian.AppendUint32(b, number)
	for _, d := range []time.Duration{t.wake, t.receive, t.program, t.send, t.hardware} {
		b = binary.BigEndian.AppendUint64(b, uint64(d))
	}
	return b
}

// parseRecord is its inverse. There are recordLen bytes.
func parseRecord(b []byte) (number uint32, t turn) {
	for i, d := range []*time.Duration{&t.wake, &t.receive, &t.program, &t.send, &t.hardware} {
		*d = time.Duration(binary.BigEndian.Uint64(b[4+8*i:]))
	}
	return binary.BigEndian.Uint32(b), t
}
