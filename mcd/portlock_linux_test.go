package mcd

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A name is its owner's until it closes it; who asks for it hears of the owner, and leaves no
// descriptor open.
func TestLockPort_LeavesNoDescriptors(t *testing.T) {
	name := fmt.Sprintf("rawlane test %d", os.Getpid())
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("the kernel does not tell: %v", err)
		}
		return len(all)
	}
	before := descriptors()
	const times = 50
	for range times {
		lock, err := lockPort(name, 7)
		if err != nil {
			t.Fatal(err)
		}
		var busy *PortBusyError
		if _, err := lockPort(name, 7); !errors.As(err, &busy) || busy.Port != 7 || busy.PID != os.Getpid() {
			t.Errorf("%v, want that process %d has port 7", err, os.Getpid())
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := descriptors() - before; n > times/2 {
		t.Errorf("%d descriptors are open that were not, after %d times", n, times)
	}
}

// A name that nobody listens at is no process's, as one is whose owner has just let it go.
func TestListener_OfNobody(t *testing.T) {
	if pid := listener(&unix.SockaddrUnix{Name: fmt.Sprintf("@rawlane test %d nobody", os.Getpid())}); pid != 0 {
		t.Errorf("process %d listens", pid)
	}
}
