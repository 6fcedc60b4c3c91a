package ring

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
)

// alarm wakes a sleeper when frames arrive, unless it is told to be quiet.
//
// The socket is in an epoll descriptor of ours, armed for one event at a time; that descriptor is what the runtime's
// poller watches. Disarmed, an arriving frame wakes no thread. (A socket that the runtime watches itself
// would wake one for each frame, on the core that somebody else may be spinning on.) But even a disarmed one costs the
// kernel 0.3 µs for each frame; so while it is quiet the socket is taken out of the descriptor altogether.
type alarm struct {
	fd      int      // the socket
	epoll   *os.File // watched by the runtime
	epollFD uintptr  // its number
	sleeper *afpacket.Sleeper
	ready   func(fd uintptr) bool
	failure atomic.Int32 // the socket's error, taken by ready

	mu      sync.Mutex // guards what follows, so that nobody arms behind MaskWakeups(true) or close
	quiet   bool
	watched bool // the socket is in the epoll descriptor
	armed   bool // and the next frame raises the alarm, or the last one has and nobody took notice yet
	closed  bool
}

func newAlarm(fd int) (*alarm, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // so that os.NewFile gives it to the runtime's poller
		_ = unix.Close(epoll)
		return nil, err
	}
	a := &alarm{fd: fd, epoll: os.NewFile(uintptr(epoll), "epoll"), epollFD: uintptr(epoll)}
	conn, err := a.epoll.SyscallConn()
	if err == nil {
		err = a.epoll.SetReadDeadline(time.Time{}) // fails where the poller did not take it
	}
	if err != nil {
		_ = a.epoll.Close()
		return nil, err
	}
	a.sleeper = afpacket.NewSleeper(conn, a.epoll.SetReadDeadline)
	a.ready = a.take
	return a, nil
}

func (a *alarm) setQuiet(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet = on
	a.arm()
}

// arm makes the next frame raise the alarm, unless it is quiet. The caller holds mu.
func (a *alarm) arm() {
	if a.closed { // and the descriptors may be somebody else's by now
		return
	}
	do := unix.EPOLL_CTL_MOD
	switch {
	case a.quiet && !a.watched:
		return
	case a.quiet:
		do = unix.EPOLL_CTL_DEL
	case !a.watched:
		do = unix.EPOLL_CTL_ADD
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, a.epollFD, uintptr(do), uintptr(a.fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	if e != 0 {
		a.failure.Store(int32(e)) // no memory: Wait returns it
		return
	}
	a.watched, a.armed = !a.quiet, !a.quiet
}

// wait sleeps until the socket has frames, or an error, which it returns.
func (a *alarm) wait(ctx context.Context) error {
	if err := a.sleeper.Sleep(ctx, a.ready); err != nil {
		return err
	}
	if e := unix.Errno(a.failure.Swap(0)); e != 0 {
		return e
	}
	return nil
}

// take arms the alarm for the sleeper whose turn it is, and looks whether it has been raised, which disarms it. (Armed
// before his turn, it might have been raised for the sleeper before him, and he would sleep on.)
func (a *alarm) take(epoll uintptr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.armed {
		a.arm()
	}
	if a.failure.Load() != 0 {
		return true
	}
	var event unix.EpollEvent
	// epoll_wait(2) is not there on all processors; without a signal mask this is the same.
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&event)), 1, 0, 0, 0)
	if e != 0 || n != 1 {
		return false
	}
	a.armed = false
	if event.Events&unix.EPOLLERR != 0 && !a.closed {
		if e, err := unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil {
			a.failure.Store(int32(e))
		}
	}
	return true
}

func (a *alarm) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.sleeper.Close()
	_ = a.epoll.Close() // ends the sleep in progress
}
