package server

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// The kernel tells all groups of a program, however many.
func TestCredentials(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 200} {
		var groups []uint32
		for i := range n {
			groups = append(groups, uint32(10*i+7))
		}
		var who *credentials
		err := withGroups(groups, func() (err error) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			who, err = socketCredentials(pair[0])
			return err
		})
		if errors.Is(err, unix.EPERM) {
			t.Skip("this user may not change its groups")
		}
		want := append(groups, uint32(os.Getgid()))
		if err != nil || who.UID != me || who.pid != os.Getpid() || !slices.Equal(who.Groups, want) {
			t.Errorf("%d groups: %+v, %v, want %v", n, who, err, want)
		}
	}
}

// withGroups runs f on a thread of its own, which has the groups.
func withGroups(groups []uint32, f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		var first *uint32
		if len(groups) > 0 {
			first = &groups[0]
		}
		_, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(first)), 0)
		if e != 0 {
			result <- e
			return
		}
		result <- f()
	}()
	return <-result
}

// refusing is a system that opens no socket.
type refusing struct{ inNode }

func (refusing) open(*attachment, *protocol.Request, []rules.Scope) (*sockets, error) {
	return nil, unix.EPERM
}

func (refusing) lock(string) (int, *credentials, error) { return -1, nil, unix.EMFILE }

// What the system refuses is told, and not counted.
func TestSystemRefuses(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, refusing{inNode{bed.Node(0)}}, allowMe(onAny))
	c := dial(t, s)
	for range 3 {
		r := exchange(t, c, `{"do":"open","interface":"eth0","ring":true}`)
		if r == nil || r.Error == nil || r.Error.Cause != protocol.Failed || !strings.Contains(r.Error.Text, "AmbientCapabilities") {
			t.Errorf("open: %+v", r)
		}
		r = exchange(t, c, `{"do":"lock","interface":"eth0","cluster":1,"port":2}`)
		if r == nil || r.Error == nil || r.Error.Cause != protocol.Failed || r.Error.Text != "too many open files" {
			t.Errorf("lock: %+v", r)
		}
	}
	s.mu.Lock()
	if memory := s.users[me].memory; memory != 0 || len(s.locks) != 0 {
		t.Errorf("%d bytes and %d locks of nothing", memory, len(s.locks))
	}
	s.mu.Unlock()
	if _, err := s.tryAsk(grant.Request{Interface: "eth0"}); err == nil {
		t.Error("granted")
	}
}
