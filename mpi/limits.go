package mpi

import (
	"math"

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
	// MaxTag is the largest tag; the least is 0.
	MaxTag = 1<<31 - 1

	// maxEarly is how many records of each process, in the mean, are kept for each communicator
	// that this process is making: more than the few that a process sends before all have made it.
	maxEarly = 64
	// maxRepeated bounds messages that have more bytes than the memory that they come from.
	maxRepeated = 1 << 28
	// headers is how many messages a process may send to another one that takes none.
	headers = 1024
	// eagerMemory bounds the bytes of messages that a process keeps of all others together, unless
	// there are very many of them.
	eagerMemory = 64 << 20
)
