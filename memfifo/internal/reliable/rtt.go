package reliable

import "time"

// roundTrip is the time that acknowledgements take: a moving mean and deviation.
//
// Source: V. Jacobson, Congestion Avoidance and Control; RFC 6298.
type rttEstimator struct{ srtt, rttvar time.Duration }

func (r *rttEstimator) update(took time.Duration) {
	if r.srtt == 0 {
		r.srtt, r.rttvar = max(took, 1), took/2
		return
	}
	off := took - r.srtt
	r.srtt = max(r.srtt+off/8, 1)
	if off < 0 {
		off = -off
	}
	r.rttvar += (off - r.rttvar) / 4
}

// again is how long a frame that was sent so often is not sent again, whatever acknowledgements say: they may not know of
// the last time yet. It doubles, as the mean may be wrong, and nothing corrects it while all frames are sent more than once.
func (r *rttEstimator) retransmitTime(sends int) time.Duration {
	wait := r.srtt + r.rttvar
	if r.srtt == 0 {
		wait = initialRTO
	}
	return min(wait<<min(max(sends-2, 0), 8), maxRTO)
}

// timeout is how long an acknowledgement is awaited before the frame is sent again.
func (r *rttEstimator) rto() time.Duration {
	if r.srtt == 0 {
		return initialRTO
	}
	return min(max(minRTO, r.srtt+4*r.rttvar+ackDelay), maxRTO)
}
