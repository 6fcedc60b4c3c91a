package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// tail is how a sender finds out that its last frames are lost: none behind them can overtake them,
// and the RTO is a hundred round trips.
//
//	frame ──x
//	          PTO: a little more than a round trip
//	probe 7 ─────────> answer 7: all but the frame ──> the frame again
//
// A tail-loss probe is an acknowledgement that has a number and requests another one. The answer
// names it: whatever was sent before the probe, and is not in the answer, is lost. So a peer that
// is slow to acknowledge gets frames of 20 bytes, and none of data a second time. RFC 8985 §7.3
// retransmits the last segment in place of a probe, as TCP has nothing else that is acknowledged at
// once.
//
// Where the last frames overtake one, but fewer than DupThresh, it is retransmitted early, after
// the time by which paths reorder frames: RFC 5827 with the delay of RFC 8985 §6.2 (reo_wnd).
type tail struct {
	probe     bool          // to be sent: requests an acknowledgement and the credit; RFC 9002 §6.2.4
	probeID   uint32        // of the last probe
	probedAt  monotime.Time // when it was sent; zero: it was answered
	probes    uint          // tail-loss probes since the last progress
	activeAt  monotime.Time // when a frame was sent, or one was acknowledged
	reorderAt monotime.Time // when a frame that was overtaken is retransmitted early; zero: none
}

// tailDeadline is when to call onTail, while frames are in flight and the RTO is further away.
func (s *sender) tailDeadline(rtt *congestion.RTT) (at monotime.Time, ok bool) {
	if s.inFlight == 0 || !rtt.HasSample() {
		return at, false
	}
	if at = s.reorderAt; at.IsZero() {
		at = s.activeAt.Add(probeTimeout(rtt) << min(s.probes, maxBackoff))
	}
	return at, at.Before(s.rtoDeadline)
}

// probeTimeout is PTO of RFC 9002 §6.2.1, without the time by which the peer may delay its
// acknowledgement: a probe costs little.
func probeTimeout(rtt *congestion.RTT) time.Duration { return rtt.RTO(timerGranularity, 0) }

// onTail retransmits early what was overtaken, or has a probe sent.
func (s *sender) onTail(now monotime.Time, rtt *congestion.RTT) {
	if s.reorderAt.IsZero() {
		s.queueProbe()
		s.activeAt = now
		s.probes++
		return
	}
	s.reorderAt = monotime.Time{}
	highest := s.nxt
	for highest != s.una && s.packet(highest-1).state != packetSACKed {
		highest--
	}
	flight := s.inFlight
	for q := s.una; before(q, highest); q++ {
		if p := s.packet(q); p.state == packetInFlight && p.isOld(now, rtt) {
			s.setLost(p)
		}
	}
	if s.inFlight < flight {
		s.onLoss(flight)
	}
}

// awaitReordered gives a frame that was overtaken a quarter of a round trip to come after all, if
// too few are outstanding for DupThresh.
func (s *sender) awaitReordered(sequence uint32, now monotime.Time, rtt *congestion.RTT) {
	if s.packet(sequence).state == packetInFlight && s.nxt-s.una <= congestion.DupThresh && s.reorderAt.IsZero() {
		s.reorderAt = now.Add(max(rtt.Smoothed()/4, timerGranularity))
	}
}

// queueProbe has a probe sent, with the next number.
func (s *sender) queueProbe() {
	s.probe, s.probeID, s.probedAt = true, max(s.probeID+1, 1), monotime.Time{}
}

func (s *sender) onProbeSent(now monotime.Time) { s.probe, s.probedAt = false, now }

// onProbeAnswer takes an acknowledgement that may answer the last probe: then what was sent before
// the probe, and is still in flight, is lost.
// As it names the probe, it is a sample of the round-trip time in any case.
func (s *sender) onProbeAnswer(h *Header, now monotime.Time, rtt *congestion.RTT, flight int) {
	if h.Kind != Ack || h.AckNow || h.Sequence != s.probeID || s.probedAt.IsZero() {
		return
	}
	rtt.Update(now.Sub(s.probedAt))
	found := false
	for q := s.una; before(q, s.nxt); q++ {
		if p := s.packet(q); p.state == packetInFlight && p.sentAt.Before(s.probedAt) {
			s.setLost(p)
			found = true
		}
	}
	s.probedAt = monotime.Time{}
	if found {
		s.onLoss(flight)
	}
}
