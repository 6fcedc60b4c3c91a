package offload

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
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

func occupied(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) }
