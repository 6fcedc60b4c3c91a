package afpacket

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// linkState is whether the interface is up and still there.
//
// The kernel tells a socket once that its interface went down, and never that it was removed. So
// after that one message each Wait checks the interface, until it has been seen up.
type linkState struct {
	ifi   *Interface    // as it was when the link was opened
	downs atomic.Uint64 // how often it went down
	seen  atomic.Uint64 // the value of downs after which it was seen up
}

// wentDown has each check look until the interface is seen up.
func (s *linkState) wentDown() { s.downs.Add(1) }

// check returns ENETDOWN or ENODEV if there is nothing to wait for.
func (s *linkState) check(socket Socket) error {
	downs := s.downs.Load() // before the look: it may go down again right after it
	if downs == s.seen.Load() {
		return nil
	}
	err := socket.Control(s.look)
	if err == nil {
		s.seen.Store(downs)
	}
	return err
}

func (s *linkState) look(fd int) error {
	flags, err := interfaceFlags(fd, s.ifi.Index)
	if err != nil {
		return err
	}
	if flags&unix.IFF_UP == 0 {
		return unix.ENETDOWN
	}
	if now, ok := hardwareAddress(fd, s.ifi.Index); ok && now != s.ifi.MAC {
		return errReaddressed
	}
	// An interface that was moved to another namespace and back is up, but the kernel has detached
	// the socket from it for good.
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	if at, ok := bound.(*unix.SockaddrLinklayer); ok && at.Ifindex != s.ifi.Index {
		return unix.ENODEV
	}
	return nil
}

// askInterface asks something of an interface in the socket's network namespace, which need not be
// this thread's.
func askInterface(fd, index int, what uint) (answer unix.Ifreq, err error) {
	return askByName(index, what, func(what uint, r unix.Ifreq) (unix.Ifreq, error) {
		err := unix.IoctlIfreq(fd, what, &r)
		return r, err
	})
}

// renames is how often an interface is asked at most that has another name each time.
const renames = 8

// askByName asks by the interface's name, as the system wants it. An interface that is renamed
// meanwhile is not gone, and another one may have the name that it had: it is asked again.
func askByName(
	index int, what uint, ask func(what uint, r unix.Ifreq) (unix.Ifreq, error),
) (answer unix.Ifreq, err error) {
	var byIndex unix.Ifreq
	byIndex.SetUint32(uint32(index))
	for range renames {
		name, gone := ask(unix.SIOCGIFNAME, byIndex)
		if gone != nil {
			return answer, gone
		}
		answer, err = ask(what, name)
		if now, gone := ask(unix.SIOCGIFNAME, byIndex); gone == nil && now == name {
			break
		}
	}
	return answer, err
}

// interfaceFlags returns an interface's flags.
func interfaceFlags(fd, index int) (uint16, error) {
	answer, err := askInterface(fd, index, unix.SIOCGIFFLAGS)
	return answer.Uint16(), err
}

// interfaceMTU returns an interface's present MTU, if the kernel says it.
func interfaceMTU(fd, index int) (mtu int, ok bool) {
	answer, err := askInterface(fd, index, unix.SIOCGIFMTU)
	return int(answer.Uint32()), err == nil
}

// hardwareAddress returns an interface's present address, if the kernel says it.
func hardwareAddress(fd, index int) (mac transport.MAC, ok bool) {
	request, err := askInterface(fd, index, unix.SIOCGIFHWADDR)
	if err != nil {
		return mac, false
	}
	// The union is a sockaddr: two bytes of family, then the address.
	at := (*[unix.IFNAMSIZ + 2 + len(mac)]byte)(unsafe.Pointer(&request))
	return transport.MAC(at[unix.IFNAMSIZ+2:]), true
}

// hasCarrier reports whether frames can leave the interface, and true if the kernel does not say.
func hasCarrier(fd, index int) bool {
	flags, err := interfaceFlags(fd, index)
	return err != nil || flags&unix.IFF_RUNNING != 0
}

// errReaddressed: the interface has another address than the link, whose filter and source address
// are those of when it was opened.
var errReaddressed = fmt.Errorf("%w: its address was changed since the link was opened (open it anew)",
	transport.ErrNoInterface)

// errShrunk: the kernel refused as too large a frame that fitted when the link was opened.
var errShrunk = fmt.Errorf("%w: the interface's MTU was lowered since the link was opened (open it anew)",
	transport.ErrTooLarge)
