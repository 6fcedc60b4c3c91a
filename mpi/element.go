package mpi

import "unsafe"

// Element is what messages are made of: numbers. All processes have one byte order.
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// bytesOf returns the memory of elements.
func bytesOf[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*sizeOf[T]())
}

// maxElement is the longest element, in bytes.
const maxElement = 16

func sizeOf[T Element]() int {
	var v T
	return int(unsafe.Sizeof(v))
}
