package congestion

import "time"

// RTT estimates the round-trip time of a path from samples. The zero RTT has no sample.
//
// Source: V. Jacobson, "Congestion avoidance and control", 1988; RFC 6298 §2; RFC 9002 §5.3.
type RTT struct {
	srtt   time.Duration // smoothed round-trip time; 0 before the first sample
	rttvar time.Duration // its mean deviation
	least  time.Duration // min_rtt of RFC 9002 §5.2
}

// Update takes in one sample: the time from a packet's first transmission to its acknowledgement.
// A retransmitted packet gives no sample, as its acknowledgement may be for either transmission
// (Karn's algorithm, RFC 6298 §3).
func (r *RTT) Update(sample time.Duration) {
	if r.srtt == 0 {
		r.srtt, r.rttvar, r.least = max(sample, 1), sample/2, sample
		return
	}
	r.least = min(r.least, sample)
	r.rttvar += ((r.srtt - sample).Abs() - r.rttvar) / 4
	r.srtt = max(r.srtt+(sample-r.srtt)/8, 1)
}

// HasSample reports whether the round-trip time is known.
func (r *RTT) HasSample() bool { return r.srtt != 0 }

// Smoothed returns srtt.
func (r *RTT) Smoothed() time.Duration { return r.srtt }

// Min returns the least sample.
func (r *RTT) Min() time.Duration { return r.least }

// RTO returns how long an acknowledgement may take: srtt + max(4*rttvar, granularity) +
// maxAckDelay. RFC 6298 §2.3 has the granularity of the clock, and RFC 9002 §6.2.1 adds the time
// by which the receiver may delay its acknowledgement. Bounds and backoff are the caller's.
func (r *RTT) RTO(granularity, maxAckDelay time.Duration) time.Duration {
	return r.srtt + max(4*r.rttvar, granularity) + maxAckDelay
}
