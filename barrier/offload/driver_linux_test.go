package offload

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// A driver says its name however much of its stack the caller has used: where that grows within
// package ethtool, the kernel's answer is lost, and lands in what may be another goroutine's.
func TestDriverOf_Answers(t *testing.T) {
	testbed.Need(t)
	bed, err := testbed.New(testbed.Config{Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bed.Close() }()
	ns, err := testbed.In(bed.Node(0), func() (int, error) {
		return unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(ns) }()
	for depth := range 200 {
		done := make(chan string)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
				t.Error(err)
			}
			testbed.Deeply(depth, func() { done <- driverOf(testbed.Interface(0)) })
		}()
		if got := <-done; got != "veth" {
			t.Errorf("%d frames: %q, want veth", depth, got)
		}
	}
}
