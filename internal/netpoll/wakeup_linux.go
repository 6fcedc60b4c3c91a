package netpoll

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wakeup ends a Wait when frames arrive, unless wake-ups are masked. A link has one socket, or
// several that are watched alike.
//
// The socket is in an epoll set of its own, armed for one event at a time; the runtime's
// poller watches that set. While it is disarmed, an arriving frame wakes no thread. (For a socket
// that the runtime watches itself each frame wakes one, on a core that another goroutine may be
// polling on.) A disarmed socket still costs the kernel 0.3 µs per frame, so while wake-ups are
// masked it is taken out of the set.
//
//	masked  watched  armed   the next frame
//	no      yes      yes     ends the wait, and disarms
//	no      yes      no      has ended one; the next wait arms again
//	yes     no       no      ends nothing
type Wakeup struct {
	fds     []int    // the sockets
	own     int      // how many of them NewWakeup was given: the others are Watch's
	epoll   *os.File // the epoll set, watched by the runtime
	epollFD uintptr  // its number
	poller  *Poller
	onError func(fd int)

	mu      sync.Mutex // guards what follows: no wait arms the set after Mask(true) or Close
	masked  bool
	watched bool // the sockets are in the set
	armed   bool // the next frame raises an event, or one has been raised that no wait has taken
	closed  bool
}

// NewWakeup is for sockets that do not block, and that nobody else watches.
func NewWakeup(fds ...int) (*Wakeup, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // os.NewFile then gives it to the runtime's poller
		_ = unix.Close(epoll)
		return nil, err
	}
	w := &Wakeup{fds: fds, own: len(fds), epoll: os.NewFile(uintptr(epoll), "epoll"), epollFD: uintptr(epoll)}
	conn, err := w.epoll.SyscallConn()
	if err == nil {
		err = w.epoll.SetReadDeadline(time.Time{}) // fails if the runtime's poller did not take it
	}
	if err != nil {
		_ = w.epoll.Close()
		return nil, err
	}
	w.poller = NewPoller(conn, w.epoll.SetReadDeadline, w.ready)
	return w, nil
}

// Watch adds a socket to the others, whose errors end a wait and are not the wait's. Unwatch it
// before it is closed.
func (w *Wakeup) Watch(fd int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched {
		if e := w.control(unix.EPOLL_CTL_ADD, fd); e != 0 {
			return e
		}
	}
	w.fds = append(w.fds, fd)
	return nil
}

// Unwatch takes a socket out again that Watch may have added.
func (w *Wakeup) Unwatch(fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.fds, fd)
	if i < w.own {
		return
	}
	w.fds = slices.Delete(w.fds, i, i+1)
	if w.watched && !w.closed {
		_ = w.control(unix.EPOLL_CTL_DEL, fd) // closing it does so, too
	}
}

// OnError has f called when a wait ends by an error of a socket, or by what is in its error queue,
// which ends each wait as long as it is there. It is called before the first wait.
func (w *Wakeup) OnError(f func(fd int)) { w.onError = f }

// Poller is what sleeps until there is a frame.
func (w *Wakeup) Poller() *Poller { return w.poller }

// Mask makes arriving frames end no wait, or end them again.
func (w *Wakeup) Mask(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.masked = on
	if w.arm(); w.poller.Failed() {
		w.poller.Kick() // a wait that sleeps says so: no frame would end it
	}
}

// arm makes the next frame end a wait; while wake-ups are masked it takes the socket out of the
// set. The caller holds mu. After Close it does nothing: the descriptors may be other files by
// then.
func (w *Wakeup) arm() {
	op := unix.EPOLL_CTL_MOD
	switch {
	case w.closed || w.masked && !w.watched:
		return
	case w.masked:
		op = unix.EPOLL_CTL_DEL
	case !w.watched:
		op = unix.EPOLL_CTL_ADD
	}
	for i, fd := range w.fds {
		if e := w.control(op, fd); e != 0 {
			w.poller.Fail(e) // no memory, or no more may be watched
			if op == unix.EPOLL_CTL_ADD {
				for _, added := range w.fds[:i] { // the next try begins anew
					_ = w.control(unix.EPOLL_CTL_DEL, added)
				}
			}
			return
		}
	}
	w.watched, w.armed = !w.masked, !w.masked
}

// control is epoll_ctl(2), for the next event of a socket.
func (w *Wakeup) control(op, fd int) unix.Errno {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(fd)}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, w.epollFD, uintptr(op), uintptr(fd),
		uintptr(unsafe.Pointer(&event)), 0, 0)
	return e
}

// ready arms the set for the wait whose turn it is, and reports whether an event has been raised,
// which disarms it. (Armed before its turn, the set might raise an event for the wait before this
// one, and this one would sleep on.)
func (w *Wakeup) ready(epoll uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed {
		w.arm()
	}
	if w.poller.Failed() {
		return true
	}
	var event unix.EpollEvent
	// Some processors have no epoll_wait(2); without a signal mask epoll_pwait(2) is the same.
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&event)), 1, 0, 0, 0)
	if e != 0 || n != 1 {
		return false
	}
	w.armed = false
	switch {
	case event.Events&unix.EPOLLERR == 0 || w.closed:
	case !slices.Contains(w.fds[:w.own], int(event.Fd)):
		_, _ = unix.GetsockoptInt(int(event.Fd), unix.SOL_SOCKET, unix.SO_ERROR) // which takes the error away
	default:
		w.poller.FailWithSocketError(int(event.Fd))
		if w.onError != nil {
			w.onError(int(event.Fd))
		}
	}
	return true
}

// Close ends the wait in progress, and those to come.
func (w *Wakeup) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	_ = w.epoll.Close()
}
