package reliable

import (
	"fmt"
	"unsafe"
)

// pool is a Memory that knows which buffers are out. It overwrites freed ones.
type pool struct {
	*Memory
	size  int
	out   map[*byte]int // their lengths, by their first byte
	most  int           // out at once
	wrong string
}

func newPool(size int) *pool { return &pool{Memory: NewMemory(size), size: size, out: map[*byte]int{}} }

func (p *pool) alloc(n int) Buffer {
	if n > p.size+cacheLine {
		p.wrong = fmt.Sprintf("a buffer of %d bytes is wanted, at most %d are", n, p.size)
	}
	b := p.Alloc(n)
	at := unsafe.SliceData(b.Bytes)
	if _, out := p.out[at]; out && n > 0 || len(b.Bytes) != n {
		p.wrong = fmt.Sprintf("a buffer of %d bytes, want %d, that is out: %v", len(b.Bytes), n, out)
	}
	p.out[at] = n
	p.most = max(p.most, len(p.out))
	return b
}

func (p *pool) free(b Buffer) {
	at := unsafe.SliceData(b.Bytes)
	if n, out := p.out[at]; !out || n != len(b.Bytes) {
		p.wrong = fmt.Sprintf("a buffer of %d bytes is given back, want %d, that is out: %v", len(b.Bytes), n, out)
		return
	}
	delete(p.out, at)
	for i := range b.Bytes {
		b.Bytes[i] = 0xdb
	}
	p.Free(b)
}
