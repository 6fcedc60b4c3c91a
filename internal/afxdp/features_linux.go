package afxdp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
)

// The kernel's generic netlink family netdev, and what it says of a driver: linux/netdev.h.
const (
	netdevFamily      = "netdev\x00"
	netdevGet         = 1 // NETDEV_CMD_DEV_GET
	netdevIndex       = 1 // NETDEV_A_DEV_IFINDEX
	netdevXDPFeatures = 3 // NETDEV_A_DEV_XDP_FEATURES

	featureBasic    = 1 << 0 // the driver runs programs
	featureRedirect = 1 << 1
	featureZeroCopy = 1 << 3
)

// DriverMode returns the best mode that an interface's driver says it has, or xsk.ModeAuto if the
// kernel does not tell.
func DriverMode(index int) xsk.Mode {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return xsk.ModeAuto
	}
	defer unix.Close(fd)
	family := ask(fd, unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, unix.CTRL_ATTR_FAMILY_NAME, []byte(netdevFamily))
	id := family[unix.CTRL_ATTR_FAMILY_ID]
	if len(id) < 2 {
		return xsk.ModeAuto
	}
	request := binary.NativeEndian.AppendUint32(nil, uint32(index))
	features := ask(fd, binary.NativeEndian.Uint16(id), netdevGet, netdevIndex, request)[netdevXDPFeatures]
	if len(features) < 8 {
		return xsk.ModeAuto
	}
	return modeOf(binary.NativeEndian.Uint64(features))
}

// modeOf returns the best mode of a driver with such features.
func modeOf(features uint64) xsk.Mode {
	switch {
	case features&featureBasic == 0 || features&featureRedirect == 0:
		return xsk.Generic
	case features&featureZeroCopy == 0:
		return xsk.Native
	}
	return xsk.ZeroCopy
}

// ask sends a request with one attribute to a generic netlink family, and returns the attributes of
// the answer: none if there is no answer.
func ask(fd int, family uint16, command uint8, attribute uint16, value []byte) map[uint16][]byte {
	const size = unix.SizeofNlMsghdr + unix.GENL_HDRLEN
	n := binary.NativeEndian
	b := make([]byte, unix.SizeofNlMsghdr, 64)
	n.PutUint16(b[4:], family)
	n.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b = append(b, command, 1, 0, 0) // genlmsghdr: command, version
	b = n.AppendUint16(b, uint16(unix.SizeofNlAttr+len(value)))
	b = n.AppendUint16(b, attribute)
	b = append(b, value...)
	for len(b)%unix.NLA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	n.PutUint32(b, uint32(len(b)))
	if unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return nil
	}
	answer := make([]byte, 1<<15)
	got, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || got < size || n.Uint16(answer[4:]) != family {
		return nil // or it is an error
	}
	return attributes(answer[size:got])
}
