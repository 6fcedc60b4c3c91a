package afxdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// Bytes is how much of the system's memory the sockets of so many queues take.
func Bytes(queues, chunk, slots int) (n int) {
	for k := range queues {
		cfg := xsk.ConfigOf(k, chunk, slots)
		n += cfg.Bytes()
	}
	return n
}

var errHandover = fmt.Errorf("hand over the sockets of AF_XDP: %w (needs Linux 6.4 or later: before, no other "+
	"process can map the rings of a socket that is bound; use link ring)", transport.ErrNotSupported)

// mayHandOver returns an error if another process can make nothing of the sockets, which are bound.
func (a *Attachment) mayHandOver() error {
	err := a.sockets[0].Adoptable()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return errHandover
	}
	return Explain("hand over the sockets of AF_XDP", err)
}

// Descriptors are what another process needs to use shared sockets: that of the program's
// attachment, and for each receive queue the socket and its memory.
func (a *Attachment) Descriptors() []int {
	fds := []int{a.program.LinkFD()}
	for _, s := range a.sockets {
		fds = append(fds, s.FD, s.MemoryFD)
	}
	return fds
}

// CloseSockets leaves the sockets to the process that was given them.
func (a *Attachment) CloseSockets() error { return a.closeSockets() }

// Leave leaves the program to the process that was given its attachment, and the NIC as it is.
func (a *Attachment) Leave() error {
	a.nic.stopped = nil
	return errors.Join(a.program.Leave(), a.nic.close())
}

// HasSockets reports whether one of the sockets that were handed over is still open. The program
// must be detached.
func (a *Attachment) HasSockets() (bool, error) {
	probe, err := xsk.Open(xsk.Config{Chunk: a.chunk, Receive: 2})
	if err != nil {
		return false, err
	}
	defer func() { _ = probe.Discard() }() // it was only a try
	for k := range a.queues {
		if has, err := a.program.HasSocket(k, probe.FD); has || err != nil {
			return has, err
		}
	}
	return false, nil
}
