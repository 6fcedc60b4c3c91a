//go:build linux && !rawlane_portable

package udp

import (
	"net/netip"

	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

var _ transport.Stamper = (*Link)(nil)

// stampLog is the stamps of the frames of a Poll, if they are stamped.
type stampLog []transport.Stamp

func (l *stampLog) reset() { *l = (*l)[:0] }

// add notes the stamp of the datagram that the socket has handed out.
func (l *stampLog) add(s *socket) {
	if s.in.stamped.Load() {
		*l = append(*l, s.in.handed)
	}
}

// StampFrames implements transport.Stamper, on Linux.
func (l *Link) StampFrames(on bool) error {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	l.socket.disconnect() // the link's own socket alone has them
	return l.wrap("stamp frames", l.socket.stampFrames(on, interfaceOf(l.local.Addr())))
}

// SentStamps implements transport.Stamper. Numbers count datagrams, and trains.
func (l *Link) SentStamps(stamps []transport.SentStamp) int {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	if l.closed.Load() {
		return 0
	}
	return l.socket.sentStamps.Sent(l.socket.fd, stamps)
}

// ReceivedStamp implements transport.Stamper.
func (l *Link) ReceivedStamp(i int) transport.Stamp {
	if i >= len(l.stamps) {
		return transport.Stamp{}
	}
	return l.stamps[i]
}

// interfaceOf returns the index of the interface that has an address; 0 if there is none.
func interfaceOf(at netip.Addr) int {
	for ifi := range interfaces() {
		if ifi.has(at) {
			return ifi.Index
		}
	}
	return 0
}

// stampFrames has the kernel stamp datagrams, and the NIC of an interface's index, if it is not 0.
func (s *socket) stampFrames(on bool, nic int) error {
	return s.stamping.Turn(s.fd, nic, on, func(on bool) error {
		err := timestamping.Set(s.fd, on)
		s.in.stamped.Store(on && err == nil)
		return err
	})
}

// forgetStamps takes stamps that nobody will: they are switched off.
func (s *socket) forgetStamps(fd int) {
	if !s.in.stamped.Load() {
		timestamping.Forget(fd)
	}
}
