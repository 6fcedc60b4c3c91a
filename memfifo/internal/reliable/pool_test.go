package reliable

import "fmt"

// pool hands out buffers, and knows which are out. It overwrites freed ones.
type pool struct {
	size  int
	spare [][]byte
	out   map[*byte]bool
	most  int // out at once
	wrong string
}

func newPool(size int) *pool { return &pool{size: size, out: map[*byte]bool{}} }

func (p *pool) alloc() []byte {
	var b []byte
	if n := len(p.spare); n > 0 {
		b, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		b = make([]byte, p.size)
	}
	p.out[&b[0]] = true
	p.most = max(p.most, len(p.out))
	return b
}

func (p *pool) free(b []byte) {
	if len(b) != p.size {
		p.wrong = fmt.Sprintf("a buffer of %d bytes is given back, want %d", len(b), p.size)
		b = b[:p.size]
	}
	if !p.out[&b[0]] {
		p.wrong = "a buffer is given back that is not out"
		return
	}
	delete(p.out, &b[0])
	for i := range b {
		b[i] = 0xdb
	}
	p.spare = append(p.spare, b)
}
