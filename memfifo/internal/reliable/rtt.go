package reliable

import "time"

// roundTrip is the time that acknowledgements take: a moving mean and deviation.
//
// Source: V. Jacobson, Congestion Avoidance and Control; RFC 6298.
type roundTrip struct{ mean, deviation time.Duration }

func (r *roundTrip) note(took time.Duration) {
	if r.mean == 0 {
		r.mean, r.deviation = max(took, 1), took/2
		return
	}
	off := took - r.mean
	r.mean = max(r.mean+off/8, 1)
	if off < 0 {
		off = -off
	}
	r.deviation += (off - r.deviation) / 4
}

// again is how long a frame that was sent so often is not sent again, whatever acknowledgements say: they may not know of
// the last time yet. It doubles, as the mean may be wrong, and nothing corrects it while all frames are sent more than once.
func (r *roundTrip) again(sends int) time.Duration {
	wait := r.mean + r.deviation
	if r.mean == 0 {
		wait = firstTimeout
	}
	return min(wait<<min(max(sends-2, 0), 8), mostTimeout)
}

// timeout is how long an acknowledgement is awaited before the frame is sent again.
func (r *roundTrip) timeout() time.Duration {
	if r.mean == 0 {
		return firstTimeout
	}
	return min(max(leastTimeout, r.mean+4*r.deviation+ackDelay), mostTimeout)
}
