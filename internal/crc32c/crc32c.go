// Package crc32c computes CRC-32C (Castagnoli) as hash/crc32 does, at more than twice its speed for
// frames of 1,500 bytes on processors with carry-less multiplication 512 bits wide (AVX-512 with
// VPCLMULQDQ). On others it is hash/crc32.
//
// Every byte of every message is checksummed twice. On a kernel link hash/crc32 took a third of the
// time that a sender of full frames spends outside the kernel, and 5 % of all its time. Measured on
// one core of an AMD processor (go test -bench . ./internal/crc32c): hash/crc32 takes 65 ns for
// 1,480 bytes, this package 23 ns.
//
// Source: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel,
// 2009).
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Update adds p to a checksum. The checksum of no bytes is 0.
func Update(crc uint32, p []byte) uint32 { return update(crc, p) }
