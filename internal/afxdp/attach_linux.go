package afxdp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// attach puts the program on the interface and binds the sockets, in the mode that was asked for or
// in the best that there is. Frames of a veth are the kernel's own packets in any mode, and the
// shortest way is the generic one.
func (a *Attachment) attach(ifi *afpacket.Interface) error {
	asked := a.cfg.Mode
	if asked == xsk.ModeAuto && a.nic.driver == "veth" {
		asked = xsk.Generic
	}
	if asked != xsk.Generic {
		err := a.run(ifi, true)
		if err == nil {
			err = a.bindNative(ifi, asked)
			if err == nil || asked != xsk.ModeAuto {
				return err
			}
			if failure := errors.Join(a.program.Detach(), a.reopenSockets()); failure != nil {
				return failure
			}
		}
		var occupied *xsk.OccupiedError
		if asked != xsk.ModeAuto || errors.As(err, &occupied) || errors.Is(err, transport.ErrPermission) {
			return err
		}
		a.Fallback = err.Error()
	}
	a.Mode = xsk.Generic
	if err := a.run(ifi, false); err != nil {
		return err
	}
	return a.bindAll(ifi.Index, false)
}

// bindNative binds the sockets where the program runs in the driver.
func (a *Attachment) bindNative(ifi *afpacket.Interface, asked xsk.Mode) error {
	a.Mode = xsk.Native
	if asked != xsk.Native {
		err := a.bindZeroCopy(ifi)
		if err == nil {
			a.Mode = xsk.ZeroCopy
			return nil
		}
		if asked == xsk.ZeroCopy {
			return err
		}
		a.Fallback = err.Error()
		if a.sockets[0].ZeroCopy() { // another one was refused it
			if err := a.reopenSockets(); err != nil {
				return err
			}
		}
	}
	return a.bindAll(ifi.Index, false)
}

// bindZeroCopy binds the sockets unless there are frames that a NIC may cut.
func (a *Attachment) bindZeroCopy(ifi *afpacket.Interface) error {
	if most := xsk.MaxFrame(true) - transport.MaxHeaderLen; ifi.MTU > most {
		return fmt.Errorf("zero-copy: the interface's MTU is %d: %w", ifi.MTU,
			&transport.SizeError{Size: ifi.MTU, Max: most})
	}
	return a.bindAll(ifi.Index, true)
}

// bindAll binds the sockets to the interface's receive queues.
func (a *Attachment) bindAll(index int, zeroCopy bool) error {
	for k, s := range a.sockets {
		if err := bind(s, index, k, zeroCopy); err != nil {
			return err
		}
	}
	return nil
}

// releaseTime is how long the kernel may take to give back a queue whose socket was closed just
// before: it does so in the background.
const releaseTime = 2 * time.Second

func bind(s *xsk.Socket, index, number int, zeroCopy bool) error {
	err := s.Bind(index, number, zeroCopy)
	for start := time.Now(); errors.Is(err, unix.EBUSY) && time.Since(start) < releaseTime; {
		time.Sleep(time.Millisecond)
		err = s.Bind(index, number, zeroCopy)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("bind to queue %d: %w (another program's AF_XDP socket has it: end that one)", number, err)
	case zeroCopy && errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("zero-copy: %w by this driver", transport.ErrNotSupported)
	case zeroCopy:
		return fmt.Errorf("zero-copy: bind to queue %d: %w", number, err)
	}
	return Explain(fmt.Sprintf("bind to queue %d", number), err)
}

// run attaches the program.
func (a *Attachment) run(ifi *afpacket.Interface, native bool) error {
	what := "generic XDP"
	if native {
		what = "native XDP"
	}
	err := a.program.Attach(ifi.Index, native)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return Holder(ifi.Index)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: %w by this driver", what, transport.ErrNotSupported)
	}
	return Explain("attach "+what, err)
}
