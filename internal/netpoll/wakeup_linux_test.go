package netpoll

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// event returns an eventfd with something to read, for as long as the test.
func event(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// drain leaves nothing to read in an eventfd, and fill something.
func drain(fd int) { _, _ = unix.Read(fd, make([]byte, 8)) }

func fill(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Where one of several sockets could not be watched for once, a Wait says so, and the next one
// watches all of them.
func TestWakeup_WatchesNoneOrAll(t *testing.T) {
	const second = 900 // no descriptor yet
	first, other := event(t), event(t)
	w, err := NewWakeup(first, second)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 2 {
		if err := w.Poller().Wait(context.Background()); !errors.Is(err, unix.EBADF) {
			t.Fatalf("without the second: %v, want EBADF", err)
		}
	}
	if err := unix.Dup3(other, second, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(second)
	if err := w.Poller().Wait(context.Background()); err != nil {
		t.Errorf("with both: %v", err)
	}
	w.Mask(true)
	var events [2]unix.EpollEvent
	if n, err := unix.EpollWait(int(w.wait.fd), events[:], 0); n != 0 || err != nil {
		t.Errorf("masked: %d events, %v", n, err)
	}
}

// Where the sockets cannot be watched when wake-ups are unmasked, a wait that sleeps already says so,
// and a Sleep: no frame would end it.
func TestWakeup_WatchesNoneOnceUnmasked(t *testing.T) {
	const none = 901 // no descriptor
	for name, wait := range map[string]func(w *Wakeup) (*Poller, func() error){
		"Wait":  func(w *Wakeup) (*Poller, func() error) { return w.wait.poller, patiently(t, w) },
		"Sleep": func(w *Wakeup) (*Poller, func() error) { return w.sleep.poller, w.Sleep },
	} {
		w, err := NewWakeup(none)
		if err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(patience, w.Close)
		w.Mask(true)
		poller, waits := wait(w)
		looked, ready := make(chan struct{}), poller.ready
		poller.ready = func(fd uintptr) bool {
			if ready(fd) {
				return true
			}
			close(looked)
			return false
		}
		result := make(chan error, 1)
		go func() { result <- waits() }()
		<-looked
		w.Mask(false)
		if err := <-result; !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: %v, want EBADF", name, err)
		}
		if stop.Stop() {
			w.Close()
		}
	}
}

// A socket that is added later ends waits like the others, watched or not by then; what is wrong with
// it is no failure of the wait.
func TestWakeup_Watch(t *testing.T) {
	quiet, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(quiet)
	for _, watched := range []bool{false, true} {
		w, err := NewWakeup(quiet)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if watched {
			if err := w.Poller().Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("nothing has come, and Wait: %v", err)
			}
		}
		fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Watch(fd); err != nil {
			t.Fatal(err)
		}
		for _, masked := range []bool{false, true, false} { // which takes it out, and in again
			if w.Mask(masked); masked {
				continue
			}
			if err := w.Poller().Wait(t.Context()); err != nil {
				t.Errorf("watched %v: %v", watched, err)
			}
		}
		w.Unwatch(fd)
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.Poller().Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without it, Wait: %v", err)
		}
	}
}

// refusedSocket returns a UDP socket with an error that waits for its next call: nobody listens where
// it has sent to.
func refusedSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	nobody := &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(unix.Connect(fd, nobody), unix.Send(fd, []byte("?"), 0)); err != nil {
		t.Skip(err)
	}
	return fd
}

// An error of one of the first sockets is the wait's; of one that was added it ends the wait, once.
func TestWakeup_ErrorsOfAddedSockets(t *testing.T) {
	w, err := NewWakeup(refusedSocket(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Poller().Wait(t.Context()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("of its own socket: %v, want ECONNREFUSED", err)
	}
	if err := w.Watch(refusedSocket(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Poller().Wait(t.Context()); err != nil {
		t.Errorf("of an added one: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := w.Poller().Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("again: %v, want the context's error", err)
	}
}
