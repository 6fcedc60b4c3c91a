package server_test

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// Who may not listen on a port is told which capability it takes.
func TestListen_PrivilegedPort(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	said := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&head, &none[0]); err != nil {
			t.Error(err)
		}
		_, err := n.Listen("tcp", "127.0.0.1:1", nil)
		said <- err
	}()
	switch err := <-said; {
	case err == nil:
		t.Skip("all ports are for everybody here")
	case !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE"):
		t.Error(err)
	}
}
