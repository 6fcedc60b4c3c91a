package offload

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// What the system says becomes the error that a program can ask for, with what was tried.
func TestExplain(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err, want error
	}{
		{unix.EBUSY, ErrOccupied}, {unix.EEXIST, ErrOccupied},
		{unix.EPERM, transport.ErrPermission}, {unix.EACCES, transport.ErrPermission},
		{unix.ENOSYS, transport.ErrNotSupported}, {ebpf.ErrNotSupported, transport.ErrNotSupported},
		{other, other},
	} {
		got := explain("attach", fmt.Errorf("by the kernel: %w", c.err))
		if !errors.Is(got, c.want) || got.Error()[:8] != "attach: " {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
		for _, class := range []error{ErrOccupied, transport.ErrPermission, transport.ErrNotSupported} {
			if errors.Is(got, class) != errors.Is(c.want, class) {
				t.Errorf("%v: %v is %v: %v", c.err, got, class, errors.Is(got, class))
			}
		}
	}
}

// A load that fails without CAP_PERFMON as one of a program that is too large does, says what
// it takes.
func TestExplainLoad(t *testing.T) {
	for _, c := range []struct {
		err     error
		perfmon bool
		want    error
	}{
		{unix.EFAULT, false, transport.ErrPermission},
		{unix.E2BIG, false, transport.ErrPermission},
		{unix.EPERM, false, transport.ErrPermission},
		{unix.EMFILE, false, unix.EMFILE},
		{unix.ENOSYS, false, transport.ErrNotSupported},
		{unix.EFAULT, true, unix.EFAULT},
		{unix.EPERM, true, transport.ErrPermission},
	} {
		got := explainLoad(fmt.Errorf("by the kernel: %w", c.err), c.perfmon)
		permission := errors.Is(c.want, transport.ErrPermission)
		if !errors.Is(got, c.want) || errors.Is(got, transport.ErrPermission) != permission || got.Error()[:6] != "load t" {
			t.Errorf("%v, CAP_PERFMON %t: %v, want %v", c.err, c.perfmon, got, c.want)
		}
	}
}

// What to do depends on who holds the program that is there: ip takes off none that a process holds.
func TestHeldBy(t *testing.T) {
	for _, c := range []struct {
		holder xsk.OccupiedError
		want   string
	}{
		{
			xsk.OccupiedError{Interface: "eth7", Attached: "xdpdrv"},
			" (root sees which one, by ip link show eth7: end the process that has it, perhaps by a link xdp, " +
				"for which beside a unit use link ring; where no process has it: ip link set eth7 xdpdrv off)",
		},
		{
			xsk.OccupiedError{Program: "filter", Interface: "eth7", Attached: "xdpgeneric"},
			", filter (take it off: ip link set eth7 xdpgeneric off)",
		},
		{xsk.OccupiedError{Program: "filter", PID: 12}, ", filter, of process 12 (end that one)"},
		{
			xsk.OccupiedError{Program: xsk.ProgramName, PID: 12},
			", rawlane_link, of process 12 (that is link xdp: beside a unit use link ring)",
		},
	} {
		if got := heldBy(&c.holder); got != c.want {
			t.Errorf("%+v: %q, want %q", c.holder, got, c.want)
		}
	}
}
