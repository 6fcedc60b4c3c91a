package crc32c

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// Every length up to two frames, at every alignment, begun with any checksum.
func TestUpdateAgreesWithTheStandardLibrary(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 3200)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for n := range 3100 {
		p := b[n%67:][:n]
		start := rng.Uint32()
		if got, want := Update(start, p), crc32.Update(start, table, p); got != want {
			t.Fatalf("seed %d: %d bytes: %08x, want %08x", seed, n, got, want)
		}
	}
}

func TestUpdateOfPartsIsThatOfTheWhole(t *testing.T) {
	b := bytes.Repeat([]byte("rawlane "), 400)
	for cut := range len(b) {
		if got, want := Update(Update(0, b[:cut]), b[cut:]), Update(0, b); got != want {
			t.Fatalf("cut at %d: %08x, want %08x", cut, got, want)
		}
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	b := make([]byte, 1500)
	if n := testing.AllocsPerRun(100, func() { Update(0, b) }); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), []byte("123456789"))
	f.Add(^uint32(0), make([]byte, 513))
	f.Fuzz(func(t *testing.T, start uint32, p []byte) {
		if got, want := Update(start, p), crc32.Update(start, table, p); got != want {
			t.Errorf("%d bytes: %08x, want %08x", len(p), got, want)
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{64, 256, 1398, 1480, 8980} {
		p := make([]byte, n)
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Update(0, p)
			}
		})
		b.Run(fmt.Sprintf("%d/hash-crc32", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.Update(0, table, p)
			}
		})
	}
}
