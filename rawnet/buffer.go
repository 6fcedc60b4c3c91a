package rawnet

import "github.com/rawlane/rawlane/rawnet/internal/mux"

// recordBuffer is memory for the records of one turn of a Write.
type recordBuffer struct {
	memory  []byte
	records [][]byte
}

// getBuffer returns memory that nobody uses. The caller holds mu.
func (n *Net) getBuffer() *recordBuffer {
	last := len(n.spare) - 1
	if last < 0 {
		return &recordBuffer{make([]byte, 0, writeBatch*(mux.HeaderLen+n.chunk)), make([][]byte, 0, writeBatch)}
	}
	b := n.spare[last]
	n.spare = n.spare[:last]
	return b
}

// putBuffer takes memory back. The caller holds mu.
func (n *Net) putBuffer(b *recordBuffer) {
	if len(n.spare) < spareBuffers {
		n.spare = append(n.spare, b)
	}
}

// borrow and giveBack are the same for callers that do not hold mu.
func (n *Net) borrow() *recordBuffer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.getBuffer()
}

func (n *Net) giveBack(b *recordBuffer) {
	n.mu.Lock()
	n.putBuffer(b)
	n.mu.Unlock()
}
