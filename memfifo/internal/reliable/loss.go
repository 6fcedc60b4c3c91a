package reliable

import (
	"math/bits"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// baseRTO is the retransmission timeout without backoff; RFC 6298 §2.
func baseRTO(rtt *congestion.RTT) time.Duration {
	if !rtt.HasSample() {
		return initialRTO
	}
	return min(max(minRTO, rtt.RTO(0, ackDelay)), maxRTO)
}

// retransmitInterval is how long a frame that was sent so often counts as in flight whatever is
// SACKed behind it: the acknowledgements may be older than its last transmission. It doubles, as
// the estimate may be wrong and gets no sample while all frames are retransmitted. RACK has the
// like in RFC 8985 §6.2.
func retransmitInterval(rtt *congestion.RTT, sends int) time.Duration {
	interval := rtt.Smoothed() + rtt.Variation()
	if !rtt.HasSample() {
		interval = initialRTO
	}
	return min(interval<<min(max(sends-2, 0), maxBackoff), maxRTO)
}

// isOldAck reports whether an acknowledgement, of data, says nothing new.
func (s *sender) isOldAck(h *Header) bool { return h.Ack == s.una && creditLimit(h) == s.creditLimit }

// creditLimit is the first frame beyond the credit that an acknowledgement gives.
func creditLimit(h *Header) uint32 { return h.Ack + uint32(min(h.Credit, Window)) }

// onAck takes in an acknowledgement, and frees what it acknowledges.
func (s *sender) onAck(h *Header, now monotime.Time, rtt *congestion.RTT, free func([]byte)) {
	if before(s.nxt, h.Ack) || before(h.Ack, s.una) {
		return // of frames that were never sent, or an old one
	}
	limit := creditLimit(h)
	if before(s.creditLimit, limit) || h.Ack != s.una || limit != s.creditLimit && h.SACK[0]&1 != 0 {
		s.creditLimit = limit // a held receiver takes credit back
	}
	flight, acked := s.inFlight+s.lost, 0
	for ; s.una != h.Ack; s.una++ {
		p := s.packet(s.una)
		s.onFrameAcked(p, now, rtt)
		free(p.buf)
		p.buf, p.state = nil, packetUnsent
		acked++
	}
	highest, sacked := s.onSACK(&h.SACK, now, rtt)
	if acked+sacked > 0 {
		s.backoff, s.probe, s.probes, s.activeAt = 0, false, 0, now
		s.stall.reset()
		s.rtoDeadline = now.Add(s.rto(rtt))
	}
	if s.una == s.nxt {
		s.reorderAt = monotime.Time{} // what was overtaken has come
	}
	if s.reno.Phase() != congestion.Open && !before(s.una, s.recoveryPoint) {
		s.reno.OnRecovered()
	}
	if s.lost == 0 {
		s.reno.ConfirmRTO() // all was retransmitted: no acknowledgement can show that it was in vain
	}
	s.detectLoss(highest, now, rtt, flight)
	s.onProbeAnswer(h, now, rtt, flight)
	if acked > 0 && s.validate(now, flight) {
		s.reno.OnAck(acked)
	}
}

// validate reports whether the congestion window is in use: at least half of it is in flight. A
// window that is not does not grow, and in the end decays. Source: RFC 7661 §4.
func (s *sender) validate(now monotime.Time, flight int) bool {
	if 2*flight >= s.reno.Window() || s.validatedAt.IsZero() {
		s.validatedAt = now
		return true
	}
	for ; now.Sub(s.validatedAt) >= nonValidated && s.reno.Decay(); s.validatedAt = s.validatedAt.Add(nonValidated) {
	}
	return false
}

// onSACK takes in which frames from una on have arrived. It returns the highest of them, or una,
// and how many are new.
func (s *sender) onSACK(sack *SACK, now monotime.Time, rtt *congestion.RTT) (highest uint32, sacked int) {
	highest = s.una
	for i, word := range sack {
		for ; word != 0; word &= word - 1 {
			q := s.una + uint32(i*wordBits+bits.TrailingZeros64(word))
			if !before(q, s.nxt) {
				return highest, sacked // of frames that were never sent
			}
			highest = q
			if p := s.packet(q); p.state != packetSACKed {
				s.onFrameAcked(p, now, rtt)
				p.state = packetSACKed
				sacked++
			}
		}
	}
	return highest, sacked
}

// onFrameAcked takes a frame out of those in flight or lost.
func (s *sender) onFrameAcked(p *sentPacket, now monotime.Time, rtt *congestion.RTT) {
	switch p.state {
	case packetInFlight:
		s.inFlight--
		if p.sends == 1 {
			rtt.Update(now.Sub(p.sentAt))
		}
	case packetLost:
		s.lost--
		if p.rtoOnly {
			p.rtoOnly = false
			s.undoSpuriousRTO()
		}
	}
}

// undoSpuriousRTO takes back the last RTO: a frame that it counted as lost was acknowledged
// without retransmission. So the peer was suspended, or the path slow. The other frames are in
// flight again, and the next RTO watches them.
//
// Source: RFC 5682 (detection), RFC 4015 (response).
func (s *sender) undoSpuriousRTO() {
	for q := s.una; before(q, s.nxt); q++ {
		if p := s.packet(q); p.state == packetLost && p.rtoOnly {
			p.state, p.rtoOnly = packetInFlight, false
			s.lost--
			s.inFlight++
		}
	}
	s.reno.UndoRTO()
	s.probedAt = monotime.Time{} // its answer may come before these frames are read
}

// detectLoss finds frames that DupThresh others have overtaken. Retransmitted ones have to be
// older than their retransmitInterval, too. Frames that fewer have overtaken get some time more, at
// the tail. Source: RFC 6675 §4 (IsLost), RFC 9002 §6.1.1.
func (s *sender) detectLoss(highest uint32, now monotime.Time, rtt *congestion.RTT, flight int) {
	found := false
	for q := s.una; before(q, highest); q++ {
		if before(highest, q+congestion.DupThresh) {
			s.awaitReordered(q, now, rtt)
		} else if p := s.packet(q); p.state == packetInFlight && p.isOld(now, rtt) {
			s.setLost(p)
			found = true
		}
	}
	if found {
		s.onLoss(flight)
	}
}

// isOld reports whether an acknowledgement of a frame's last transmission would be here.
func (p *sentPacket) isOld(now monotime.Time, rtt *congestion.RTT) bool {
	return p.sends == 1 || now.Sub(p.sentAt) >= retransmitInterval(rtt, p.sends)
}

// setLost takes a frame out of those in flight.
func (s *sender) setLost(p *sentPacket) {
	p.state = packetLost
	s.inFlight--
	s.lost++
}

// onLoss responds to a congestion that has lost frames; flight is what was in flight before.
func (s *sender) onLoss(flight int) {
	if s.reno.OnLoss(flight) {
		s.recoveryPoint = s.nxt
	}
}

// onRTO ends the retransmission timer: all that is in flight counts as lost, and a probe asks the
// peer for an acknowledgement. It reports whether no data has arrived for the peer timeout.
func (s *sender) onRTO(now monotime.Time, rtt *congestion.RTT, peerTimeout time.Duration) (stalled bool) {
	due := s.rtoDeadline
	s.backoff++
	s.probes, s.reorderAt = 0, monotime.Time{}
	s.rtoDeadline = now.Add(s.rto(rtt))
	s.queueProbe()
	found := false
	for q := s.una; before(q, s.nxt); q++ {
		if p := s.packet(q); p.state == packetInFlight {
			s.setLost(p)
			p.rtoOnly = true
		}
		found = found || s.packet(q).state == packetLost && before(q, s.creditLimit)
	}
	if !found {
		s.stall.reset()
		return false
	}
	s.reno.OnRTO(s.reno.Window())
	s.recoveryPoint = s.nxt
	return s.stall.expired(now, due, peerTimeout)
}
