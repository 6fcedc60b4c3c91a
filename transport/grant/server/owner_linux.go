package server

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Numbers of linux/unix_diag.h and the kernel's states of a socket.
const (
	diagMessageLen = 16 // struct unix_diag_msg
	diagName       = 0  // UNIX_DIAG_NAME
	diagUID        = 7  // UNIX_DIAG_UID
	showName       = 1 << 0
	showUID        = 1 << 6
	stateClose     = 1 << 7  // bound, not yet listening
	stateListen    = 1 << 10 // listening
)

// errNoOwner: the name was given up meanwhile.
var errNoOwner = errors.New("nobody any more (try again)")

// socketOwner returns the user whose socket has an abstract name, which begins with @.
func socketOwner(name string) (uint32, error) {
	request := make([]byte, 24) // struct unix_diag_req
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], stateClose|stateListen)
	binary.NativeEndian.PutUint32(request[12:], showName|showUID)
	r := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	r.AddRawData(request)
	messages, err := r.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if len(m) < diagMessageLen || m[1] != unix.SOCK_STREAM {
			continue
		}
		attributes, err := nl.ParseRouteAttr(m[diagMessageLen:])
		if err != nil {
			continue
		}
		if uid, ok := ownerOf(attributes, "\x00"+name[1:]); ok {
			return uid, nil
		}
	}
	return 0, errNoOwner
}

// ownerOf returns the owner of a socket, if that is its name.
func ownerOf(attributes []syscall.NetlinkRouteAttr, name string) (uid uint32, ok bool) {
	named := false
	for _, a := range attributes {
		switch {
		case a.Attr.Type == diagName:
			named = string(a.Value) == name
		case a.Attr.Type == diagUID && len(a.Value) >= 4:
			uid, ok = binary.NativeEndian.Uint32(a.Value), true
		}
	}
	return uid, named && ok
}
