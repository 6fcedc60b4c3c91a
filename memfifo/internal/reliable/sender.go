package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// sender is the sending half of a lane: the frames from the first that is not acknowledged to the one being filled.
//
//	una           next            built
//	 |  on their way |  to be sent  | being filled
type sender struct {
	una, nxt, queued uint32
	packets          [Window]sentPacket // by sequence
	fill             int                // bytes in the slot being filled
	uncorked         bool               // it is not to wait for more
	inFlight         int                // frames on their way: not acknowledged, not selected, not lost
	lost             int                // frames to be sent again
	creditLimit      uint32             // the first frame that the receiver has no credit for
	congestionState
	acked         int             // frames acknowledged since congestion grew last
	recover       uint32          // congestion was cut for losses before this frame
	undo          congestionState // that before the timeout whose verdict may be wrong; zero: there is none
	rtoDeadline   monotime.Time   // when the retransmission timeout ends; valid if something is on its way
	backoff       uint            // how often it has ended in a row
	probe         bool            // ask whether there is credit, or what has come
	ackRequestEnd uint32          // frames before this one are acknowledged at once: one of them asked for it
}

// pace is what congestion control has found out.
type congestionState struct {
	cwnd     int // how many frames may be on their way
	ssthresh int // up to which congestion grows quickly
}

// slot is a frame, kept until it is acknowledged.
type sentPacket struct {
	buf     []byte // with room for the header
	len     int
	sentAt  monotime.Time
	sends   int
	state   packetState
	rtoOnly bool // missing by a timeout alone
}

type packetState uint8

const (
	packetUnsent   packetState = iota // to be sent for the first time
	packetInFlight                    // on its way
	packetSACKed                      // at the receiver, behind a gap
	packetLost                        // to be sent again
)

func (s *sender) init(start uint32) {
	s.una, s.nxt, s.queued, s.creditLimit, s.recover, s.ackRequestEnd = start, start, start, start+Window, start, start
	s.cwnd, s.ssthresh = initialWindow, Window
}

func (s *sender) packet(sequence uint32) *sentPacket { return &s.packets[sequence%Window] }

// idle reports whether everything was acknowledged.
func (s *sender) allAcked() bool { return s.una == s.queued && s.fill == 0 }

// full reports whether there is no slot to fill.
func (s *sender) full() bool { return s.queued-s.una >= Window }

// reserve returns n bytes of the frame being filled; a new one if they do not fit. It returns nil if there is none.
func (s *sender) reserve(n int, cfg *Config) []byte {
	if s.fill > 0 && s.fill+n > cfg.FrameSize {
		s.close()
	}
	if s.full() {
		return nil
	}
	f := s.packet(s.queued)
	if s.fill == 0 {
		*f = sentPacket{buf: cfg.Alloc()}
		s.fill = HeaderLen
	}
	b := f.buf[cfg.Headroom+s.fill:][:n]
	s.fill += n
	return b
}

// close ends the frame being filled.
func (s *sender) close() {
	s.packet(s.queued).len = s.fill
	s.fill, s.uncorked = 0, false
	s.queued++
}

// pick returns the next frame to send, if there is one. Frames that are full go as the window lets them; one being filled goes if
// little is on its way, or if no acknowledgement comes soon that would let it go. The one that the receiver waits for goes
// however much is on its way: all of that waits for it.
func (s *sender) nextFrame() (sequence uint32, ok bool) {
	if s.lost > 0 && s.packet(s.una).state == packetLost && before(s.una, s.creditLimit) {
		return s.una, true
	}
	if s.inFlight >= s.cwnd {
		return 0, false
	}
	if s.lost > 0 {
		for q := s.una; before(q, s.nxt) && before(q, s.creditLimit); q++ {
			if s.packet(q).state == packetLost {
				return q, true
			}
		}
	}
	if s.nxt == s.queued && s.fill > 0 && (s.inFlight < corkFrames || s.uncorked || !before(s.una, s.ackRequestEnd)) && before(s.nxt, s.creditLimit) {
		s.close()
	}
	if s.nxt != s.queued && before(s.nxt, s.creditLimit) {
		return s.nxt, true
	}
	return 0, false
}

// streams reports whether the next frame to send is one that was never sent, is full, and may go.
func (s *sender) canStream() bool {
	return s.lost == 0 && s.nxt != s.queued && s.inFlight < s.cwnd && before(s.nxt, s.creditLimit)
}

// asks reports whether a frame is to be acknowledged at once. Nobody waits for that in a stream, but at its end, and some times while
// what may be on its way is: these open the way for more.
func (s *sender) wantsAck(sequence uint32) bool {
	return sequence+1 == s.queued && s.fill == 0 || int(sequence-s.ackRequestEnd) >= min(s.cwnd/acksPerWindow, maxUnrequested)-1
}

// sent notes that a frame has gone, and whether it has asked to be acknowledged at once.
func (s *sender) onSent(sequence uint32, ask bool, now monotime.Time, rtt *rttEstimator) {
	f := s.packet(sequence)
	if ask && before(s.ackRequestEnd, sequence+1) {
		s.ackRequestEnd = sequence + 1
	}
	if f.state == packetLost {
		s.lost--
		f.rtoOnly = false
	}
	if s.inFlight == 0 {
		s.rtoDeadline = now.Add(s.rto(rtt))
	}
	f.state, f.sentAt = packetInFlight, now
	f.sends++
	s.inFlight++
	if sequence == s.nxt {
		s.nxt++
	}
}

// refused notes that a frame has not gone after all: it is the next to be sent again. It reports whether it has gone before.
func (s *sender) onRefused(sequence uint32) bool {
	f := s.packet(sequence)
	if f.state == packetInFlight {
		f.state = packetLost
		f.sends--
		s.inFlight--
		s.lost++
	}
	return f.sends > 0
}

func (s *sender) rto(rtt *rttEstimator) time.Duration {
	return min(rtt.rto()<<min(s.backoff, 8), maxRTO)
}

// knows reports whether an acknowledgement, of data, says nothing new.
func (s *sender) isStaleAck(h *Header) bool {
	return h.Ack == s.una && creditLimitOf(h) == s.creditLimit
}

// creditEnd is the first frame for which an acknowledgement gives no credit.
func creditLimitOf(h *Header) uint32 { return h.Ack + uint32(min(h.Credit, Window)) }

// acknowledged takes an acknowledgement, and hands the memory of frames that are done to free.
func (s *sender) onAck(h *Header, now monotime.Time, rtt *rttEstimator, free func([]byte)) {
	if before(s.nxt, h.Ack) || before(h.Ack, s.una) {
		return // of frames that were never sent, or an old one
	}
	limit := creditLimitOf(h)
	if before(s.creditLimit, limit) || h.Ack != s.una || limit != s.creditLimit && h.SACK&1 != 0 {
		s.creditLimit = limit // credit may be taken back while the receiver is held up
	}
	progress, done := false, 0
	for ; s.una != h.Ack; s.una++ {
		f := s.packet(s.una)
		s.onFrameAcked(f, now, rtt)
		free(f.buf)
		f.buf, f.state = nil, packetUnsent
		done++
	}
	highest := s.una
	for i, bits := uint32(0), h.SACK; bits != 0 && before(s.una+i, s.nxt); i, bits = i+1, bits>>1 {
		if bits&1 == 0 {
			continue
		}
		highest = s.una + i
		if f := s.packet(highest); f.state != packetSACKed {
			s.onFrameAcked(f, now, rtt)
			f.state = packetSACKed
			progress = true
		}
	}
	progress = progress || done > 0
	if progress {
		s.backoff = 0
		s.probe = false
		s.rtoDeadline = now.Add(s.rto(rtt))
		s.grow(done)
	}
	if s.lost == 0 {
		s.undo = congestionState{} // all has been sent again
	}
	s.detectLoss(highest, now, rtt)
}

// settle takes a frame out of those on their way.
func (s *sender) onFrameAcked(f *sentPacket, now monotime.Time, rtt *rttEstimator) {
	switch f.state {
	case packetInFlight:
		s.inFlight--
		if f.sends == 1 {
			rtt.update(now.Sub(f.sentAt))
		}
	case packetLost:
		s.lost--
		if f.rtoOnly {
			f.rtoOnly = false
			s.undoSpuriousRTO()
		}
	}
}

// acquit takes back what the last timeout said: a frame that it took for lost was acknowledged, and not sent again since. So the peer has stood
// still, or the way was slow; nothing was lost for all we know, and the pace was not at fault. Other frames are on their way again, and the
// next timeout tells of them; but not those that the receiver has withdrawn its credit for, which it has turned away.
//
// Source: RFC 5682 (finding it out), RFC 4015 (what to do then).
func (s *sender) undoSpuriousRTO() {
	for q := s.una; before(q, s.nxt); q++ {
		if f := s.packet(q); f.state == packetLost && f.rtoOnly && before(q, s.creditLimit) {
			f.state, f.rtoOnly = packetInFlight, false
			s.lost--
			s.inFlight++
		}
	}
	if s.undo != (congestionState{}) {
		s.cwnd, s.ssthresh = max(s.cwnd, s.undo.cwnd), max(s.ssthresh, s.undo.ssthresh)
		s.undo, s.recover = congestionState{}, s.una
	}
}

// grow lets more frames be on their way: doubled for each round trip up to the threshold, one more beyond.
func (s *sender) grow(done int) {
	if s.cwnd < s.ssthresh {
		s.cwnd = min(s.cwnd+done, Window)
		return
	}
	s.acked += done
	if s.acked >= s.cwnd {
		s.acked = 0
		s.cwnd = min(s.cwnd+1, Window)
	}
}

// missed finds frames that others have overtaken: they are lost, unless they were sent again a moment ago.
func (s *sender) detectLoss(highest uint32, now monotime.Time, rtt *rttEstimator) {
	found := false
	for q := s.una; before(q+dupThresh, highest+1) && q != highest; q++ {
		f := s.packet(q)
		if f.state != packetInFlight || f.sends > 1 && now.Sub(f.sentAt) < rtt.retransmitTime(f.sends) {
			continue
		}
		f.state = packetLost
		s.inFlight--
		s.lost++
		found = true
	}
	if found {
		s.undo = congestionState{} // some are lost indeed
	}
	if found && !before(s.una, s.recover) { // once for each window
		s.recover = s.nxt
		s.ssthresh = max(s.cwnd/2, minWindow)
		s.cwnd = s.ssthresh
	}
}

// expire ends the retransmission timeout: all that is on its way counts as lost, and is sent again, a little at a time. If
// nothing is, but the receiver has not taken it all, it is asked. What the receiver has withdrawn its credit for waits for
// credit again, and was not lost on the way.
func (s *sender) onRTO(now monotime.Time, rtt *rttEstimator) {
	s.backoff++
	s.rtoDeadline = now.Add(s.rto(rtt))
	s.probe = true
	found := false
	for q := s.una; before(q, s.nxt); q++ {
		if f := s.packet(q); f.state == packetInFlight {
			f.state, f.rtoOnly = packetLost, true
			s.inFlight--
			s.lost++
			found = found || before(q, s.creditLimit)
		}
	}
	if found {
		if s.undo == (congestionState{}) {
			s.undo = s.congestionState
		}
		if !before(s.una, s.recover) { // once for each window, as in missed
			s.ssthresh = max(s.cwnd/2, minWindow)
		}
		s.cwnd = minWindow
		s.recover = s.nxt
	}
}

// awaits reports whether an answer is due: something is not acknowledged, or waits for credit.
func (s *sender) awaitsAck() bool {
	return s.una != s.nxt || (s.nxt != s.queued || s.fill > 0) && !before(s.nxt, s.creditLimit)
}

// before reports whether a comes before b, in sequence numbers that wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }
