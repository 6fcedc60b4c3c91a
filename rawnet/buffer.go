package rawnet

import "github.com/rawlane/rawlane/rawnet/internal/mux"

// recordBuffer is memory for the records of one turn of a Write.
type recordBuffer struct {
	memory  []byte
	records [][]byte
}

func (n *Net) newBuffer() *recordBuffer {
	return &recordBuffer{make([]byte, 0, writeBatch*(mux.HeaderLen+n.chunk)), make([][]byte, 0, writeBatch)}
}

func (n *Net) getBuffer() *recordBuffer {
	b, _ := n.buffers.Get().(*recordBuffer) // newBuffer makes no other
	return b
}

func (n *Net) putBuffer(b *recordBuffer) { n.buffers.Put(b) }
