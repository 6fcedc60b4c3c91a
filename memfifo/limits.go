package memfifo

import (
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

const (
	// DefaultPort of remote memory operations.
	DefaultPort mcd.PortID = 253
	// DefaultLimit is how long a peer may be silent that owes an answer: 2 s.
	DefaultLimit = reliable.DefaultPeerTimeout
	// MaxRecord is the longest record of a FIFO: what a sender may keep of one that has not come whole.
	MaxRecord = 128 << 10
	// maxAnswers is how many answers a node keeps for one peer until there is room to send them; then that peer waits.
	maxAnswers = 64
	// askParts: a peer that owes an answer and says nothing is asked after this part of the limit.
	askParts = 4
	// spareFrames is how many buffers a domain keeps for later: those of one window.
	spareFrames = reliable.Window
	// busyRetry is how long a link that has no room is left alone.
	busyRetry = 50 * time.Microsecond
)
