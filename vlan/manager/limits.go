package manager

import (
	"time"

	"github.com/rawlane/rawlane/vlan"
)

// What one manager does for all its callers together, and for each.
const (
	// Protocol is the version of the session protocol that this package speaks.
	Protocol = 1

	// MaxBody bounds a request, in bytes: a plan of vlan.MaxNodes nodes with names takes less than 1 MiB, each exception some 40 bytes.
	MaxBody = 8 << 20
	// MaxLine bounds a message of a session, in bytes: a change of all pairs of a node takes half of it.
	MaxLine = 1 << 20
	// MaxHeader bounds the header of a request, in bytes.
	MaxHeader = 16 << 10

	// MaxConns bounds the connections of each listener, sessions among them. Further ones wait to be accepted.
	MaxConns = 512
	// MaxSessions bounds the programs of a node that are served at once.
	MaxSessions = 256
	// MaxHistory bounds the plans that can be gone back to.
	MaxHistory = 16
	// MaxJournal bounds the changes that are told of by the log.
	MaxJournal = 256
	// MaxEnded bounds the ended sessions whose counters are kept apart, for programs whose connection broke and comes back.
	MaxEnded = 1024
	// MaxEndedCounts bounds their counters, of 32 bytes each.
	MaxEndedCounts = vlan.MaxCounts

	// MaxLease bounds how long a prepared change may keep others waiting.
	MaxLease = time.Minute
	// maxAddrLine bounds a line of a list of managers, in bytes: a path is shorter.
	maxAddrLine = 4 << 10
	// MaxReason bounds the reason given for a change, in bytes.
	MaxReason = 1 << 10
)

// How long things may take.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// writeTimeout is how long a program may leave what it is told unread before it is cut off.
	writeTimeout = 5 * time.Second
	// startTimeout is how long a new session may take to say who it is.
	startTimeout = 5 * time.Second
	// reportTimeout is how long an answer about counters waits for the programs' reports.
	reportTimeout = 200 * time.Millisecond
	// applyTimeout is how long the answer to a commit waits for the programs to say that their tables are changed.
	applyTimeout = 500 * time.Millisecond
	// reportEvery is how often a program reports its counters while they change.
	reportEvery = time.Second
)
