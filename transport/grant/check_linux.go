package grant

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// checkOpened checks what a service has sent: it need not be ours.
func checkOpened(reply *protocol.Reply, fds []int, xdp bool) error {
	o := reply.Open
	if o == nil || o.MTU < 1 || o.MTU > maxMTU || o.TxQueues < 1 || (o.XDP != nil) != xdp ||
		len(fds) != descriptorsOf(o) ||
		o.Slots != 0 && !validRing(o) || xdp && !validXDP(o) {
		return fmt.Errorf("the service answered something else (%d descriptors; is it another version?)", len(fds))
	}
	if xdp {
		return checkXDP(o.XDP, fds)
	}
	for _, fd := range fds {
		if !isSocket(fd, unix.AF_PACKET) {
			return errNoPacketSocket
		}
	}
	return nil
}

// maxMTU is more than that of any interface for frames. It bounds a link's buffers.
const maxMTU = 1 << 20

var errNoPacketSocket = errors.New("the service sent a descriptor that is no packet socket of type SOCK_RAW")

// descriptorsOf returns how many come with a reply.
func descriptorsOf(o *protocol.Opened) int {
	if o.XDP != nil {
		return 2 + 2*o.XDP.Queues
	}
	return 2
}

// isSocket reports whether a descriptor is a socket of a domain, and of whole frames: one of
// another type leaves their headers out. Whether it blocks does not matter: no call with it waits.
func isSocket(fd, domain int) bool {
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || got != domain {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_RAW
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// validRing reports whether frames of the interface fit the ring's slots, as many as it may have.
func validRing(o *protocol.Opened) bool {
	least := afpacket.NewRingLayout(o.MTU, 0).SlotSize
	return o.Slots >= 2 && o.Slots <= protocol.MaxSlots && o.SlotSize >= least && powerOfTwo(o.Slots) &&
		powerOfTwo(o.SlotSize)
}

// validXDP reports whether frames of the interface fit the chunks, and the numbers are such as a
// socket can have.
func validXDP(o *protocol.Opened) bool {
	x := o.XDP
	_, err := xsk.ParseMode(x.Mode)
	least, ok := xsk.ChunkFor(o.MTU+transport.MaxHeaderLen, false)
	return err == nil && ok && x.Chunk >= least && x.Chunk <= os.Getpagesize() && powerOfTwo(x.Chunk) &&
		x.Slots >= 2 && x.Slots <= protocol.MaxSlots && powerOfTwo(x.Slots) &&
		x.Queues >= 1 && x.Queues <= protocol.MaxQueues && o.Slots == 0
}

// checkXDP checks descriptors that came for AF_XDP. That of the program's attachment may be
// anything: it is only kept open.
func checkXDP(x *protocol.OpenedXDP, fds []int) error {
	if !isSocket(fds[0], unix.AF_PACKET) {
		return errNoPacketSocket
	}
	for k, queue := 0, fds[2:]; k < x.Queues; k++ {
		cfg := xsk.ConfigOf(k, x.Chunk, x.Slots)
		if !isSocket(queue[2*k], unix.AF_XDP) {
			return fmt.Errorf("the service sent no socket of AF_XDP for queue %d", k)
		}
		if !xsk.IsMemory(queue[2*k+1], cfg.MemoryBytes()) {
			return fmt.Errorf("the service sent no memory of %d bytes for queue %d", cfg.MemoryBytes(), k)
		}
	}
	return nil
}
