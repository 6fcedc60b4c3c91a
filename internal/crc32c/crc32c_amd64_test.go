package crc32c

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

var fold2048, fold1536, fold1024, fold512 [16]byte // of the assembly

var foldLanes [64]byte

// power returns x^n modulo the polynomial, reflected and shifted by one.
func power(n int) uint64 {
	const polynomial = 0x1edc6f41
	r := uint32(1)
	for range n {
		carry := r >> 31
		r = r<<1 ^ carry*polynomial
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
