package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// sender is the sending half of a lane: the frames from the first unacknowledged one to the one
// being filled.
//
//	una         nxt         queued
//	 | in flight |  unsent   | being filled
type sender struct {
	una, nxt uint32             // SND.UNA and SND.NXT, RFC 9293 §3.3.1
	queued   uint32             // the frame being filled
	packets  [Window]sentPacket // by sequence number
	fill     int                // bytes in the frame being filled
	uncorked bool               // that frame does not wait for more records
	train    uint32             // how many full frames wait for no more to go together; 0: one
	released uint32             // before this one no frame waits for others to go with it
	inFlight int                // bytes_in_flight of RFC 9002, in frames: sent, and neither acknowledged nor lost
	lost     int                // frames to retransmit

	creditLimit   uint32 // the first frame beyond the receiver's flow control credit; RFC 9000 §4.1
	ackRequestEnd uint32 // an acknowledgement of all frames before this one was requested

	reno          congestion.NewReno
	recoveryPoint uint32        // recovery ends when all before it is acknowledged; RFC 6582 §3.2 (recover)
	recoverySince monotime.Time // when it began; valid in recovery
	newest        newest        // of the acknowledged frames
	rtoLimit      time.Duration // of baseRTO
	rtoDeadline   monotime.Time // of the retransmission timer; valid if awaitsAck
	backoff       uint          // RTOs since the last progress; RFC 6298 §5.5
	sampled       bool          // there is a sample of the round-trip time since the last RTO
	progressed    bool          // something was acknowledged since then
	stall         retries       // RTOs of data since the last progress
	validatedAt   monotime.Time // when the congestion window was in use last; RFC 7661 §4.2
	tail
}

// sentPacket is a frame, kept until it is acknowledged.
type sentPacket struct {
	buf     Buffer // with headroom
	len     int
	sentAt  monotime.Time
	sends   int
	state   packetState
	rtoOnly bool // lost by an RTO, without other evidence
}

type packetState uint8

const (
	packetUnsent   packetState = iota
	packetInFlight             // sent, not acknowledged
	packetSACKed               // acknowledged, behind a gap
	packetLost                 // to be retransmitted
)

func (s *sender) init(sequence uint32, cfg *Config) {
	s.una, s.nxt, s.queued, s.ackRequestEnd, s.released = sequence, sequence, sequence, sequence, sequence
	s.train = uint32(min(trainFrames, cfg.Train))
	s.rtoLimit = cfg.rtoLimit()
	s.creditLimit = sequence + Window
	s.reno = congestion.NewNewReno(&renoConfig)
}

func (s *sender) packet(sequence uint32) *sentPacket { return &s.packets[sequence%Window] }

// reserve returns n bytes of the frame being filled, or of a new one if they do not fit; nil if
// the window is full.
func (s *sender) reserve(n int, cfg *Config) []byte {
	if s.fill > 0 && s.fill+n > cfg.SendSize {
		s.queue()
	}
	if s.queued-s.una >= Window {
		return nil
	}
	p := s.packet(s.queued)
	if s.fill == 0 {
		*p = sentPacket{buf: cfg.Alloc(cfg.bufferLen(n))}
		s.fill = HeaderLen
	}
	b := p.buf.Bytes[cfg.Headroom+s.fill:][:n]
	s.fill += n
	return b
}

// queue ends the frame being filled.
func (s *sender) queue() {
	s.packet(s.queued).len = s.fill
	s.fill, s.uncorked = 0, false
	s.queued++
}

// next returns the next frame to send, if there is one: lost frames, then full ones, then the one
// being filled if it is not corked. The first unacknowledged frame goes even if the congestion
// window is full: all others wait for it.
func (s *sender) next() (sequence uint32, ok bool) {
	if s.lost > 0 && s.packet(s.una).state == packetLost && before(s.una, s.creditLimit) {
		return s.una, true
	}
	if s.inFlight >= s.reno.Window() {
		return 0, false
	}
	if s.lost > 0 {
		for q := s.una; before(q, s.nxt) && before(q, s.creditLimit); q++ {
			if s.packet(q).state == packetLost {
				return q, true
			}
		}
	}
	if !before(s.nxt, s.creditLimit) {
		return 0, false
	}
	if s.nxt == s.queued && s.fill > 0 && !s.corked() {
		s.queue()
	}
	return s.nxt, s.nxt != s.queued && !s.holds()
}

// corked reports whether the frame being filled waits for more records: enough is in flight, and
// one of these frames brings an acknowledgement at once.
func (s *sender) corked() bool {
	return s.inFlight >= corkFrames && !s.uncorked && before(s.una, s.ackRequestEnd)
}

// holds reports whether full frames wait for more of them, to go together: as corked, where the
// link has trains.
func (s *sender) holds() bool {
	return s.train > 0 && s.queued-s.nxt < min(s.train, uint32(s.reno.Window())/acksPerWindow) &&
		s.inFlight >= corkFrames && !before(s.nxt, s.released) && before(s.una, s.ackRequestEnd)
}

// release lets all frames go that wait for others, and the one being filled.
func (s *sender) release() {
	s.uncorked, s.released = s.fill > 0, s.queued
	if s.uncorked {
		s.released++
	}
}

// canStream reports whether the next frame to send is a full one that may go for the first time.
func (s *sender) canStream() bool {
	return s.lost == 0 && s.nxt != s.queued && s.inFlight < s.reno.Window() && before(s.nxt, s.creditLimit)
}

// requestsAck reports whether a frame asks for an acknowledgement at once: the last one queued,
// and some in each congestion window.
func (s *sender) requestsAck(sequence uint32) bool {
	interval := min(s.reno.Window()/acksPerWindow, max(fewFrames, int(s.queued-s.una)/2))
	return sequence+1 == s.queued && s.fill == 0 || int(sequence-s.ackRequestEnd) >= interval-1
}

// onSent notes that a frame was sent, and whether it requested an acknowledgement.
func (s *sender) onSent(sequence uint32, ackNow bool, now monotime.Time, rtt *congestion.RTT) {
	p := s.packet(sequence)
	if ackNow && before(s.ackRequestEnd, sequence+1) {
		s.ackRequestEnd = sequence + 1
	}
	if s.inFlight+s.lost == 0 { // else the timer goes on: it counts how long no data arrives
		s.rtoDeadline = now.Add(s.rto(rtt))
		s.validate(now, 0)
	}
	if p.state == packetLost {
		s.lost--
		p.rtoOnly = false
	}
	s.activeAt = now
	p.state, p.sentAt = packetInFlight, now
	p.sends++
	s.inFlight++
	if sequence == s.nxt {
		s.nxt++
	}
}

// onRefused takes back a frame that was not sent after all. It reports whether it was sent before.
func (s *sender) onRefused(sequence uint32) bool {
	p := s.packet(sequence)
	if p.state == packetInFlight {
		p.state = packetLost
		p.sends--
		s.inFlight--
		s.lost++
	}
	return p.sends > 0
}

// rto returns the retransmission timeout with its backoff.
func (s *sender) rto(rtt *congestion.RTT) time.Duration {
	return backOff(baseRTO(rtt, s.rtoLimit), s.backoff)
}

// awaitsAck reports whether an acknowledgement is due: of a frame in flight, or with credit for
// the next one.
func (s *sender) awaitsAck() bool {
	return s.una != s.nxt || (s.nxt != s.queued || s.fill > 0) && !before(s.nxt, s.creditLimit)
}

// before reports whether a comes before b, in sequence numbers that wrap (RFC 1982).
func before(a, b uint32) bool { return int32(a-b) < 0 }
