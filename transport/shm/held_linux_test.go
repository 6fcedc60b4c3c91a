package shm

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
)

// refill leaves no room in an eventfd, and has it block.
func refill(t *testing.T, fd int) {
	drain(fd)
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], math.MaxUint64-1)
	if _, err := unix.Write(fd, b[:]); err != nil {
		t.Error(err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Error(err)
	}
}

// A process that fills an eventfd anew as soon as it was drained holds nobody that writes to it, as
// long as it is drained.
func TestDrain_FilledAnew(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(ours) }()
	written, drained, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for range 10 {
			refill(t, ours)
			signal(ours)
		}
	}()
	go func() {
		defer close(drained)
		drainUntil(done, fd)
	}()
	select {
	case <-written:
	case <-time.After(Patience):
		t.Fatal("who writes to it is blocked")
	}
	close(done)
	<-drained
}

// A station that has gone, and has filled its eventfd, is not woken any more.
func TestRing_OfAStationThatHasGone(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	s := l.stations.Load().all[0]
	other.sleep()
	refill(t, s.wakeFD)
	defer drain(s.wakeFD)
	s.gone.Store(true)
	rung := make(chan struct{})
	go func() {
		defer close(rung)
		l.txMu.Lock()
		defer l.txMu.Unlock()
		s.ring()
	}()
	select {
	case <-rung:
	case <-time.After(Patience):
		t.Error("it is woken, which blocks")
		drain(s.wakeFD)
		<-rung
	}
}

// A descriptor that takes long to close, as that of a socket that lingers, holds up who passes it, and
// not the link's Close: neither in place of another one, nor beside them, nor with what is not
// received.
func TestClose_DescriptorThatLingers(t *testing.T) {
	for name, say := range map[string]func(other *Link, c *net.UnixConn, fd int) error{
		"no eventfd": func(other *Link, c *net.UnixConn, fd int) error {
			return pass(other, c, other.bellFD, other.bellFD, fd)
		},
		"one more than may be": func(other *Link, c *net.UnixConn, fd int) error {
			b := other.bellFD
			return pass(other, c, b, b, b, b, b, b, fd)
		},
		"behind the hello": func(other *Link, c *net.UnixConn, fd int) error {
			h, err := other.newHalf()
			if err != nil {
				return err
			}
			defer other.undo(h)
			return errors.Join(other.say(c, h), pass(other, c, fd))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, other := opened(t, Folder(t), 1), opened(t, Folder(t), 2)
			ours, theirs := socketPair(t)
			fd, peer := testbed.Lingering(t)
			defer func() { _ = peer.Close() }()
			if err := errors.Join(say(other, theirs, fd), unix.Close(fd)); err != nil { // the message has the last one
				t.Fatal(err)
			}
			l.running.Go(func() { l.welcome(ours, Patience) })
			_ = theirs.SetReadDeadline(time.Now().Add(Patience / 20)) // a connection that is closed has ended before
			for err := error(nil); err == nil; _, err = theirs.Read(make([]byte, hello.Len)) {
			}
			closed := make(chan error, 1)
			go func() { closed <- l.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(Patience):
				t.Error("Close waits until it is closed")
				_ = peer.Close()
				<-closed
			}
		})
	}
}

// pass says a link's hello, with these descriptors.
func pass(l *Link, c *net.UnixConn, fds ...int) error {
	own := hello.Hello{MAC: l.mac, MTU: l.mtu, Data: l.data}
	_, _, err := c.WriteMsgUnix(own.AppendTo(nil), unix.UnixRights(fds...), nil)
	return err
}
