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

// timeout is how long an acknowledgement is awaited before the frame is sent again.
func (r *roundTrip) timeout() time.Duration {
	if r.mean == 0 {
		return firstTimeout
	}
	return min(max(leastTimeout, r.mean+4*r.deviation+ackDelay), mostTimeout)
}
