package mcd

import "testing"

// Where a system does not say which cores a process may run on, these are all that there are, of the
// first 64.
func TestAllCores(t *testing.T) {
	for count, want := range map[int]uint64{1: 1, 2: 3, 8: 0xff, 63: 1<<63 - 1, 64: 1<<64 - 1, 65: 1<<64 - 1, 1000: 1<<64 - 1} {
		if set := allCores(count); set != want {
			t.Errorf("%d cores: %x, want %x", count, set, want)
		}
	}
}
