package netpoll

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
)

// dozer keeps a Sleep's thread in ppoll(2), and the thread its processor: a frame wakes the thread,
// which goes on. By the runtime's poller the goroutine is parked, the thread looks for others, and
// sleeps in epoll_wait(2) of a set that has the sockets' set in it.
//
// The runtime takes the thread for one that computes. The signal by which it stops goroutines
// interrupts the doze. Others that are ready, by timers or by what the runtime's poller hears, may
// have no processor as long as it lasts, nor get one from who dozes again and again. So dozes are
// in a window of time, whose end ends the last one, and a Sleep that parks is between two windows.
// And what the runtime's poller is to hear of ends a doze, where no other thread listens there.
type dozer struct {
	longest time.Duration // a window; 0: there are no dozes

	// These are of who sleeps.
	isBrief bool          // the last Sleep was
	skips   int           // how many Sleeps to come have no doze
	until   monotime.Time // when the last doze of this window may begin; zero: there is none yet
	alone   bool          // the process had one processor as the window began

	// The Wakeup's mu guards these.
	dozing bool
	ended  sync.Cond // dozing no more
	alarm  int       // a timerfd that goes off at the window's end; -1: there is none
}

const (
	// dozeTime is a window. The timer is set for a window, and not for each doze: where a virtual
	// machine's host does that, it takes 10 µs.
	dozeTime = time.Millisecond
	// dozeSockets is how many sockets a doze watches at most: each costs ppoll(2) some time.
	dozeSockets = 8
	// lentTurn is how long the processor is lent at most if no goroutine was ready for it.
	lentTurn = 3 * time.Microsecond
	// pollerSkips is how many Sleeps have no doze where the runtime's poller had something to hear
	// of: more is likely to come, and each would end a doze.
	pollerSkips = 8
)

// mayDoze reports whether a Sleep that begins now may have a doze.
func (d *dozer) mayDoze(now monotime.Time) bool {
	switch {
	case !d.isBrief:
		return false
	case d.skips > 0:
		d.skips--
		return false
	case !d.until.IsZero() && !now.Before(d.until):
		d.until = monotime.Time{}
		return false
	case d.until.IsZero():
		d.alone = runtime.GOMAXPROCS(0) == 1
	}
	if d.alone {
		runtime.Gosched()
		return clock.Now().Sub(now) < lentTurn // else others were ready, and may be still
	}
	return true
}

// doze waits for a frame until the window's end at most. If it reports none, the Sleep goes on.
func (w *Wakeup) doze(now monotime.Time) (came bool) {
	var fds [2 + dozeSockets]unix.PollFd
	n, came := w.beginDoze(now, &fds)
	if n == 0 {
		return came
	}
	for {
		_, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), uintptr(n), 0, 0, 0, 0)
		if e != unix.EINTR {
			return w.endDoze(fds[:n])
		}
		runtime.Gosched() // the runtime wants its processor, or to stop it
	}
}

// beginDoze returns how many descriptors the doze is to watch: none if there is to be no doze, as
// something has come or a Sleep would not wait for a frame alone.
func (w *Wakeup) beginDoze(now monotime.Time, fds *[2 + dozeSockets]unix.PollFd) (n int, came bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	poller := w.sleep.poller
	if w.closed || w.masked || len(w.fds) > dozeSockets || poller.kicked.Load() || w.left != nil && w.left() {
		return 0, false
	}
	if w.pending != nil && w.pending() {
		return 0, true
	}
	if w.set(&w.sleep, false, false); poller.Failed() || !w.dozer.begin(now) {
		return 0, false // what is in that set the runtime's poller would hear of, too
	}
	fds[0].Fd, fds[1].Fd = int32(w.dozer.alarm), int32(runtimePoller.fd)
	for i, fd := range w.fds {
		fds[2+i].Fd = int32(fd)
	}
	n = 2 + len(w.fds)
	for i := range fds[:n] {
		fds[i].Events = unix.POLLIN
	}
	return n, false
}

// begin begins a doze, and a window if there is none. It reports whether there may be dozes: there
// is a timer, and the runtime's poller is known. The caller holds the Wakeup's mu.
func (d *dozer) begin(now monotime.Time) bool {
	if d.until.IsZero() {
		if d.alarm < 0 && runtimePoller.fd >= 0 {
			d.alarm, _ = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
		}
		if d.alarm < 0 || !d.goOff(d.longest) { // and no more, if it has gone off
			d.longest, d.isBrief = 0, false
			return false
		}
		d.until = now.Add(d.longest / 2)
	}
	d.dozing = true
	return true
}

// endDoze reports whether a frame has ended it. The sockets may have been closed meanwhile.
func (w *Wakeup) endDoze(fds []unix.PollFd) (came bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.dozer
	d.dozing = false
	d.ended.Broadcast()
	if fds[0].Revents != 0 {
		d.until = monotime.Time{}
	}
	if fds[1].Revents != 0 {
		d.skips = pollerSkips
	}
	var events int16
	for _, s := range fds[2:] {
		events |= s.Revents
	}
	return events == unix.POLLIN && !w.closed && !w.masked && (w.pending == nil || w.pending())
}

func (d *dozer) goOff(after time.Duration) bool {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(after.Nanoseconds())}
	return unix.TimerfdSettime(d.alarm, 0, &at, nil) == nil
}

// rouse ends a doze in progress; the Sleep goes on. The caller holds the Wakeup's mu.
func (d *dozer) rouse() {
	if d.dozing {
		d.goOff(1)
	}
}

// stop is rouse that returns once the doze has ended, and with it what ppoll(2) holds: sockets that
// are closed are gone then, and their ports. The caller holds the Wakeup's mu.
func (d *dozer) stop() {
	for d.dozing {
		d.rouse()
		d.ended.Wait()
	}
}

// close ends the doze in progress, and there is no other. The caller holds the Wakeup's mu.
func (d *dozer) close() {
	if d.stop(); d.alarm >= 0 {
		_ = unix.Close(d.alarm)
		d.alarm = -1
	}
}

// runtimePoller is the epoll set of the runtime's network poller, which all Wakeups share.
var runtimePoller struct {
	once sync.Once
	fd   int // -1: it is not known
}

// init looks for the runtime's poller, which watches the two sets of w. proc(5) tells it: the
// runtime says it nowhere.
func (d *dozer) init(w *Wakeup) {
	d.longest, d.isBrief, d.alarm, d.ended.L = dozeTime, true, -1, &w.mu
	runtimePoller.once.Do(func() { runtimePoller.fd = watcherOf(w.wait.fd, w.sleep.fd) })
}

// watcherOf returns the epoll set that watches these descriptors, or -1. The runtime's is among the
// first descriptors of a process: it comes with the first file that is no regular one.
func watcherOf(watched ...uintptr) int {
	const among = 256
	for set := range among {
		info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", set))
		if err == nil && watchesAll(string(info), watched) {
			return set
		}
	}
	return -1
}

// watchesAll reports whether the epoll set of an fdinfo file watches these descriptors.
func watchesAll(info string, watched []uintptr) bool {
	left := slices.Clone(watched)
	for line := range strings.Lines(info) {
		var fd uintptr
		if _, err := fmt.Sscanf(line, "tfd: %d", &fd); err == nil {
			left = slices.DeleteFunc(left, func(w uintptr) bool { return w == fd })
		}
	}
	return len(left) == 0
}
