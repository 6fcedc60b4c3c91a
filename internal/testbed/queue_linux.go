package testbed

import (
	"errors"
	"net"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// SendByQueue sends a frame, padded, by a transmit queue: past the queueing discipline it is that
// of the processor. The caller is in Node.Do, which keeps it on a thread.
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
	var old, cpu unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return err
	}
	cpu.Set(queue % runtime.NumCPU())
	if err := unix.SchedSetaffinity(0, &cpu); err != nil {
		return err
	}
	err = unix.Sendto(fd, append(f.AppendTo(nil), make([]byte, 60)...), 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
	return errors.Join(err, unix.SchedSetaffinity(0, &old))
}
