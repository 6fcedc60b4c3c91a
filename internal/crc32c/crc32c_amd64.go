package crc32c

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

var wide = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ

func update(crc uint32, p []byte) uint32 {
	if !wide {
		return crc32.Update(crc, table, p)
	}
	return ^register(^crc, p)
}

// register moves the register of the division on by p. It needs what wide says.
//
//go:noescape
func register(crc uint32, p []byte) uint32
