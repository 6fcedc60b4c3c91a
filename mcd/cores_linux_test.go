package mcd

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A place has a bit for each core, of 64: those of higher numbers share them.
func TestSetOf(t *testing.T) {
	for _, c := range []struct {
		cores []int
		want  uint64
	}{
		{nil, 0}, {[]int{0}, 1}, {[]int{5}, 1 << 5}, {[]int{1, 62, 63}, 1<<1 | 1<<62 | 1<<63},
		{[]int{0, 64}, 1}, {[]int{3, 70, 127}, 1<<3 | 1<<6 | 1<<63}, {[]int{1023}, 1 << 63},
	} {
		var cpus unix.CPUSet
		for _, core := range c.cores {
			cpus.Set(core)
		}
		if set, count := setOf(&cpus); set != c.want || count != len(c.cores) {
			t.Errorf("cores %v: %x, %d of them; want %x", c.cores, set, count, c.want)
		}
	}
}
