// Package crc32c computes CRC-32C (Castagnoli), as hash/crc32 does, at more than twice its speed
// for frames of 1,500 bytes on processors that multiply polynomials 512 bits wide (AVX-512 with
// VPCLMULQDQ). Elsewhere it is hash/crc32.
//
// Every byte of every message passes here twice. On a kernel link hash/crc32 was a third of what a
// sender of full frames spends outside the kernel, and 5 % of all it spends. Measured with go test
// -bench . ./internal/crc32c on a processor of AMD's, one core: 1,480 bytes take hash/crc32 65 ns,
// and this 23 ns.
//
// Source: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel,
// 2009).
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Update adds p to a checksum; that of nothing is 0.
func Update(crc uint32, p []byte) uint32 { return update(crc, p) }
