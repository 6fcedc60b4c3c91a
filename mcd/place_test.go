package mcd

import (
	"math"
	"testing"
)

// Where a system does not say which cores a process may run on, these are all that there are, of the
// first 64.
func TestAllCores(t *testing.T) {
	for count, want := range map[int]uint64{1: 1, 2: 3, 8: 0xff, 63: 1<<63 - 1, 64: 1<<64 - 1, 65: 1<<64 - 1, 1000: 1<<64 - 1} {
		if set := allCores(count); set != want {
			t.Errorf("%d cores: %x, want %x", count, set, want)
		}
	}
}

// A process uses as many cores as it has, and no more than it runs goroutines on; the number has 16
// bits.
func TestUsable(t *testing.T) {
	for _, c := range []struct {
		cores, procs int
		want         uint16
	}{
		{1, 1, 1}, {2, 8, 2}, {8, 2, 2},
		{1 << 20, 1 << 20, math.MaxUint16}, {math.MaxUint16 - 1, 1 << 20, math.MaxUint16 - 1},
	} {
		if got := usable(c.cores, c.procs); got != c.want {
			t.Errorf("%d cores, %d processors of Go's: %d, want %d", c.cores, c.procs, got, c.want)
		}
	}
}

// Each boot is a host of its own, and the same one each time; where it is not known, no two processes
// are known to share a host. None is 0, whatever it is.
func TestHostOf(t *testing.T) {
	hosts := map[uint64]bool{}
	for _, boot := range []string{"", "", "", "a", "b", "c", "d"} {
		host := hostOf(boot)
		if host%2 == 0 {
			t.Errorf("boot %q: host %x, want an odd number", boot, host)
		}
		if hosts[host] {
			t.Errorf("boot %q: the host of another one", boot)
		}
		hosts[host] = true
		if again := hostOf(boot); (again == host) != (boot != "") {
			t.Errorf("boot %q: host %x, and then %x", boot, host, again)
		}
	}
}
