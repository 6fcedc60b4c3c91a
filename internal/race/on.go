//go:build race

package race

import (
	"runtime"
	"unsafe"
)

// Release says that what the goroutine has done comes before what follows an Acquire of the same
// address.
func Release[T any](at *T) { runtime.RaceReleaseMerge(unsafe.Pointer(at)) }

// Acquire says that what was done before a Release of the same address comes before what follows.
func Acquire[T any](at *T) { runtime.RaceAcquire(unsafe.Pointer(at)) }
