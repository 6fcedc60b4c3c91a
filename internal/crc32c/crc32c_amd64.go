package crc32c

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// wide says that the processor has the instructions that register uses.
var wide = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ

func update(crc uint32, p []byte) uint32 {
	if !wide {
		return crc32.Update(crc, table, p)
	}
	return ^register(^crc, p)
}

// register advances the register of the polynomial division by p. It needs the processor features
// that wide checks.
//
//go:noescape
func register(crc uint32, p []byte) uint32
