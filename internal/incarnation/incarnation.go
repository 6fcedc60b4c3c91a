// Package incarnation makes the numbers that tell one life of a process, endpoint or
// connection from the next. Each start takes another number, and messages of and for the
// former one do no harm.
package incarnation

import (
	"crypto/rand"
	"encoding/binary"
)

// New64 returns a random number of 64 bits: so many that no other start takes the same.
func New64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// New returns a random number, not 0.
func New() uint32 {
	var b [4]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if n := binary.BigEndian.Uint32(b[:]); n != 0 {
			return n
		}
	}
}
