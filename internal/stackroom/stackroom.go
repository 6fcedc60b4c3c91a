// Package stackroom is for calls of package ethtool, which hands the kernel memory of its stack by
// a number: if the stack grew after that, it would be elsewhere, and the kernel would write into
// what may be another goroutine's by then.
package stackroom

import "runtime"

// Grow has the stack grow by more than package ethtool needs of it. It comes before each of its
// calls: between two of them the stack may shrink again.
//
//go:noinline
func Grow() {
	var room [64 << 10]byte
	runtime.KeepAlive(&room)
}
