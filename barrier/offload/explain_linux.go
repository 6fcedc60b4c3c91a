package offload

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
)

// explain says what was tried when the system returned err, and what to do about it.
func explain(act string, err error) error {
	switch {
	case occupied(err):
		return fmt.Errorf("%s: %w", act, ErrOccupied)
	case errors.Is(err, fs.ErrPermission): // EPERM and EACCES are
		return fmt.Errorf("%s: %w", act, errPermission)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%s: %w: %w", act, errKernel, err)
	}
	return fmt.Errorf("%s: %w", act, err)
}

// explainLoad is explain for the program's load. Without CAP_PERFMON the kernel walks what a
// processor could speculate as well, and gives up a program of this size by an error that says
// nothing of rights.
func explainLoad(err error, perfmon bool) error {
	const act = "load the XDP program"
	tooLarge := slices.ContainsFunc([]error{unix.EFAULT, unix.E2BIG, unix.EINVAL, unix.ENOMEM}, func(e error) bool {
		return errors.Is(err, e)
	})
	if tooLarge && !perfmon {
		return fmt.Errorf("%s: %w: %w", act, errPermission, err)
	}
	return explain(act, err)
}

func occupied(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) }

// heldBy says which program that is, whose, and what to do: others cannot take off one that a
// process holds.
func heldBy(e *xsk.OccupiedError) string {
	const link = "beside a unit use link ring"
	text := xsk.Holder(e)
	switch {
	case e.Ours():
		return text + " (that is link xdp: " + link + ")"
	case e.PID != 0:
		return text + " (end that one)"
	case e.Program == "":
		return text + " (" + xsk.Seek(e, "for which "+link) + ")"
	}
	return text + " (take it off: " + xsk.TakeOff(e) + ")"
}
