package testbed

import (
	"os"
	"testing"
)

// What follows is of a test's own process, and needs no bed.

// Descriptors counts the files that this process has open.
func Descriptors(t testing.TB) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Deeply calls f with so many frames of its own on the stack.
//
//go:noinline
func Deeply(n int, f func()) {
	var frame [64]byte
	frame[n%len(frame)] = 1
	if n > 0 {
		Deeply(n-1, f)
	} else {
		f()
	}
	_ = frame
}

// SocketDir makes a folder for sockets, whose paths have 107 bytes at most: a test's own may be too
// long. It is removed when the test ends.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
