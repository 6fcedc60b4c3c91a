package incarnation

import "testing"

func TestNew(t *testing.T) {
	seen := map[uint32]bool{}
	for range 1000 {
		n := New()
		if n == 0 || seen[n] && len(seen) < 100 {
			t.Fatalf("%d, after %d others", n, len(seen))
		}
		seen[n] = true
	}
	if len(seen) < 995 { // two of a thousand are alike once in ten thousand runs
		t.Errorf("%d of 1000 numbers differ", len(seen))
	}
}

func TestNew64(t *testing.T) {
	seen := map[uint64]bool{}
	for range 1000 {
		seen[New64()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 numbers differ", len(seen))
	}
}
