package reliable

// Buffer is memory for a frame.
type Buffer struct {
	Bytes []byte
	block *block
}

// Memory has the buffers of connections. Those that are allocated one after the other lie side by
// side: the kernel copies a train of them in a few long pieces, in half the time that it takes for
// as many pieces as frames.
type Memory struct {
	blockLen int
	block    *block   // the next buffers are of it; nil: there was none yet
	spare    []*block // have no buffer in use
}

// block is as much memory as goes together.
type block struct {
	bytes []byte
	used  int // of bytes, from the first on
	live  int // buffers in use
}

const (
	// blockFrames is how many frames a block has: what the kernel copies as one piece, and what one
	// frame that is not acknowledged keeps from all others.
	blockFrames = 16
	// spareBlocks is how many a Memory keeps for later: those of a connection whose windows are
	// full in both lanes, as where it writes to a peer that reads from it.
	spareBlocks = Lanes * Window / blockFrames
)

// NewMemory makes a Memory for buffers of so many bytes at most, or of as many whole cache lines.
func NewMemory(longest int) *Memory { return &Memory{blockLen: blockFrames * wholeLines(longest)} }

// wholeLines returns how many bytes the cache lines of a number of bytes have.
func wholeLines(n int) int { return (n + cacheLine - 1) &^ (cacheLine - 1) }

// Alloc returns a buffer of n bytes.
func (m *Memory) Alloc(n int) Buffer {
	b := m.block
	if b == nil || len(b.bytes)-b.used < n {
		b = m.next()
	}
	at := b.used
	b.used += n
	b.live++
	return Buffer{b.bytes[at:b.used:b.used], b}
}

// next goes on to a block that has no buffer in use.
func (m *Memory) next() *block {
	if last := len(m.spare) - 1; last >= 0 {
		m.block, m.spare = m.spare[last], m.spare[:last]
	} else {
		m.block = &block{bytes: make([]byte, m.blockLen)}
	}
	return m.block
}

// Free takes a buffer back. A block of which none is in use begins anew.
func (m *Memory) Free(buf Buffer) {
	b := buf.block
	if b.live--; b.live > 0 {
		return
	}
	b.used = 0
	if b != m.block && len(m.spare) < spareBlocks {
		m.spare = append(m.spare, b)
	}
}
