package mux

// The bounds of the streams of a node, each with its reason.
const (
	// DefaultWindow is a stream's receive window, in bytes: what a link of 10 Gbit/s carries in
	// 0.2 ms, in which a reader that sleeps is woken several times over.
	DefaultWindow = 256 << 10
	// MinWindow holds a few frames.
	MinWindow = 4 << 10
	// DefaultBacklog is how many streams wait for an Accept of one listener at most, as Linux has
	// it (net.core.somaxconn).
	DefaultBacklog = 4096
	// DefaultMaxStreams is how many streams a node has at most.
	DefaultMaxStreams = 1 << 16
	// MaxService is the longest name of a service, in bytes.
	MaxService = 255
	// maxAnswers is how many answers to one node, of streams that there are not, wait for room: as
	// many as it dials at a time by default, each of which waits for its refusal. Those beyond are
	// dropped.
	maxAnswers = DefaultMaxStreams
	// minBlock is the least memory of a stream's buffer, in bytes.
	minBlock = 512
	// spareBytes is how much memory the pool keeps for later.
	spareBytes = 4 << 20
)
