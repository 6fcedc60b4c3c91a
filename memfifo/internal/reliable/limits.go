package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
)

// The bounds of a connection, each with its reason.
const (
	// Lanes of a connection: what one holds up, the other does not. See Lane.
	Lanes = 2
	// Window is how many frames of a lane may be unacknowledged: what a core sends in a round
	// trip of 0.4 ms. The sender keeps them for retransmission: 384 KB a lane at an MTU of 1500.
	Window = 256
	// ReorderWindow is how many frames the receiver keeps behind a gap: all that may be in flight,
	// and as many as a SACK has bits.
	ReorderWindow = Window
	// heldCredit is how many frames from the next one on a receiver accepts that holds the lane:
	// enough for the sender to go on at once, and little where many senders are held.
	heldCredit = 64
	// corkFrames is how many frames are in flight when queued records begin to share frames, as
	// Nagle's algorithm has it (RFC 896) for one.
	corkFrames = 2
	// trainFrames is how many full frames go together at least, while others are in flight and
	// the link has trains: by then the cost of the call is shared. In a small congestion window
	// it is what may pass without a request for an acknowledgement.
	trainFrames = 16
	// acksPerWindow is how often the sender requests an acknowledgement while it sends a
	// congestion window: often enough that the window never closes for want of one. What is queued
	// is less where a program has little under way, and waits for it: then two are requested, but
	// no more than one for fewFrames, of which an acknowledgement costs little.
	acksPerWindow = 4
	fewFrames     = 32
	// ackEvery is how many frames of a stream the receiver acknowledges at once, without a request.
	ackEvery = Window / acksPerWindow
	// ackDelay is how long an acknowledgement waits for data to piggyback on (max_ack_delay, RFC
	// 9000 §13.2.1).
	ackDelay = 500 * time.Microsecond
	// initialRTO applies before the first sample. minRTO is several scheduler slices. maxRTO is
	// what a user still waits for: it bounds the backoff. What was measured has its bound in
	// rtoLimit. RFC 6298 §2.
	initialRTO = 10 * time.Millisecond
	minRTO     = 2 * time.Millisecond
	maxRTO     = 100 * time.Millisecond
	// timerGranularity is the least time beyond what was measured that a deadline of microseconds
	// allows: no timer is more precise.
	timerGranularity = 20 * time.Microsecond
	// nonValidated is for how long a congestion window that is not used keeps its size: 5 minutes
	// in RFC 7661 §4.2, 3,000 round trips of 100 ms there, and as many of 0.1 ms here.
	nonValidated = 300 * time.Millisecond
	// maxBackoff bounds the doublings of an interval.
	maxBackoff = 8
	// DefaultPeerTimeout is how long a peer that owes an answer may be silent.
	DefaultPeerTimeout = 2 * time.Second
	// minRetries is how often a peer is asked meanwhile, at least: a process that was suspended
	// itself has not asked. So a part of the timeout is the longest RTO, and the longest round trip
	// of a path that works well: 250 ms.
	minRetries = 8
	// maxByes is how often a bye is sent at most: all are lost once in 3 million times where 5 % of
	// the frames are, and a peer that has gone unheard costs 31 RTOs: 62 ms, if they are short.
	maxByes = 5
	// cacheLine is the size of a processor's cache line, in bytes.
	cacheLine = 64
	// MaxBatch is how many frames NextBatch returns at most.
	MaxBatch = 64

	// The congestion window: the smallest ring of a NIC at first, and whatever is lost, minWindow.
	initialWindow = 64
	minWindow     = 4
)

var renoConfig = congestion.Config{
	InitialWindow: initialWindow, LossWindow: minWindow, MinWindow: minWindow, MaxWindow: Window,
	HoldSSThresh:   true,
	GrowInRecovery: true, // at 10 % loss 17 % more throughput, at 1 % and less the same
}
