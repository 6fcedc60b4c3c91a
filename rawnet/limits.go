package rawnet

import (
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// The bounds of a Net, each with its reason.
const (
	// DefaultPort of connections.
	DefaultPort mcd.PortID = 251
	// DefaultPacketPort of packets.
	DefaultPacketPort mcd.PortID = 250
	// packetBacklog is how many packets wait for a ReadFrom: about what a UDP socket of Linux
	// holds.
	packetBacklog = 256
	// sparePackets is how many packets' memory is kept for later: as many as one connection holds.
	sparePackets = packetBacklog
	// DefaultWindow is a connection's receive window, in bytes.
	DefaultWindow = mux.DefaultWindow
	// MinWindow is the least.
	MinWindow = mux.MinWindow
	// DefaultBacklog is how many connections wait for Accept, as Linux has it (net.core.somaxconn).
	DefaultBacklog = mux.DefaultBacklog
	// DefaultMaxConns is how many connections a Net has at most.
	DefaultMaxConns = mux.DefaultMaxStreams
	// spareBuffers is how many buffers of Writes are kept for later: for as many as send at a time.
	spareBuffers = 32
	// writeBatch is how many full frames a Write sends before other writers have their turn.
	writeBatch = 16
	// redialFirst and redialLast are how long DialWait waits before it dials again: a server that
	// is being started is there within milliseconds, and one that is not costs ten dials a second.
	redialFirst = 2 * time.Millisecond
	redialLast  = 100 * time.Millisecond
	// answerParts is for how many PeerTimeouts a dial waits: a node that lives answers in none.
	answerParts = 2
	// leastAnswer is how long it waits at least: memfifo asks a node eight times before it is down,
	// which takes 0.65 s, however short the timeout is.
	leastAnswer = time.Second
	// maxCopy is how much a Read moves out of a connection's buffer at once: the goroutine that
	// polls waits meanwhile.
	maxCopy = 64 << 10
)
