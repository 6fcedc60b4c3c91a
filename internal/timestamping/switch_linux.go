package timestamping

import (
	"sync"

	"github.com/rawlane/rawlane/transport"
)

// Switch switches stamps of a link's sockets and of its NIC, and has the NIC as it was afterwards:
// however the link ends, but for a kill of the process, and unless another program has changed the
// NIC's setting meanwhile.
type Switch struct {
	mu     sync.Mutex // guards what follows
	calls  *calls     // nil: the system's
	nic    *NIC
	closed bool
}

// Turn switches stamps on or off: of the sockets by set, and of the NIC of an interface's index, if
// it is not 0; fd is a socket in its network namespace. After an error they are off. Errors: those
// of set, and transport.ErrClosed after Close.
func (s *Switch) Turn(fd, nic int, on bool, set func(on bool) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return transport.ErrClosed
	}
	s.nic.Restore(fd)
	err := set(on)
	if err != nil && on {
		_ = set(false) // the first error is the one to report
	}
	if err == nil && on && nic != 0 {
		c := system
		if s.calls != nil {
			c = *s.calls
		}
		s.nic = ask(c, fd, nic)
	}
	return err
}

// Close ends the stamps of the NIC, for good. The socket is still open.
func (s *Switch) Close(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.nic.Restore(fd)
}
