package afpacket

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Presence is what a link knows of its interface's being there and up.
//
// The kernel tells a socket once that its interface went down, and not at all that it is gone for good. So after the
// first of these tidings each wait looks for itself, until the interface has been seen up.
type Presence struct {
	index int
	lost  atomic.Bool // it went down, and has not been seen up since
}

// Open makes p that of the interface with the given index, which is up.
func (p *Presence) Open(index int) { p.index = index }

// Explain is the function of that name, and takes notice of an interface that went down.
func (p *Presence) Explain(err error) error {
	if errors.Is(err, unix.ENETDOWN) {
		p.lost.Store(true)
	}
	return Explain(err)
}

// Check returns transport.ErrInterfaceDown or ErrNoInterface if there is nothing to wait for. control runs a function on
// the link's socket.
func (p *Presence) Check(control func(func(fd int) error) error) error {
	if !p.lost.Load() {
		return nil
	}
	err := control(func(fd int) error {
		flags, err := interfaceFlags(fd, p.index)
		if err == nil && flags&unix.IFF_UP == 0 {
			err = unix.ENETDOWN
		}
		return Explain(err)
	})
	if err == nil {
		p.lost.Store(false)
	}
	return err
}

// interfaceFlags returns the flags of an interface in the socket's network namespace, which need not be this thread's.
func interfaceFlags(fd, index int) (uint16, error) {
	var request unix.Ifreq
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, &request); err != nil { // it may have another one by now
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, &request); err != nil {
		return 0, err
	}
	return request.Uint16(), nil
}

// hasCarrier reports whether frames can leave the interface. One that cannot be asked is taken to have a carrier.
func hasCarrier(fd, index int) bool {
	flags, err := interfaceFlags(fd, index)
	return err != nil || flags&unix.IFF_RUNNING != 0
}

// errShrunk: the kernel found a frame too large that fitted when the link was opened.
var errShrunk = fmt.Errorf("%w: the interface's MTU was lowered since the link was opened (open it anew)", transport.ErrTooLarge)
