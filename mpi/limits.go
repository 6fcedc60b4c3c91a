package mpi

import (
	"math"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Bounds and defaults.
const (
	// DefaultPort is that of messages; the next one is of barriers, the one behind of multicasts.
	DefaultPort mcd.PortID = 246
	// maxPort is the last one that has two behind it.
	maxPort = math.MaxUint8 - 2
	// DefaultEagerLimit is about where asking first costs as much as a copy.
	DefaultEagerLimit = 16 << 10
	// MaxEagerLimit is what a record holds.
	MaxEagerLimit = memfifo.MaxRecord - wire.HeadLen - 8
	// DefaultOfferFrom is about where an offer costs as much as the copy at the receiver that it
	// spares.
	DefaultOfferFrom = 8 << 10
	// offersAll is the OfferFrom of MBCF.
	offersAll = 1
	// MaxTag is the largest tag; the least is 0.
	MaxTag = 1<<31 - 1

	// maxEarly is how many records of each process, in the mean, are kept for each communicator
	// that this process is making: more than the few that a process sends before all have made it.
	maxEarly = 64
	// maxRepeated bounds messages that have more bytes than the memory that they come from.
	maxRepeated = 1 << 28
	// maxAnswers is how much may be queued for a process where an answer is still added that it
	// would ask for again.
	maxAnswers = 256
	// maxUntaken is how much is queued for a process at most, as answers to what it says: it is
	// given up if it goes on. Credit holds one that takes what comes well below.
	maxUntaken = 16 << 10
	// offerPause is how often sends of collective operations that wait for offers are looked at:
	// those go without that have waited from one time to the next. It is more than processes that
	// share a core wait for it.
	offerPause = 100 * time.Millisecond
	// headers is how many messages a process may send to another one that takes none.
	headers = 1024
	// eagerMemory bounds the bytes of messages that a process keeps of all others together, unless
	// there are very many of them.
	eagerMemory = 64 << 20
)
