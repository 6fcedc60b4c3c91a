package mux

import "testing"

// The pool's slices are the next power of two, 512 bytes at least; each that is given back is handed
// out once, and 4 MiB are kept at most.
func TestPool(t *testing.T) {
	var p pool
	for _, size := range []struct{ n, want int }{{0, 512}, {1, 512}, {512, 512}, {513, 1024}, {1024, 1024}, {4097, 8192}} {
		if b := p.get(size.n); len(b) != 0 || cap(b) != size.want {
			t.Errorf("%d bytes: %d of %d, want 0 of %d", size.n, len(b), cap(b), size.want)
		}
	}
	a, b := p.get(600)[:7], p.get(600)
	p.put(a)
	p.put(b)
	p.put(nil)
	first, second, third := p.get(1000), p.get(1000), p.get(1000)
	if &first[:1][0] != &b[:1][0] || &second[:1][0] != &a[:1][0] || len(second) != 0 || p.spare != 0 {
		t.Errorf("%d bytes are left of what was given back", p.spare)
	}
	if x := &third[:1][0]; x == &a[:1][0] || x == &b[:1][0] {
		t.Error("a slice is handed out twice")
	}
	for range 40 {
		p.put(make([]byte, 0, 128<<10))
	}
	if p.spare != 4<<20 || len(p.free[17]) != 32 {
		t.Errorf("%d bytes in %d slices are kept, want 4 MiB", p.spare, len(p.free[17]))
	}
	p.put(make([]byte, 0, 512))
	if p.spare != 4<<20 {
		t.Errorf("%d bytes are kept", p.spare)
	}
	for range 32 {
		p.get(128 << 10)
	}
	if p.spare != 0 || len(p.free[17]) != 0 {
		t.Errorf("%d bytes are left", p.spare)
	}
}
