package testbed

import (
	"os"
	"os/exec"
	"testing"
)

// What follows is of a test's own process, and needs no bed.

// Alone has a test run once more, in a process of its own, and reports whether this is that one:
// else the test has to return. The needs are looked at before, and not in that process.
func Alone(t *testing.T, needs ...func(*testing.T)) bool {
	t.Helper()
	const alone = "RAWLANE_TEST_ALONE"
	if os.Getenv(alone) != "" {
		return true
	}
	for _, need := range needs {
		need(t)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), alone+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

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
