package mpi

import (
	"math/bits"
	"sync"
)

// scratch is memory in which operations combine and pack, kept for the next one: new memory in each
// call takes as long again as a reduction of 256 KiB. What nobody has used for two of its cycles is
// the garbage collector's.
type scratch struct{ words []uint64 }

// scratches are by the logarithm of their lengths.
var scratches [bits.UintSize + 1]sync.Pool

// takeScratch returns memory of at least so many bytes, in which anything may stand.
func takeScratch(size int) *scratch {
	const word = 8
	words := (size + word - 1) / word
	s, _ := scratches[bits.Len(uint(words))].Get().(*scratch)
	if s == nil || len(s.words) < words {
		s = &scratch{make([]uint64, words)}
	}
	return s
}

func (s *scratch) memory() []byte { return bytesOf(s.words) }

// giveBack leaves the memory to others.
func (s *scratch) giveBack() { scratches[bits.Len(uint(len(s.words)))].Put(s) }

// withScratch calls f with memory of n elements, in which anything may stand. It is another call's
// afterwards, but if f fails: then messages may still be written to it, or read from it.
func withScratch[T Element](n int, f func(memory []T) error) error {
	s := takeScratch(n * sizeOf[T]())
	err := f(elementsOf[T](s.memory())[:n])
	if err == nil {
		s.giveBack()
	}
	return err
}
