package xdp

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// attach puts the program on the interface and binds the sockets, in the mode that was asked for or
// in the best that there is. Frames of a veth are the kernel's own packets in any mode, and the
// shortest way is the generic one.
func (d *door) attach(ifi *net.Interface) error {
	asked := d.cfg.Mode
	if asked == ModeAuto && d.nic.driver == "veth" {
		asked = Generic
	}
	if asked != Generic {
		err := d.run(ifi, true)
		if err == nil {
			err = d.bindNative(ifi.Index, asked)
			if err == nil || asked != ModeAuto {
				return err
			}
			if failure := errors.Join(d.program.Detach(), d.reopenSockets()); failure != nil {
				return failure
			}
		}
		var occupied *OccupiedError
		if asked != ModeAuto || errors.As(err, &occupied) || errors.Is(err, transport.ErrPermission) {
			return err
		}
		d.fallback = err.Error()
	}
	d.mode = Generic
	if err := d.run(ifi, false); err != nil {
		return err
	}
	return d.bindAll(ifi.Index, false)
}

// bindNative binds the sockets where the program runs in the driver.
func (d *door) bindNative(index int, asked Mode) error {
	d.mode = Native
	if asked != Native {
		err := d.bindAll(index, true)
		if err == nil {
			d.mode = ZeroCopy
			return nil
		}
		if asked == ZeroCopy {
			return err
		}
		d.fallback = err.Error()
		if d.queues[0].socket.ZeroCopy() { // another one was refused it
			if err := d.reopenSockets(); err != nil {
				return err
			}
		}
	}
	return d.bindAll(index, false)
}

// bindAll binds the sockets to the interface's receive queues.
func (d *door) bindAll(index int, zeroCopy bool) error {
	for k, q := range d.queues {
		if err := bind(q, index, k, zeroCopy); err != nil {
			return err
		}
	}
	return nil
}

// releaseTime is how long the kernel may take to give back a queue whose socket was closed just
// before: it does so in the background.
const releaseTime = 2 * time.Second

func bind(q queue, index, number int, zeroCopy bool) error {
	err := q.socket.Bind(index, number, zeroCopy)
	for start := time.Now(); errors.Is(err, unix.EBUSY) && time.Since(start) < releaseTime; {
		time.Sleep(time.Millisecond)
		err = q.socket.Bind(index, number, zeroCopy)
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
	return explain(fmt.Sprintf("bind to queue %d", number), err)
}

// run attaches the program.
func (d *door) run(ifi *net.Interface, native bool) error {
	what := "generic XDP"
	if native {
		what = "native XDP"
	}
	err := d.program.Attach(ifi.Index, native)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return holder(ifi.Index)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: %w by this driver", what, transport.ErrNotSupported)
	}
	return explain("attach "+what, err)
}
