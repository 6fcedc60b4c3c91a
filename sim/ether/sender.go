package ether

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// sender is a flow's near end: TCP's window, as Linux of the paper's time has it (NewReno with selective acknowledgements,
// RFC 5681, 6298 and 6675), in whole segments. It computes; the flow sends.
//
//	una                        nxt
//	 | ok | ? | ok | ? | ? | ? |          inFlight: those with a ?, and not taken for lost
//	       lost: one that was sent three later has arrived
//
// Not modelled: handshakes, a receiver that is slow, segments lost twice in one recovery (the timer finds them).
type sender struct {
	unsent   int64 // bytes
	una, nxt uint64
	segments []segment // by number, modulo their number
	limit    int       // segments on their way

	cwnd, ssthresh int
	credit         int // acknowledged since cwnd last grew by one
	arrived, lost  int // segments in these states

	high      uint64 // above it nothing is known to have arrived
	judged    uint64 // below it segments have been taken for lost or not
	retry     uint64 // below it nothing is lost
	recover   uint64 // recovery ends when all below it is acknowledged
	inTrouble trouble

	srtt, deviation time.Duration
	backoff         uint
	timeouts        uint64
	resent          uint64
}

type segment struct {
	payload uint16
	state   segmentState
}

type segmentState uint8

const (
	onItsWay segmentState = iota
	hasArrived
	isLost
	onItsWayAgain
)

type trouble uint8

const (
	none       trouble = iota
	recovering         // segments were overtaken: half the window, until they are acknowledged
	timedOut           // nothing came back: slow start
)

func newSender(window int) sender {
	limit := max(window/Payload, 1)
	size := 1
	for size < limit {
		size *= 2
	}
	return sender{segments: make([]segment, size), limit: limit, cwnd: min(initialWindow, limit), ssthresh: limit}
}

func (s *sender) at(seq uint64) *segment { return &s.segments[seq&uint64(len(s.segments)-1)] }

func (s *sender) inFlight() int { return int(s.nxt-s.una) - s.arrived - s.lost }

// next returns a segment that may be sent now. It asks to be acknowledged at once where nothing will follow.
func (s *sender) next() (seq uint64, payload int, push, ok bool) {
	if s.inFlight() >= min(s.cwnd, s.limit) {
		return 0, 0, false, false
	}
	if s.lost > 0 {
		seq = s.takeLost()
		return seq, int(s.at(seq).payload), true, true
	}
	if s.unsent == 0 || s.nxt-s.una >= uint64(s.limit) {
		return 0, 0, false, false
	}
	seq, payload = s.nxt, int(min(s.unsent, Payload))
	*s.at(seq) = segment{payload: uint16(payload)}
	s.unsent -= int64(payload)
	s.nxt++
	return seq, payload, s.unsent == 0, true
}

// takeLost returns the first segment that is lost, which goes again. There must be one.
func (s *sender) takeLost() uint64 {
	for s.retry = max(s.retry, s.una); s.at(s.retry).state != isLost; s.retry++ {
	}
	s.at(s.retry).state = onItsWayAgain
	s.lost--
	s.resent++
	return s.retry
}

// acknowledged takes in an ack, and reports whether it acknowledged something for the first time and in order.
func (s *sender) acknowledged(f *frame, roundTrip time.Duration) (progress bool) {
	full := s.inFlight() >= s.cwnd
	s.measure(roundTrip)
	news := 0
	for ; s.una < f.seq; s.una++ {
		s.leave(s.una)
		news++
	}
	for seq := max(f.lo, s.una); seq < f.hi; seq++ {
		if g := s.at(seq); g.state != hasArrived {
			s.leave(seq)
			g.state = hasArrived
			s.arrived++
		}
	}
	s.high = max(s.high, f.seq, f.hi)
	if news > 0 {
		s.backoff = 0
	}
	if s.inTrouble != none && s.una >= s.recover {
		s.inTrouble = none
	}
	s.judge()
	if news > 0 && full && s.inTrouble != recovering {
		s.grow(news)
	}
	return news > 0
}

// leave takes a segment out of its state's count.
func (s *sender) leave(seq uint64) {
	switch s.at(seq).state {
	case hasArrived:
		s.arrived--
	case isLost:
		s.lost--
	}
}

// judge takes for lost what a segment has overtaken that was sent three later, or more. Source: Mathis and Mahdavi, "Forward
// acknowledgement", 1996, as in Linux of that time.
func (s *sender) judge() {
	for s.judged = max(s.judged, s.una); s.judged+dupThreshold < s.high; s.judged++ {
		if g := s.at(s.judged); g.state == onItsWay {
			g.state = isLost
			s.lost++
		}
	}
	if s.lost > 0 && s.inTrouble == none {
		s.inTrouble, s.recover = recovering, s.nxt
		s.ssthresh = max(s.cwnd/2, 2)
		s.cwnd, s.credit = s.ssthresh, 0
	}
}

// grow opens the window: by what was acknowledged in slow start, but no more than an ack is usually for, else by one a round trip.
// Source: RFC 5681 §3.1, RFC 3465 §2.3.
func (s *sender) grow(acknowledged int) {
	if s.cwnd < s.ssthresh {
		s.cwnd = min(s.cwnd+min(acknowledged, ackEvery), s.limit)
		return
	}
	if s.credit += acknowledged; s.credit >= s.cwnd {
		s.credit -= s.cwnd
		s.cwnd = min(s.cwnd+1, s.limit)
	}
}

// timeout takes everything for lost that is not known to have arrived.
func (s *sender) timeout() {
	s.timeouts++
	s.ssthresh = max(s.inFlight()/2, 2)
	for seq := s.una; seq < s.nxt; seq++ {
		if g := s.at(seq); g.state == onItsWay || g.state == onItsWayAgain {
			g.state = isLost
			s.lost++
		}
	}
	s.cwnd, s.credit = 1, 0
	s.judged, s.retry, s.recover, s.inTrouble = s.nxt, s.una, s.nxt, timedOut
	s.backoff++
}

// measure smooths round trips. Source: RFC 6298 §2.
func (s *sender) measure(roundTrip time.Duration) {
	if s.srtt == 0 {
		s.srtt, s.deviation = roundTrip, roundTrip/2
		return
	}
	s.deviation += ((s.srtt - roundTrip).Abs() - s.deviation) / 4
	s.srtt += (roundTrip - s.srtt) / 8
}

// patience is how long the sender waits for an ack before it takes everything for lost.
func (s *sender) patience() time.Duration {
	return min((s.srtt+max(4*s.deviation, minRTO))<<min(s.backoff, 16), maxRTO)
}

// deadline of the oldest segment, given when the last progress was; nothing is awaited if ok is false.
func (s *sender) deadline(progress monotime.Time) (at monotime.Time, ok bool) {
	return progress.Add(s.patience()), s.una < s.nxt
}
