package crc32c

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"testing"
)

var fold2048, fold1536, fold1024, fold512 [16]byte // of the assembly

var foldLanes [64]byte

// power returns x^n modulo the polynomial, reflected and shifted by one.
func power(n int) uint64 {
	r := uint32(1)
	for range n {
		r = timesX(r)
	}
	return uint64(bits.Reverse32(r)) << 1
}

func TestConstants(t *testing.T) {
	for _, k := range []struct {
		bits int
		pair []byte
	}{
		{2048, fold2048[:]}, {1536, fold1536[:]}, {1024, fold1024[:]}, {512, fold512[:]},
		{384, foldLanes[0:]}, {256, foldLanes[16:]}, {128, foldLanes[32:]},
	} {
		lower, upper := binary.LittleEndian.Uint64(k.pair), binary.LittleEndian.Uint64(k.pair[8:])
		if lower != power(k.bits+32) || upper != power(k.bits-32) {
			t.Errorf("%d bits: %#x, %#x, want %#x, %#x", k.bits, lower, upper, power(k.bits+32), power(k.bits-32))
		}
	}
}

// By three words at a time the checksum is the same, for every length of a pass, and for passes that
// follow each other; also where the processor could do better.
func TestThree(t *testing.T) {
	if !narrow {
		t.Skip("the processor lacks SSE 4.2 or PCLMULQDQ")
	}
	setShifts()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 3*24*maxPart)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for n := 0; n < len(b); n += 1 + n/1000 {
		p := b[n%67:][:min(n, len(b)-67)]
		start := rng.Uint32()
		if got, want := ^three(^start, p, &shifts), crc32.Update(start, table, p); got != want {
			t.Fatalf("seed %d: %d bytes: %08x, want %08x", seed, n, got, want)
		}
	}
}
