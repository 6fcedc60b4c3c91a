package afpacket

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

// stamping is whether the kernel stamps a link's frames.
type stamping struct {
	on      atomic.Bool // written under control's lock
	control timestamping.Switch
}

// StampFrames implements transport.Stamper.
func (a *Attachment) StampFrames(on bool) error {
	if a.cfg.Monitor { // its frames pass no packet socket
		return a.wrap("stamp frames", transport.ErrNotSupported)
	}
	err := a.socket.Control(func(fd int) error {
		return a.stamping.control.Turn(fd, StampingNIC(a), on, func(on bool) error {
			err := timestamping.Set(fd, on)
			if err == nil {
				err = a.sender.stamp(on)
			}
			a.stamping.on.Store(on && err == nil)
			return err
		})
	})
	return a.wrap("stamp frames", err)
}

// SentStamps implements transport.Stamper.
func (a *Attachment) SentStamps(stamps []transport.SentStamp) int { return a.sender.sentStamps(stamps) }

// StampingNIC is the index of the interface whose NIC is asked for stamps; 0: it is not.
func StampingNIC(a *Attachment) int {
	if a.cfg.SoftwareStamps {
		return 0
	}
	return a.ifi.Index
}

// Stamping reports whether the kernel stamps the link's frames.
func Stamping(a *Attachment) bool { return a.stamping.on.Load() }

// closeStamps has the NIC as it was.
func (a *Attachment) closeStamps() {
	_ = a.socket.Control(func(fd int) error { // once closed, it is
		a.stamping.control.Close(fd)
		return nil
	})
}

// stamp switches stamps of what is sent on or off, but for trains, which have a socket of their
// own.
func (s *sender) stamp(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return transport.ErrClosed
	}
	return timestamping.Set(s.fd, on)
}

func (s *sender) sentStamps(stamps []transport.SentStamp) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return 0
	}
	return s.stamps.Sent(s.fd, stamps)
}
