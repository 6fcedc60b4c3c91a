package afxdp

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// setcap is what a file's capabilities are to be: setcap replaces those that it has.
const setcap = "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep"

// ErrRights ends the text of errors that Explain makes where rights are lacking.
var ErrRights = fmt.Errorf("%w (needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF outside of user namespaces, "+
	"and CAP_IPC_LOCK where ulimit -l is low: run as root, or setcap "+setcap+" PROGRAM, or use link ring)",
	transport.ErrPermission)

var (
	errKernel = fmt.Errorf("%w (needs Linux 5.9 or later with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL; "+
		"or use link ring)", transport.ErrNotSupported)
	errMemory = errors.New("the limit on locked memory is too low (as root: ulimit -l unlimited, " +
		"or setcap " + setcap + " PROGRAM; or use link ring, or in a program fewer Config.Slots)")
)

// Explain says what was tried when the system returned err, and what to do about it.
func Explain(act string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission): // EPERM and EACCES are
		return fmt.Errorf("%s: %w", act, ErrRights)
	case errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.ENOPROTOOPT), errors.Is(err, unix.ENOSYS),
		errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%s: %w: %w", act, errKernel, err)
	case errors.Is(err, unix.ENOBUFS):
		return fmt.Errorf("%s: %w: %w", act, errMemory, err)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%s: %w", act, transport.ErrInterfaceDown)
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%s: %w: it is gone (open the link anew when it is back)", act, transport.ErrNoInterface)
	}
	return fmt.Errorf("%s: %w", act, err)
}
