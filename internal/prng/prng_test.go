package prng

import "testing"

// The first outputs of the reference implementation (prng.di.unimi.it/splitmix64.c): a seed printed
// by a failed test must give the same run in any later release.
func TestReference(t *testing.T) {
	for seed, want := range map[Source][]uint64{
		0:       {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f},
		1234567: {6457827717110365317, 3203168211198807973, 9817491932198370423},
	} {
		for i, w := range want {
			if got := seed.Next(); got != w {
				t.Errorf("output %d: %#x, want %#x", i, got, w)
			}
		}
	}
}

func TestUpTo(t *testing.T) {
	source, seen := Source(1), [5]int{}
	for range 3000 {
		seen[source.UpTo(3)]++
	}
	for d, n := range seen {
		if in := d >= 1 && d <= 3; in != (n > 900 && n < 1100) || !in && n > 0 {
			t.Errorf("%d of 3000 times %d ns", n, d)
		}
	}
}

// What is certain draws nothing: a fault that is off does not change the chances of the others.
func TestCertain(t *testing.T) {
	source := Source(1)
	if source.Hits(0) || source.Hits(-1) || !source.Hits(1) || !source.Hits(2) || source != 1 {
		t.Error("0 is never, 1 is always, and neither draws")
	}
}
