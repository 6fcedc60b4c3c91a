// Package congestion has what senders of any protocol need to know of a path: the congestion
// window of NewReno, or of CUBIC, and an estimate of the round-trip time, in the terms of RFC 9002,
// RFC 5681, RFC 9438 and RFC 6298.
//
//	              loss: cwnd = ssthresh = cwnd/2
//	Open  ------------------------------------>  FastRecovery    cwnd does not grow
//	 ^ ^ <------------------------------------      |
//	 |     recovery point is acknowledged           | RTO
//	 |                                              v
//	 +-----------------------------------------  RTORecovery     cwnd = loss window, slow start
//	       recovery point is acknowledged
//
// The sender keeps the scoreboard: it decides which packets are lost, and remembers the recovery
// point, the first packet that it had not sent when it entered recovery ("recover" in RFC 6582
// §3.2). Windows count whole packets. The package does no I/O and reads no clock.
package congestion

// DupThresh is how many packets must overtake one until it counts as lost.
// Source: RFC 5681 §3.2, RFC 6675 §2 (DupThresh), RFC 9002 §6.1.1 (kPacketThreshold).
const DupThresh = 3

// Config of a controller, in packets.
type Config struct {
	InitialWindow int // IW, RFC 5681 §3.1
	LossWindow    int // LW, the congestion window after a retransmission timeout; RFC 5681 §3.1
	MinWindow     int // the least ssthresh: RFC 5681 equation 4, RFC 9002 §7.2 (kMinimumWindow)
	MaxWindow     int // what the buffers of both ends allow
	// SlowStartLimit is by how much one acknowledgement opens the window in slow start at most
	// (L, RFC 3465 §2.3). 0: by all that it acknowledges.
	SlowStartLimit int
	// HoldSSThresh keeps ssthresh at an RTO while a recovery is under way, for which it was set
	// already: RFC 5681 §3.1 demands it for a packet that times out again.
	HoldSSThresh bool
	// GrowInRecovery lets cwnd grow in fast recovery, too, against RFC 9002 §7.3.2: where each
	// window loses a packet, recovery does not end, and without growth the window stays at its
	// minimum.
	GrowInRecovery bool
	// InitialSSThresh is the first ssthresh. 0: MaxWindow, "arbitrarily high" (RFC 5681 §3.1).
	InitialSSThresh int
}

// Phase of a controller.
type Phase uint8

// The phases.
const (
	Open         Phase = iota // nothing is known to be lost
	FastRecovery              // packets were overtaken; RFC 6582 §3.2
	RTORecovery               // nothing came back for a retransmission timeout; RFC 5681 §3.1
)

// window is what congestion control has learned of the path, in packets.
type window struct {
	cwnd     int // congestion window, RFC 5681 §2
	ssthresh int // slow start threshold, RFC 5681 §3.1
}

// NewReno is a congestion controller.
//
// Source: RFC 5681, RFC 6582; RFC 9002 §7.
type NewReno struct {
	config *Config
	window
	phase Phase
	acked int    // acknowledged in congestion avoidance since cwnd grew last; RFC 3465 §2.1
	prior window // before the RTO whose losses are not confirmed yet; zero: there is none
}

// NewNewReno returns a controller at its initial window. It keeps c.
func NewNewReno(c *Config) NewReno {
	w := window{cwnd: min(c.InitialWindow, c.MaxWindow), ssthresh: c.InitialSSThresh}
	if w.ssthresh == 0 {
		w.ssthresh = c.MaxWindow
	}
	return NewReno{config: c, window: w}
}

// Window returns cwnd: how many packets may be in flight.
func (n *NewReno) Window() int { return n.cwnd }

// SlowStartThreshold returns ssthresh.
func (n *NewReno) SlowStartThreshold() int { return n.ssthresh }

// Phase returns the phase.
func (n *NewReno) Phase() Phase { return n.phase }

// OnAck opens the window for packets that were acknowledged in order: one for each in slow start,
// one for each window in congestion avoidance, none in fast recovery (RFC 9002 §7.3.2). The
// caller leaves it out where the window was not what limited the sender (RFC 7661 §4.1, RFC 9002
// §7.8).
func (n *NewReno) OnAck(packets int) {
	switch {
	case packets == 0: // what is left in acked has had its turn
	case n.phase == FastRecovery && !n.config.GrowInRecovery:
	case n.cwnd < n.ssthresh:
		if l := n.config.SlowStartLimit; l > 0 {
			packets = min(packets, l)
		}
		n.cwnd = min(n.cwnd+packets, n.config.MaxWindow)
	default:
		if n.acked += packets; n.acked >= n.cwnd {
			n.acked -= n.cwnd
			n.cwnd = min(n.cwnd+1, n.config.MaxWindow)
		}
	}
}

// OnLoss halves the window for lost packets, once for each recovery, and reports whether it did:
// then recovery begins, and the caller notes its recovery point. Losses are real: an earlier RTO
// was not spurious. Flight is how much was in flight: of a window of which less than half was, half
// of that is left (RFC 7661 §4.4.1), as the path has not borne more.
func (n *NewReno) OnLoss(flight int) (entered bool) {
	n.ConfirmRTO()
	if n.phase != Open {
		return false
	}
	n.phase, n.acked = FastRecovery, 0
	if 2*flight >= n.cwnd {
		flight = n.cwnd
	}
	n.ssthresh = max(flight/2, n.config.MinWindow)
	n.cwnd = n.ssthresh
	return true
}

// Decay halves a window that was not used for long, down to the initial one, and reports whether it
// was more. If the path has not changed, slow start reaches three quarters of it again.
// Source: RFC 7661 §4.4.3.
func (n *NewReno) Decay() bool {
	if n.cwnd <= n.config.InitialWindow {
		return false
	}
	n.ssthresh = max(n.ssthresh, n.cwnd*3/4)
	n.cwnd = max(n.cwnd/2, n.config.InitialWindow)
	return true
}

// OnRTO closes the window to the loss window, as the retransmission timeout has ended, and sets
// ssthresh to half of flight, what was or might have been in flight. A new recovery begins, and
// the caller notes its recovery point. Source: RFC 5681 §3.1, equation 4.
func (n *NewReno) OnRTO(flight int) {
	if n.prior == (window{}) {
		n.prior = n.window
	}
	if n.phase == Open || !n.config.HoldSSThresh {
		n.ssthresh = max(flight/2, n.config.MinWindow)
	}
	n.phase, n.acked = RTORecovery, 0
	n.cwnd = n.config.LossWindow
}

// OnRecovered ends the recovery: all before the recovery point was acknowledged.
func (n *NewReno) OnRecovered() { n.phase = Open }

// UndoRTO restores the window from before the last RTO, if its losses were not confirmed: an
// acknowledgement has shown that the RTO was spurious.
// Source: RFC 5682 (detection), RFC 4015 §3.2 (response).
func (n *NewReno) UndoRTO() {
	if n.prior == (window{}) {
		return
	}
	n.cwnd, n.ssthresh = max(n.cwnd, n.prior.cwnd), max(n.ssthresh, n.prior.ssthresh)
	n.prior, n.phase = window{}, Open
}

// ConfirmRTO notes that the last RTO can no longer prove spurious.
func (n *NewReno) ConfirmRTO() { n.prior = window{} }
