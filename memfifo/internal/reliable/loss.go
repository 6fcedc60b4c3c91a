package reliable

import (
	"math/bits"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// baseRTO is the retransmission timeout without backoff, limit at most; RFC 6298 §2.
func baseRTO(rtt *congestion.RTT, limit time.Duration) time.Duration {
	if !rtt.HasSample() {
		return initialRTO
	}
	return min(max(minRTO, rtt.RTO(0, ackDelay)), limit)
}

// backOff doubles a retransmission timeout n times. It ends at maxRTO, or where it began: on a path
// that is longer, whatever was sent earlier again would be sent in vain. Source: RFC 6298 §5.5.
func backOff(base time.Duration, n uint) time.Duration {
	return min(base<<min(n, maxBackoff), max(maxRTO, base))
}

// rtoLimit is the longest baseRTO: within the peer timeout a peer has to be asked minRetries times.
// A shorter one than maxRTO would do no more for that than the backoff allows.
func (c *Config) rtoLimit() time.Duration { return max(maxRTO, c.PeerTimeout/minRetries) }

// isOldAck reports whether an acknowledgement, of data, says nothing new.
func (s *sender) isOldAck(h *Header) bool { return h.Ack == s.una && creditLimit(h) == s.creditLimit }

// creditLimit is the first frame beyond the credit that an acknowledgement gives.
func creditLimit(h *Header) uint32 { return h.Ack + uint32(min(h.Credit, Window)) }

// onAck takes in an acknowledgement, and frees what it acknowledges.
func (s *sender) onAck(h *Header, now monotime.Time, rtt *congestion.RTT, free func(Buffer)) {
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
		s.onFrameAcked(s.una, p, now, rtt)
		free(p.buf)
		p.buf, p.state = Buffer{}, packetUnsent
		acked++
	}
	highest, sacked := s.onSACK(&h.SACK, now, rtt)
	if acked+sacked > 0 {
		s.probe, s.probes, s.activeAt = false, 0, now
		s.progressed = true
		s.endBackoff()
		s.stall.reset()
		s.rtoDeadline = now.Add(s.rto(rtt))
	}
	if s.reno.Phase() != congestion.Open && !before(s.una, s.recoveryPoint) {
		s.reno.OnRecovered()
	}
	if s.lost == 0 {
		s.reno.ConfirmRTO() // all was retransmitted: no acknowledgement can show that it was in vain
	}
	if highest != s.una || s.reno.Phase() != congestion.Open || !s.reorderAt.IsZero() {
		s.detectLoss(highest, now, rtt, flight) // else frames are acknowledged in the order in which they were sent
	}
	s.onProbeAnswer(h, now, rtt, flight)
	if s.validate(now, flight) {
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
				s.onFrameAcked(q, p, now, rtt)
				p.state = packetSACKed
				sacked++
			}
		}
	}
	return highest, sacked
}

// onFrameAcked takes a frame out of those in flight or lost.
func (s *sender) onFrameAcked(sequence uint32, p *sentPacket, now monotime.Time, rtt *congestion.RTT) {
	switch p.state {
	case packetInFlight:
		s.inFlight--
		trip := now.Sub(p.sentAt)
		if p.sends == 1 {
			s.sample(trip, rtt)
		}
		s.onDelivered(sequence, p, trip, rtt)
	case packetLost:
		s.lost--
		if p.rtoOnly {
			p.rtoOnly = false
			s.undoSpuriousRTO()
		}
	}
}

// sample takes in a sample of the round-trip time. Without one since the last RTO its backoff
// stays, whatever is acknowledged: where each frame was sent twice, nothing tells how long the path
// is. Source: Karn's algorithm, RFC 6298 §3 and §5.7.
func (s *sender) sample(d time.Duration, rtt *congestion.RTT) {
	rtt.Update(d)
	s.sampled = true
	s.endBackoff()
}

// endBackoff ends it if something was acknowledged since the RTO, and there is a sample.
func (s *sender) endBackoff() {
	if s.sampled && s.progressed {
		s.backoff = 0
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
	s.probed = probeLog{} // answers may come before these frames are read
}

// detectLoss finds frames that DupThresh others have overtaken; and those, retransmitted ones too,
// that one has overtaken and that have not come within a reordering window. Where it is not over
// yet, it is looked at again then. Source: RFC 6675 §4 (IsLost), RFC 9002 §6.1, RFC 8985 §6.2.
func (s *sender) detectLoss(highest uint32, now monotime.Time, rtt *congestion.RTT, flight int) {
	found := false
	late := s.newest.trip + reorderingWindow(rtt)
	s.reorderAt = monotime.Time{}
	for q := s.una; before(q, s.nxt); q++ {
		p := s.packet(q)
		if p.state != packetInFlight || !s.overtaken(q, p) {
			continue
		}
		due := p.sentAt.Add(late)
		switch {
		case p.sends == 1 && !before(highest, q+congestion.DupThresh), !now.Before(due):
			s.lose(p)
			found = true
		case s.reorderAt.IsZero() || due.Before(s.reorderAt):
			s.reorderAt = due
		}
	}
	if found {
		s.onLoss(flight, now)
	}
}

// newest is of the frames that were acknowledged the one that was sent last. Source: RFC 8985 §5.2.
type newest struct {
	sentAt   monotime.Time // RACK.xmit_ts
	sequence uint32        // RACK.end_seq
	trip     time.Duration // RACK.rtt
}

// onDelivered takes in a frame that was acknowledged. If that is sooner than any round trip, it is
// for an earlier transmission of it. (That of a frame that was sent once is a sample itself.)
func (s *sender) onDelivered(sequence uint32, p *sentPacket, trip time.Duration, rtt *congestion.RTT) {
	if trip >= rtt.Min() && !p.sentAt.Before(s.newest.sentAt) {
		s.newest = newest{p.sentAt, sequence, trip}
	}
}

// overtaken reports whether a frame that was sent later was acknowledged.
func (s *sender) overtaken(sequence uint32, p *sentPacket) bool {
	return p.sentAt.Before(s.newest.sentAt) || p.sentAt == s.newest.sentAt && before(sequence, s.newest.sequence)
}

// reorderingWindow is by how much paths reorder frames. Source: RFC 8985 §6.2 (RACK.reo_wnd).
func reorderingWindow(rtt *congestion.RTT) time.Duration {
	return max(rtt.Smoothed()/4, timerGranularity)
}

// setLost takes a frame out of those in flight.
func (s *sender) setLost(p *sentPacket) {
	p.state = packetLost
	s.inFlight--
	s.lost++
}

// lose takes a frame out that is lost for sure. If it was sent since the recovery began, it tells
// of another congestion. Source: RFC 5681 §4.3, RFC 9002 §7.3.2.
func (s *sender) lose(p *sentPacket) {
	if !p.sentAt.Before(s.recoverySince) {
		s.reno.OnRecovered()
	}
	s.setLost(p)
}

// onLoss responds to a congestion that has lost frames; flight is what was in flight before.
func (s *sender) onLoss(flight int, now monotime.Time) {
	if s.reno.OnLoss(flight) {
		s.recoveryPoint, s.recoverySince = s.nxt, now
	}
}

// onRTO ends the retransmission timer: all that is in flight counts as lost, and a probe asks the
// peer for an acknowledgement. It reports whether no data has arrived for the peer timeout.
func (s *sender) onRTO(now monotime.Time, rtt *congestion.RTT, peerTimeout time.Duration) (stalled bool) {
	due := s.rtoDeadline
	s.backoff++
	s.sampled, s.progressed = false, false
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
	s.recoveryPoint, s.recoverySince = s.nxt, now
	return s.stall.expired(now, due, peerTimeout)
}
