// Package crc32c computes CRC-32C (Castagnoli) as hash/crc32 does, and quicker for frames of 1,500
// bytes: in a third of the time on processors with carry-less multiplication 512 bits wide (AVX-512
// with VPCLMULQDQ), and in three quarters of it on other amd64 processors since 2010.
// Elsewhere it is hash/crc32.
//
// Every byte of every message is checksummed twice. On a kernel link hash/crc32 took a third of the
// time that a sender of full frames spends outside the kernel, and 5 % of all its time; of one that
// sends trains, a quarter. Measured on a core of AMD processors
// (go test -bench . ./internal/crc32c): hash/crc32 takes 65 ns for 1,480 bytes and this package 23,
// with AVX-512; 132 and 95 on an older one. There messages of 1,400 bytes go over ring links, by
// trains, at 1.13 times the rate.
//
// hash/crc32 has three instructions under way at once as well, but for parts of fixed lengths: of
// 1,480 bytes a third is left for one at a time.
//
// Source: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel,
// 2009), and Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction (2011).
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Update adds p to a checksum. The checksum of no bytes is 0.
func Update(crc uint32, p []byte) uint32 { return update(crc, p) }
