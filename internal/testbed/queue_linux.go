package testbed

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// SendByQueue sends a frame, padded, by a transmit queue: past the queueing discipline it is that
// of the processor, of all that this process may have, also where it was started on one of them.
// The caller is in Node.Do, which keeps it on a thread. With one processor there is one queue, and
// the error is errors.ErrUnsupported.
func SendByQueue(ifname string, queue int, f transport.Frame) error {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return err
	}
	var old, all, may, cpu unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return err
	}
	all.Fill()
	err = errors.Join(unix.SchedSetaffinity(0, &all), unix.SchedGetaffinity(0, &may))
	if n := may.Count(); err == nil && n < 2 {
		err = fmt.Errorf("send by a queue: this process may have one processor: %w", errors.ErrUnsupported)
	} else if err == nil {
		cpu.Set(queue % n)
		err = unix.SchedSetaffinity(0, &cpu)
	}
	if err == nil {
		to := &unix.SockaddrLinklayer{Ifindex: ifi.Index}
		err = unix.Sendto(fd, append(f.AppendTo(nil), make([]byte, 60)...), 0, to)
	}
	return errors.Join(err, unix.SchedSetaffinity(0, &old))
}
