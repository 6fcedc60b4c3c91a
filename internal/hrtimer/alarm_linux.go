package hrtimer

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a timerfd that the runtime's poller watches, and the goroutine that reads it.
type alarm struct {
	file  *os.File
	ended chan struct{}

	mu sync.Mutex // guards fd
	fd int        // -1 when closed: the number may be another file's by then
}

// newAlarm returns nil if the system has no timerfd left.
func newAlarm(f func()) *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timerfd"), ended: make(chan struct{}), fd: fd}
	if a.file.SetReadDeadline(time.Time{}) != nil { // the runtime's poller did not take it
		_ = a.file.Close()
		return nil
	}
	go a.watch(f) // ends when close closes the file, and waits for it
	return a
}

func (a *alarm) watch(f func()) {
	defer close(a.ended)
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		f()
	}
}

func (a *alarm) set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd >= 0 {
		// It fails for no time that a Duration can be.
		_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	}
}

func (a *alarm) close() {
	a.mu.Lock()
	open := a.fd >= 0
	a.fd = -1
	a.mu.Unlock()
	if open {
		_ = a.file.Close() // ends the read
	}
	<-a.ended
}
