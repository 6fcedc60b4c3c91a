package prefetch

import "testing"

// Read looks at nothing: memory of any length, also none, stays as it is.
func TestRead(t *testing.T) {
	Read(nil)
	b := make([]byte, 3000)
	for i := range b {
		b[i] = byte(i)
	}
	for n := range b {
		Read(b[n:])
		Read(b[:n])
	}
	for i := range b {
		if b[i] != byte(i) {
			t.Fatalf("byte %d has changed", i)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	p := make([]byte, 1500)
	for b.Loop() {
		Read(p)
	}
}
