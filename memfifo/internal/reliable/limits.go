package reliable

import "time"

// The bounds of a connection, each with its reason.
const (
	// Lanes of a connection: what one holds up, the other does not. See Lane.
	Lanes = 2
	// Window is how many frames of a lane may be sent and not acknowledged: what a core sends while an answer takes 0.4 ms.
	// It is also what a sender keeps for sending again: 384 KB a lane at an MTU of 1500, and nothing once it is acknowledged.
	Window = 256
	// Stash is how many frames a receiver keeps that it cannot take yet: as many as a selective acknowledgement tells of.
	ReorderWindow = 64
	// firstCongestion is how many frames may be on their way at first: what the smallest ring of a NIC holds.
	initialWindow = 64
	// leastCongestion is how many may be, whatever is lost.
	minWindow = 4
	// reorderings is how many frames may overtake one before it counts as lost.
	dupThresh = 3
	// cork is how many frames are on their way when what is queued begins to share frames: with fewer, nothing waits. Nor if
	// none of them is to be acknowledged at once.
	corkFrames = 2
	// askParts is how often a sender asks to be acknowledged while what may be on its way is: so often that the way is never closed.
	// askEvery is after how many frames it asks at the latest: so seldom that acknowledgements, which are frames, too, cost little.
	acksPerWindow  = 4
	maxUnrequested = 32
	// ackEvery is how many frames of a stream are acknowledged at once, if nobody asks.
	ackEvery = Window / acksPerWindow
	// ackDelay is how long an acknowledgement waits for data to go with, where the sender does not want it at once.
	ackDelay = 500 * time.Microsecond
	// firstTimeout, leastTimeout and mostTimeout bound the retransmission timeout: nothing known; several times a
	// scheduler's slice; and what a user still waits for.
	initialRTO = 10 * time.Millisecond
	minRTO     = 2 * time.Millisecond
	maxRTO     = 100 * time.Millisecond
	// DefaultLimit is how long a peer may be silent that owes an answer.
	DefaultPeerTimeout = 2 * time.Second
	// leastTries is how often it is asked meanwhile, at least: a node that stood still itself has not asked. Time in which it did
	// not look does not count either.
	minRetries = 8
)
