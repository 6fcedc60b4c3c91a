package crc32c

import (
	"hash/crc32"
	"math/bits"

	"golang.org/x/sys/cpu"
)

var (
	// wide says that the processor has the instructions that register uses.
	wide = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ
	// narrow says that it has those that three uses.
	narrow = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ
)

func update(crc uint32, p []byte) uint32 {
	switch {
	case wide:
		return ^register(^crc, p)
	case narrow:
		return ^three(^crc, p, &shifts)
	}
	return crc32.Update(crc, table, p)
}

// register advances the register of the polynomial division by p. It needs the processor features
// that wide checks.
//
//go:noescape
func register(crc uint32, p []byte) uint32

// maxPart is the most words that each of the three parts of a pass has.
const maxPart = 256

// shifts are what a register is multiplied by that is so many words from the end: for n words
// x^(64 n - 32), reflected and shifted by one.
var shifts [2*maxPart + 1]uint64

func init() {
	if narrow && !wide {
		setShifts()
	}
}

func setShifts() {
	r := uint32(1)
	for degree := range 64*len(shifts) - 32 {
		if degree%64 == 32 {
			shifts[degree/64+1] = uint64(bits.Reverse32(r)) << 1
		}
		r = timesX(r)
	}
}

// timesX multiplies by x, modulo the polynomial.
func timesX(r uint32) uint32 {
	const polynomial = 0x1edc6f41
	return r<<1 ^ r>>31*polynomial
}

// three is register, by three words at a time. It needs the processor features that narrow checks.
//
//go:noescape
func three(crc uint32, p []byte, shifts *[2*maxPart + 1]uint64) uint32
