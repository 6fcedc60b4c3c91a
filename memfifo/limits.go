package memfifo

import (
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// The bounds of a domain, each with its reason.
const (
	// DefaultPort of remote memory operations.
	DefaultPort mcd.PortID = 253
	// DefaultPeerTimeout is how long a peer that owes an answer may be silent: 2 s.
	DefaultPeerTimeout = reliable.DefaultPeerTimeout
	// minPeerTimeout is what a busy machine takes to wake a process.
	minPeerTimeout = time.Millisecond
	// MaxRecord is the longest record of a FIFO, and so what a receiver keeps of one that is not
	// complete.
	MaxRecord = 128 << 10
	// MaxParcels is how many parcels to one peer may be posted and not acknowledged: a peer that
	// takes nothing holds no more of its sender's memory.
	MaxParcels = 1 << 16
	// maxReplies is how many replies a node keeps for one peer until there is room to send them;
	// then that peer waits.
	maxReplies = 64
	// maxRefused is of how many windows and FIFOs of a peer a Flush tells what was refused: a peer
	// may say so of any number. What is refused of others counts with the first one.
	maxRefused = 64
	// askParts: a peer that owes a reply and says nothing is probed after this part of the peer
	// timeout.
	askParts = 4
	// busyRetry is how long a link that has no room is left alone.
	busyRetry = 50 * time.Microsecond
	// alarmSlack is how soon the timer fires at the earliest: a deadline of a few round trips, if
	// met to the microsecond, would cost a timer for each operation that waits.
	alarmSlack = 200 * time.Microsecond
	// sendBatch is after how many sent frames a caller that sends looks for what has come: a batch.
	sendBatch = reliable.MaxBatch
	// drainPolls is how often drainReceive polls at most: for as much as comes while a batch is
	// sent, and as much again.
	drainPolls = 4
	// longestTurn is how many puts and pushes that wait go on at a time, at the most: a quarter of
	// the window, if each is of a frame. It is what 10 Gbit/s carry in 77 µs.
	longestTurn = reliable.Window / 4
	// wakeEvery is how long it takes for one more of them to go on, as long as those that are woken
	// come back: some twenty times as long as it takes to wake one.
	wakeEvery = 32 * time.Microsecond
	// wholePart is the size up to which data is not cut because little is left in a frame. Aligned
	// words stay whole.
	wholePart = 256
)
