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
// Where frames overtake one, but fewer than DupThresh, it is retransmitted early, after the time by
// which paths reorder frames (RFC 8985 §6.2). RFC 5827 does so at once, and therefore only where
// no new data can follow that would overtake it, too. The time does without that condition.
type tail struct {
	probe     bool          // to be sent: requests an acknowledgement and the credit; RFC 9002 §6.2.4
	probeID   uint32        // of the last probe
	probed    probeLog      // when probes were sent that may be answered
	probes    uint          // tail-loss probes since the last progress
	activeAt  monotime.Time // when a frame was sent, or one was acknowledged
	reorderAt monotime.Time // when a frame that was overtaken counts as lost; zero: none
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
	s.detectLoss(s.una, now, rtt, s.inFlight)
}

// probeLog is when the last probes were sent, by number. The path may have become slower than the
// interval between them: then the answer to an earlier one is the only sample of the round-trip
// time, as all data is retransmitted meanwhile.
type probeLog [8]struct {
	id uint32
	at monotime.Time // zero: it was answered, or says nothing
}

func (l *probeLog) add(id uint32, at monotime.Time) {
	e := &l[id%uint32(len(l))]
	e.id, e.at = id, at
}

// take returns when a probe was sent, once.
func (l *probeLog) take(id uint32) (at monotime.Time, ok bool) {
	e := &l[id%uint32(len(l))]
	if e.id != id || e.at.IsZero() {
		return at, false
	}
	at, e.at = e.at, monotime.Time{}
	return at, true
}

// queueProbe has a probe sent, with the next number.
func (s *sender) queueProbe() { s.probe, s.probeID = true, max(s.probeID+1, 1) }

func (s *sender) onProbeSent(now monotime.Time) {
	s.probe = false
	s.probed.add(s.probeID, now)
}

// onProbeAnswer takes an acknowledgement that may answer a probe: then what was sent before the
// probe, and is still in flight, is lost. As it names the probe, it is a sample of the round-trip
// time in any case.
func (s *sender) onProbeAnswer(h *Header, now monotime.Time, rtt *congestion.RTT, flight int) {
	if h.Kind != Ack || h.AckNow {
		return
	}
	probedAt, ok := s.probed.take(h.Sequence)
	if !ok {
		return
	}
	s.sample(now.Sub(probedAt), rtt)
	found := false
	for q := s.una; before(q, s.nxt); q++ {
		if p := s.packet(q); p.state == packetInFlight && p.sentAt.Before(probedAt) {
			s.lose(p)
			found = true
		}
	}
	if found {
		s.onLoss(flight, now)
	}
}
