package offload

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

var (
	// ErrOccupied: the interface runs an XDP program already, such as that of a link xdp. It runs
	// no second one.
	ErrOccupied = errors.New("the interface runs an XDP program already")
	// ErrFull: all slots are taken. The number of the group is counted by the Center's process.
	ErrFull = errors.New("offload: all slots are taken")
	// ErrTaken: the unit counts another group of the same members, ID and number, as one of another
	// cluster may have. This group's number is counted by the Center's process.
	ErrTaken = errors.New("offload: another group has the same members and number")
)

var (
	// CAP_NET_RAW, for the program's link, is in the cure, as setcap replaces what a file has.
	errPermission = fmt.Errorf("%w (needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON outside of user namespaces: "+
		"run as root, or setcap cap_bpf,cap_net_admin,cap_perfmon,cap_net_raw+ep PROGRAM)", transport.ErrPermission)
	errKernel = fmt.Errorf("%w (needs Linux 5.12 or later with CONFIG_BPF_SYSCALL)", transport.ErrNotSupported)
)
