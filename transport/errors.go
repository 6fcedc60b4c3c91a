package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
)

// kind is an error that is also one of the standard library's: errors.Is holds for both.
type kind struct {
	text string
	is   error
}

func (k *kind) Error() string        { return k.text }
func (k *kind) Is(target error) bool { return k.is != nil && target == k.is }

// Errors to test for with errors.Is. They come wrapped in what was tried and what to do about it.
var (
	// ErrClosed: the link was closed. Is net.ErrClosed.
	ErrClosed error = &kind{"link closed", net.ErrClosed}
	// ErrBusy: there is no room for more frames at this moment; Send again after a while.
	ErrBusy = errors.New("link busy")
	// ErrTooLarge: a payload is over the MTU. A *SizeError carries both sizes.
	ErrTooLarge = errors.New("too large")
	// ErrBadTag: a VID or PCP out of 802.1Q's range.
	ErrBadTag = errors.New("bad VLAN tag")
	// ErrShortFrame: fewer bytes than an Ethernet header.
	ErrShortFrame = errors.New("short frame")
	// ErrNotSupported: this kernel or system lacks what is needed. Is errors.ErrUnsupported.
	ErrNotSupported error = &kind{"not supported here", errors.ErrUnsupported}
	// ErrPermission: a capability is missing. Is fs.ErrPermission.
	ErrPermission error = &kind{"operation not permitted", fs.ErrPermission}
	// ErrNoInterface: no network interface has that name.
	ErrNoInterface = errors.New("no such interface")
	// ErrInterfaceDown: the interface exists but is not up.
	ErrInterfaceDown = errors.New("interface is down")
	// ErrNoCarrier: the interface is up, and no frame can leave or come: a cable is out, or the
	// other end is down.
	ErrNoCarrier = errors.New("no carrier")
)

// SizeError is an ErrTooLarge with both sizes, in bytes.
type SizeError struct{ Size, Max int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("too large: %d bytes, at most %d fit", e.Size, e.Max)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }

// LockedError: another process has the lock on a port.
type LockedError struct{ PID int } // 0 if the system does not tell

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return "locked by another process"
	}
	return fmt.Sprintf("locked by process %d", e.PID)
}
