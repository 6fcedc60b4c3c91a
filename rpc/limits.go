package rpc

import (
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// The bounds of a domain, each with its reason.
const (
	// DefaultPort of calls.
	DefaultPort mcd.PortID = 249
	// MaxMessage is the longest request, with the service's name, and the longest response, in
	// bytes: those of a record.
	MaxMessage = memfifo.MaxRecord - wire.RequestLen
	// MaxService is the longest name of a service, in bytes.
	MaxService = 255
	// DefaultConcurrency is how many handlers run at once on a node.
	DefaultConcurrency = 256
	// DefaultBacklog is how many requests wait for a goroutine.
	DefaultBacklog = 1024
	// maxRefusals is how many refusals wait for a node that takes no responses, behind
	// Config.Backlog of these: more calls than one has under way. Its further requests are dropped.
	maxRefusals = 1 << 16
	// retryFirst and retryLast are how long an idempotent call waits before it is made again: a
	// server that is being started is there within milliseconds.
	retryFirst = 2 * time.Millisecond
	retryLast  = 100 * time.Millisecond
	// idleWorkers is how many goroutines stay when there is nothing to do. One waits for the next
	// request as long as its endpoint lets it spin; the others help in a burst.
	idleWorkers = 2
	// spareMemory is how many buffers of requests are kept, and spareSize how long one may be: what
	// was longer goes back to the runtime.
	spareMemory = 64
	spareSize   = 64 << 10
)
