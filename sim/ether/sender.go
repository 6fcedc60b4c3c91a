package ether

import (
	"math/bits"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// sender is the sending end of a flow: TCP's window in whole segments, with NewReno or CUBIC, and
// selective acknowledgements (RFC 5681, 9438, 6298, 6675). It computes; the flow sends.
//
//	una                              nxt
//	 | SACKed | ? | SACKed | ? | ? | ? |     inFlight: those with a ?, unless they are lost
//	           lost: a segment sent three later was acknowledged
//
// Not modelled: handshakes, a slow receiver, segments lost twice in one recovery (the RTO finds
// them), and that ssthresh stays where a segment times out again (RFC 5681 §3.1).
type sender struct {
	unsent   int64     // bytes
	una, nxt uint64    // SND.UNA and SND.NXT, RFC 9293 §3.3.1
	segments []segment // a ring, by number
	limit    int       // segments that may be unacknowledged

	control       controller
	recoveryPoint uint64 // recovery ends when all below it is acknowledged; RFC 6582 §3.2 (recover)
	rtt           congestion.RTT
	backoff       uint // RTOs since the last progress; RFC 6298 §5.5

	sacked, lost int    // segments in these states
	highest      uint64 // above it nothing is known to have arrived; "snd.fack"
	lossChecked  uint64 // below it detectLoss has decided
	retransmit   uint64 // below it no segment is lost

	timeouts      uint64
	retransmitted uint64
}

// controller is congestion.Cubic, or NewReno, which does not mind the time.
type controller interface {
	Window() int
	SlowStartThreshold() int
	Phase() congestion.Phase
	OnAckAt(packets int, now, srtt time.Duration)
	OnLoss(flight int) (entered bool)
	OnRTO(flight int)
	OnRecovered()
}

type newReno struct{ congestion.NewReno }

func (n *newReno) OnAckAt(packets int, _, _ time.Duration) { n.OnAck(packets) }

// cubicBackoff is "beta" of tcp_cubic.c in Linux 2.6.24 and before, in 1/1024.
const cubicBackoff = 819

func newController(kind Congestion, c *congestion.Config) controller {
	if kind == Cubic {
		cubic := congestion.NewCubic(c, cubicBackoff)
		return &cubic
	}
	return &newReno{congestion.NewNewReno(c)}
}

type segment struct {
	payload uint16
	state   segmentState
}

type segmentState uint8

const (
	segmentInFlight segmentState = iota
	segmentSACKed
	segmentLost
	segmentRetransmitted // in flight again
)

func newSender(window int, kind Congestion) sender {
	limit := max(window/Payload, 1)
	size := 1 << bits.Len(uint(limit-1)) // a power of two
	return sender{segments: make([]segment, size), limit: limit, control: newController(kind, &congestion.Config{
		InitialWindow: initialWindow, LossWindow: 1, MinWindow: 2, MaxWindow: limit, SlowStartLimit: ackEvery,
	})}
}

func (s *sender) at(seq uint64) *segment { return &s.segments[seq&uint64(len(s.segments)-1)] }

// inFlight is "pipe", RFC 6675 §4.
func (s *sender) inFlight() int { return int(s.nxt-s.una) - s.sacked - s.lost }

// next returns a segment to send now, lost ones first. push asks for an acknowledgement at once,
// where no segment follows.
func (s *sender) next() (seq uint64, payload int, push, ok bool) {
	if s.inFlight() >= min(s.control.Window(), s.limit) {
		return 0, 0, false, false
	}
	if s.lost > 0 {
		seq = s.nextLost()
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

// nextLost returns the first lost segment, for retransmission. There must be one.
func (s *sender) nextLost() uint64 {
	for s.retransmit = max(s.retransmit, s.una); s.at(s.retransmit).state != segmentLost; s.retransmit++ {
	}
	s.at(s.retransmit).state = segmentRetransmitted
	s.lost--
	s.retransmitted++
	return s.retransmit
}

// onAck takes in an acknowledgement that comes now, and reports whether una has advanced.
func (s *sender) onAck(f *frame, now monotime.Time) (progress bool) {
	cwndLimited := s.inFlight() >= s.control.Window()
	s.rtt.Update(now.Sub(f.sentAt))
	acked := 0
	for ; s.una < f.seq; s.una++ {
		s.uncount(s.una)
		acked++
	}
	for seq := max(f.lo, s.una); seq < f.hi; seq++ {
		if g := s.at(seq); g.state != segmentSACKed {
			s.uncount(seq)
			g.state = segmentSACKed
			s.sacked++
		}
	}
	s.highest = max(s.highest, f.seq, f.hi)
	if acked > 0 {
		s.backoff = 0
	}
	if s.control.Phase() != congestion.Open && s.una >= s.recoveryPoint {
		s.control.OnRecovered()
	}
	s.detectLoss()
	if acked > 0 && cwndLimited {
		s.control.OnAckAt(acked, now.Since(), s.rtt.Smoothed())
	}
	return acked > 0
}

// uncount takes a segment out of its state's count.
func (s *sender) uncount(seq uint64) {
	switch s.at(seq).state {
	case segmentSACKed:
		s.sacked--
	case segmentLost:
		s.lost--
	}
}

// detectLoss marks segments as lost that a segment sent DupThresh later has overtaken.
// Source: Mathis and Mahdavi, "Forward acknowledgement", 1996, as in Linux of that time.
func (s *sender) detectLoss() {
	for s.lossChecked = max(s.lossChecked, s.una); s.lossChecked+congestion.DupThresh < s.highest; s.lossChecked++ {
		if g := s.at(s.lossChecked); g.state == segmentInFlight {
			g.state = segmentLost
			s.lost++
		}
	}
	if s.lost > 0 && s.control.OnLoss(s.control.Window()) {
		s.recoveryPoint = s.nxt
	}
}

// onRTO marks all segments as lost that are not known to have arrived.
func (s *sender) onRTO() {
	s.timeouts++
	s.control.OnRTO(s.inFlight())
	for seq := s.una; seq < s.nxt; seq++ {
		if g := s.at(seq); g.state == segmentInFlight || g.state == segmentRetransmitted {
			g.state = segmentLost
			s.lost++
		}
	}
	s.lossChecked, s.retransmit, s.recoveryPoint = s.nxt, s.una, s.nxt
	s.backoff++
}

// rto is the retransmission timeout. Linux has minRTO for the clock's granularity of RFC 6298 §2.3.
func (s *sender) rto() time.Duration {
	return min(s.rtt.RTO(minRTO, 0)<<min(s.backoff, 16), maxRTO)
}

// rtoDeadline returns when the retransmission timeout ends, which began with the last progress.
// ok is false if nothing is in flight.
func (s *sender) rtoDeadline(progress monotime.Time) (at monotime.Time, ok bool) {
	return progress.Add(s.rto()), s.una < s.nxt
}
