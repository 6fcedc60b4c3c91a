package testbed

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Line is what a bridge sends a node over: a slow line behind a queue, as at the port of a switch.
type Line struct {
	BitsPerSecond uint64 // of whole frames, without preamble, FCS and gap
	Queue         int    // bytes that wait for the line at most; what finds no room is dropped
}

// LineCounts is what has come to a line, in frames.
type LineCounts struct{ Sent, Dropped uint64 }

// The kernel's token bucket, in its units.
const (
	// tickNanoseconds is a tick of the packet scheduler: PSCHED_SHIFT is 6.
	tickNanoseconds = 64
	// lineBurst is how many bytes a line may send at once after a pause: two full frames, so that a
	// late timer costs nothing.
	lineBurst = 2 * 1514
)

// SetLine has the bridge send a node's NIC its frames over a slow line, by a token bucket at the
// bridge's port. It returns transport.ErrNotSupported if the kernel has none (sch_tbf).
func (b *Bed) SetLine(node, nic int, l Line) error {
	err := b.withPort(node, nic, func(port netlink.Link) error {
		qdisc := &netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{
				LinkIndex: port.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
			},
			Rate: l.BitsPerSecond / 8, Limit: uint32(l.Queue),
		}
		qdisc.Buffer = uint32(lineBurst * 1_000_000_000 / qdisc.Rate / tickNanoseconds)
		return b.sw.nl.QdiscReplace(qdisc)
	})
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w (the kernel has no sch_tbf: modprobe sch_tbf)", transport.ErrNotSupported)
	}
	if err != nil {
		return fmt.Errorf("line to node %d: %w", node, err)
	}
	return nil
}

// LineCounts returns what has come to a node's line.
func (b *Bed) LineCounts(node, nic int) (c LineCounts, err error) {
	err = b.withPort(node, nic, func(port netlink.Link) error {
		all, err := b.sw.nl.QdiscList(port)
		if err != nil {
			return err
		}
		for _, q := range all {
			if s := q.Attrs().Statistics; q.Type() == "tbf" && s != nil {
				c = LineCounts{Sent: uint64(s.Basic.Packets), Dropped: uint64(s.Queue.Drops)}
				return nil
			}
		}
		return errors.New("there is none (SetLine makes one)")
	})
	if err != nil {
		return c, fmt.Errorf("line to node %d: %w", node, err)
	}
	return c, nil
}
