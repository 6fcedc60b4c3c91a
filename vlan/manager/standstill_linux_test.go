package manager_test

import (
	"sync"
	"testing"

	"github.com/rawlane/rawlane/internal/standstill/standstilltest"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// A machine that stands still while a session ends does not take that for a manager that does not
// answer.
func TestCloseWhileTheMachineStandsStill(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	p := newProxy(t, n.Socket)
	s, err := new(manager.Dialer).Dial(t.Context(), "unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(1), managertest.MAC(0), 3); err != nil {
		t.Fatal(err)
	}
	stand := sync.OnceFunc(func() { standstilltest.Stand(t) })
	p.hold.Store(&stand)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
