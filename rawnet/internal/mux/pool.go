package mux

import "math/bits"

// pool keeps the memory of streams' buffers for another use: slices of powers of two, so that
// steady work allocates nothing.
type pool struct {
	free  [48][][]byte // by the logarithm of the size
	spare int          // bytes in free
}

// get returns an empty slice with room for n bytes.
func (p *pool) get(n int) []byte {
	class := bits.Len(uint(max(n, minBlock) - 1))
	if last := len(p.free[class]) - 1; last >= 0 {
		b := p.free[class][last]
		p.free[class] = p.free[class][:last]
		p.spare -= cap(b)
		return b
	}
	return make([]byte, 0, 1<<class)
}

// put takes a slice of get back.
func (p *pool) put(b []byte) {
	if cap(b) == 0 || p.spare+cap(b) > spareBytes {
		return
	}
	p.spare += cap(b)
	class := bits.Len(uint(cap(b) - 1))
	p.free[class] = append(p.free[class], b[:0])
}
