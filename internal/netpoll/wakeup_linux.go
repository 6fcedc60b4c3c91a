package netpoll

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
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
// What is disarmed tells of errors still, but for what an event has disarmed.
//
//	masked  watched  armed   the next frame
//	no      yes      yes     ends the wait, and disarms
//	no      yes      no      has ended one; the next wait arms again
//	yes     no       no      ends nothing
//
// A second set is for Sleep. While somebody is in that, the first one is disarmed. Where the link
// can tell by itself whether there is a frame, the second one stays armed from one Sleep to the
// next: each frame raises an event (EPOLLET), and who sleeps asks the link.
//
// A Sleep that is likely to be brief begins with a doze, which needs neither set.
type Wakeup struct {
	fds     []int // the sockets
	own     int   // how many of them NewWakeup was given: the others are Watch's
	onError func(fd int)
	pending func() bool // whether there is a frame; nil: the kernel is asked
	left    func() bool // whether a poll has left some; nil: none does
	wait    set
	sleep   set
	dozer   dozer

	mu       sync.Mutex // guards what follows, and the sets: no wait arms one after Mask(true) or Close
	masked   bool
	sleeping bool // between Sleep and Awake
	owed     bool // then: the wait's set was armed, or is to be
	kicked   bool // then: a Kick waits for Awake
	closed   bool
}

const edgeTriggered = 1 << 31 // unix.EPOLLET, which is negative on some systems

// set is an epoll set of the sockets, for one poller.
type set struct {
	epoll   *os.File // watched by the runtime
	fd      uintptr  // its number
	poller  *Poller
	watched bool // the sockets are in the set
	armed   bool // the next frame raises an event, or one has been raised that no wait has taken
	edges   bool // each frame raises one while the set is armed, and no wait takes it
}

// NewWakeup is for sockets that do not block, and that nobody else watches.
func NewWakeup(fds ...int) (*Wakeup, error) {
	w := &Wakeup{fds: fds, own: len(fds)}
	if err := w.wait.open(w.ready); err != nil {
		return nil, err
	}
	if err := w.sleep.open(w.sleepReady); err != nil {
		_ = w.wait.epoll.Close()
		return nil, err
	}
	w.dozer.init(w)
	return w, nil
}

func (s *set) open(ready func(fd uintptr) bool) error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // os.NewFile then gives it to the runtime's poller
		_ = unix.Close(epoll)
		return err
	}
	s.epoll, s.fd = os.NewFile(uintptr(epoll), "epoll"), uintptr(epoll)
	conn, err := s.epoll.SyscallConn()
	if err == nil {
		err = s.epoll.SetReadDeadline(time.Time{}) // fails if the runtime's poller did not take it
	}
	if err != nil {
		_ = s.epoll.Close()
		return err
	}
	s.poller = NewPoller(conn, s.epoll.SetReadDeadline, ready)
	return nil
}

// Watch adds a socket to the others, whose errors end a wait and are not the wait's. Unwatch it
// before it is closed.
func (w *Wakeup) Watch(fd int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range []*set{&w.wait, &w.sleep} {
		if s.watched {
			if e := s.control(unix.EPOLL_CTL_ADD, fd, s.armed); e != 0 {
				_ = w.wait.control(unix.EPOLL_CTL_DEL, fd, false) // it may be in that one
				return e
			}
		}
	}
	w.fds = append(w.fds, fd)
	w.dozer.rouse()
	return nil
}

// Unwatch takes a socket out again that Watch may have added.
func (w *Wakeup) Unwatch(fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dozer.stop()
	i := slices.Index(w.fds, fd)
	if i < w.own {
		return
	}
	w.fds = slices.Delete(w.fds, i, i+1)
	for _, s := range []*set{&w.wait, &w.sleep} {
		if s.watched && !w.closed {
			_ = s.control(unix.EPOLL_CTL_DEL, fd, false) // closing it does so, too
		}
	}
}

// OnError has f called when a wait ends by an error of a socket, or by what is in its error queue,
// which ends each wait as long as it is there. It is called before the first wait.
func (w *Wakeup) OnError(f func(fd int)) { w.onError = f }

// AskInMemory has waits ask pending whether there is a frame, which costs no system call. It may
// say so where there is none: the wait then ends for nothing. It is called before the first wait.
func (w *Wakeup) AskInMemory(pending func() bool) { w.pending, w.sleep.edges = pending, true }

// AskLeft has a Sleep ask f, too, whether a poll has left frames: those raise no event any more.
// It is called before the first wait.
func (w *Wakeup) AskLeft(f func() bool) { w.left = f }

// Poller is what sleeps until there is a frame.
func (w *Wakeup) Poller() *Poller { return w.wait.poller }

// Mask makes arriving frames end no wait, or end them again.
func (w *Wakeup) Mask(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.masked = on
	if w.sleeping {
		w.owed = true
	}
	watched := !on && w.sleeping
	w.set(&w.sleep, watched, watched)
	w.set(&w.wait, !on, !on && !w.sleeping)
	w.wait.tell()
	w.sleep.tell()
	w.dozer.rouse()
}

// tell ends a wait in progress if its set has failed: it says so, and no frame would end it.
func (s *set) tell() {
	if s.poller.Failed() {
		s.poller.Kick()
	}
}

// Sleep is the poller's Wait for one other goroutine, until Awake: frames end no Wait meanwhile,
// and errors end both. It returns ErrClosed once the Wakeup is closed, and the error of a socket
// that cannot be watched. Interrupt ends it, or else the next one.
func (w *Wakeup) Sleep() error {
	w.mu.Lock()
	if !w.sleeping {
		w.sleeping, w.owed, w.kicked = true, w.wait.armed, false
		w.disarm(&w.wait)
	}
	w.mu.Unlock()
	d, start := &w.dozer, clock.Now()
	if d.mayDoze(start) && w.doze(start) {
		return nil
	}
	err := w.sleep.poller.Wait(context.Background())
	d.isBrief = clock.Now().Sub(start) < d.longest/2
	return err
}

// Awake has frames end a Wait again, those too that came during the Sleep and were not taken.
func (w *Wakeup) Awake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sleeping = false
	if !w.sleep.edges {
		w.disarm(&w.sleep)
	}
	if w.owed && !w.masked {
		w.set(&w.wait, true, true)
	}
	w.wait.tell()
	if w.kicked {
		w.kicked = false
		w.wait.poller.Kick()
	}
}

// Kick ends the wait in progress, or else the next one, as if there were a frame: not before Awake,
// while somebody sleeps, who polls. A Sleep ends if a poll has left frames.
func (w *Wakeup) Kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sleeping {
		w.kicked = true
		w.sleep.poller.Look()
		w.dozer.rouse()
		return
	}
	w.wait.poller.Kick()
}

// disarm has no socket of a set raise an event. Where one of several has raised one, the others are
// armed still. The caller holds mu.
func (w *Wakeup) disarm(s *set) {
	if s.armed || s.watched && len(w.fds) > 1 {
		w.set(s, true, false)
	}
}

// Interrupt ends a Sleep.
func (w *Wakeup) Interrupt() {
	w.sleep.poller.Kick()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dozer.rouse()
}

// set has the sockets in a set or not, armed or not. The caller holds mu. After Close it does
// nothing: the descriptors may be other files by then.
func (w *Wakeup) set(s *set, watched, armed bool) {
	op := unix.EPOLL_CTL_MOD
	switch {
	case w.closed || !watched && !s.watched:
		return
	case !watched:
		op = unix.EPOLL_CTL_DEL
	case !s.watched:
		op = unix.EPOLL_CTL_ADD
	}
	for i, fd := range w.fds {
		if e := s.control(op, fd, armed); e != 0 {
			s.poller.Fail(e) // no memory, or no more may be watched
			if op == unix.EPOLL_CTL_ADD {
				for _, added := range w.fds[:i] { // the next try begins anew
					_ = s.control(unix.EPOLL_CTL_DEL, added, false)
				}
			}
			return
		}
	}
	s.watched, s.armed = watched, armed
}

// control is epoll_ctl(2), for the next event of a socket, for each, or for none.
func (s *set) control(op, fd int, armed bool) unix.Errno {
	event := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(fd)}
	if s.edges {
		event.Events = edgeTriggered
	}
	if armed {
		event.Events |= unix.EPOLLIN
	}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, s.fd, uintptr(op), uintptr(fd),
		uintptr(unsafe.Pointer(&event)), 0, 0)
	return e
}

// ready arms the set for the wait whose turn it is, and reports whether an event has been raised,
// which disarms it. (Armed before its turn, the set might raise an event for the wait before this
// one, and this one would sleep on.)
func (w *Wakeup) ready(uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	isNew := false // what the set raises from now on has ready called again
	if w.sleeping {
		w.owed = true
		if w.pending != nil {
			w.set(&w.wait, !w.masked, false) // for errors, which it alone has: an event has disarmed these, too
		}
	} else {
		isNew = !w.wait.armed
		w.arm(&w.wait)
		if w.sleep.edges {
			w.set(&w.sleep, false, false)
		}
	}
	switch {
	case w.wait.poller.Failed():
		return true
	case w.pending != nil && isNew && !w.masked && !w.pending():
		return false
	}
	return w.raised(&w.wait)
}

// sleepReady is ready for Sleep.
func (w *Wakeup) sleepReady(uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm(&w.sleep)
	switch {
	case w.sleep.poller.Failed(), w.left != nil && !w.masked && w.left():
		return true
	case w.pending != nil:
		return !w.masked && w.pending()
	}
	return w.raised(&w.sleep)
}

// arm arms a set unless it is, or wake-ups are masked. The caller holds mu.
func (w *Wakeup) arm(s *set) {
	if !s.armed {
		w.set(s, !w.masked, !w.masked)
	}
}

// raised takes an event of a set, if there is one.
func (w *Wakeup) raised(s *set) bool {
	var event unix.EpollEvent
	// Some processors have no epoll_wait(2); without a signal mask epoll_pwait(2) is the same.
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, s.fd, uintptr(unsafe.Pointer(&event)), 1, 0, 0, 0)
	if e != 0 || n != 1 {
		return false
	}
	s.armed = false
	switch {
	case event.Events&unix.EPOLLERR == 0 || w.closed:
	case !slices.Contains(w.fds[:w.own], int(event.Fd)):
		_, _ = unix.GetsockoptInt(int(event.Fd), unix.SOL_SOCKET, unix.SO_ERROR) // which takes the error away
	default:
		w.wait.poller.FailWithSocketError(int(event.Fd)) // it is the wait's, though the other set has it
		if s != &w.wait {
			w.wait.tell()
		} else if w.sleeping {
			w.sleep.poller.Kick()
			w.dozer.rouse()
		}
		if w.onError != nil {
			w.onError(int(event.Fd))
		}
	}
	return true
}

// Close ends the wait in progress, and those to come.
func (w *Wakeup) Close() {
	w.mu.Lock()
	w.closed = true // no doze begins
	w.dozer.close()
	w.mu.Unlock()
	_, _ = w.wait.epoll.Close(), w.sleep.epoll.Close()
}
