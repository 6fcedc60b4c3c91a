package mpi

import (
	"math/bits"
	"sync"
)

// scratches are memory in which operations combine and pack, kept for the next one: new memory in
// each call takes as long again as a reduction of 256 KiB. They are *[]uint64, by the logarithm of
// their lengths. What nobody has used for two cycles is the garbage collector's.
var scratches [bits.UintSize + 1]sync.Pool

// withScratch calls f with memory of n elements, in which anything may stand. It is another call's
// afterwards, but if f fails: then messages may still be written to it, or read from it.
func withScratch[T Element](n int, f func(memory []T) error) error {
	const word = 8
	words := (n*sizeOf[T]() + word - 1) / word
	pool := &scratches[bits.Len(uint(words))]
	memory, _ := pool.Get().(*[]uint64)
	if memory == nil || len(*memory) < words {
		memory = new(make([]uint64, words))
	}
	err := f(elementsOf[T](bytesOf(*memory))[:n])
	if err == nil {
		pool.Put(memory)
	}
	return err
}
