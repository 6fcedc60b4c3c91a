package room

import "runtime"

// GrowStack has the stack grow by more than package ethtool needs of it, which hands the kernel
// memory of its stack by a number: if the stack grew after that, it would be elsewhere, and the
// kernel would write into what may be another goroutine's by then. It comes before each call of
// that package: between two of them the stack may shrink again.
//
//go:noinline
func GrowStack() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
