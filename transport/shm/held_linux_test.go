package shm

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
