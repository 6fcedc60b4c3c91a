package netpoll

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// leaveDozesAlone has no doze of the test end by what the runtime's poller is told, by a timer that
// is set for instance. Who dozes for hours keeps a processor, and there is another one.
func leaveDozesAlone(t *testing.T) {
	t.Helper()
	watch(t, event(t)) // which finds the poller
	procs, fd := runtime.GOMAXPROCS(0), runtimePoller.fd
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		runtimePoller.fd = fd
	})
	runtime.GOMAXPROCS(max(2, procs))
	runtimePoller.fd = event(t)
	drain(runtimePoller.fd)
}

// doze begins a Sleep, and returns once it dozes.
func doze(t *testing.T, w *Wakeup) (slept <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.Sleep() }()
	await(t, w, func() bool { return w.dozer.dozing })
	return ended
}

// await waits until what is guarded by the Wakeup's mu is so.
func await(t *testing.T, w *Wakeup, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		w.mu.Lock()
		is := isSo()
		w.mu.Unlock()
		switch {
		case is:
			return
		case time.Now().After(end):
			t.Fatal("it does not come about")
		}
	}
}

// goesOn waits until a Sleep has left its doze, and sleeps by the runtime's poller.
func goesOn(t *testing.T, w *Wakeup) {
	t.Helper()
	await(t, w, func() bool { return !w.dozer.dozing && w.sleep.armed })
}

// forHours returns a socket with nothing to read, watched by a Wakeup whose dozes end by no alarm.
func forHours(t *testing.T) (w *Wakeup, fd int) {
	t.Helper()
	leaveDozesAlone(t)
	fd = event(t)
	drain(fd)
	w = watch(t, fd)
	w.dozer.longest = time.Hour
	return w, fd
}

// A frame ends a doze, of which the runtime's poller hears nothing, though it has watched the socket
// before.
func TestDoze_IsEndedByAFrame(t *testing.T) {
	w, fd := forHours(t)
	w.AskInMemory(func() bool { return isReadable(fd) })
	w.dozer.isBrief = false
	late := time.AfterFunc(time.Millisecond, func() { fill(fd) })
	defer late.Stop()
	if !sleepSoon(t, w) || !w.sleep.watched {
		t.Fatal("the runtime's poller has not ended it")
	}
	drain(fd)
	w.Awake()
	for range 3 {
		slept := doze(t, w)
		fill(fd)
		if err := <-slept; err != nil {
			t.Fatal(err)
		}
		if w.sleep.watched {
			t.Fatal("the runtime's poller watches the socket")
		}
		drain(fd)
		w.Awake()
	}
}

// What a Sleep ends for, or is to take into account, ends its doze.
func TestDoze_IsRoused(t *testing.T) {
	for name, c := range map[string]struct {
		by   func(w *Wakeup)
		over bool // the Sleep, too
		err  error
	}{
		"Interrupt":              {by: (*Wakeup).Interrupt, over: true},
		"Close":                  {by: (*Wakeup).Close, over: true, err: transport.ErrClosed},
		"Mask":                   {by: func(w *Wakeup) { w.Mask(true) }},
		"Kick":                   {by: (*Wakeup).Kick},
		"Watch":                  {by: func(w *Wakeup) { _ = w.Watch(event(t)) }, over: true},
		"Unwatch":                {by: func(w *Wakeup) { w.Unwatch(-1) }},
		"Kick, frames were left": {by: func(w *Wakeup) { w.AskLeft(func() bool { return true }); w.Kick() }, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := forHours(t)
			slept := doze(t, w)
			c.by(w)
			if !c.over {
				await(t, w, func() bool { return !w.dozer.dozing })
				w.Interrupt()
			}
			select {
			case err := <-slept:
				if !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
			case <-time.After(patience):
				t.Error("it sleeps on")
			}
			if name == "Close" && w.dozer.alarm != -1 {
				t.Error("its timer is open still")
			}
		})
	}
}

// What has roused one doze does not end the next.
func TestDoze_IsRousedOnce(t *testing.T) {
	w, fd := forHours(t)
	slept := doze(t, w)
	w.Interrupt()
	if err := <-slept; err != nil {
		t.Fatal(err)
	}
	w.Awake()
	slept = doze(t, w)
	fill(fd)
	if err := <-slept; err != nil || w.sleep.watched {
		t.Errorf("%v, and it has gone on: %v", err, w.sleep.watched)
	}
}

// A Sleep that takes longer than a doze may goes on, and the next one has none; nor has the one
// behind it, if that was not brief.
func TestDoze_OfASleepThatIsLong(t *testing.T) {
	w, fd := forHours(t)
	for range 2 {
		w.dozer.longest = time.Millisecond
		ended := make(chan error, 1)
		go func() { ended <- w.Sleep() }()
		goesOn(t, w)
		time.Sleep(time.Millisecond)
		fill(fd)
		if err := <-ended; err != nil || w.dozer.isBrief {
			t.Fatalf("%v, and it was brief: %v", err, w.dozer.isBrief)
		}
		drain(fd)
		w.Awake()
	}
	fill(fd)
	w.dozer.longest = time.Hour // what is shorter than half of it is brief
	if !sleepSoon(t, w) || !w.dozer.isBrief {
		t.Errorf("it was brief: %v", w.dozer.isBrief)
	}
}

// At the end of the time in which dozes begin one Sleep parks, and then they begin anew.
func TestDoze_ParksBetweenWindows(t *testing.T) {
	w, fd := forHours(t)
	brief := func() (parked bool) {
		ended := make(chan error, 1)
		go func() { ended <- w.Sleep() }()
		await(t, w, func() bool { return w.dozer.dozing || w.sleep.armed })
		fill(fd)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		parked = w.sleep.watched
		drain(fd)
		w.Awake()
		w.Mask(true) // out of its set
		w.Mask(false)
		return parked
	}
	for range 3 {
		for range 2 {
			if brief() {
				t.Fatal("it parks within a window")
			}
		}
		w.dozer.until = clock.Now()
		if !brief() {
			t.Fatal("it does not park between two windows")
		}
	}
}

// Where the process has one processor, and others want it, there is no doze.
func TestDoze_LeavesTheProcessorToOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := watch(t, event(t))
	over := make(chan struct{})
	defer close(over)
	begun := make(chan struct{})
	go func() {
		close(begun)
		for {
			select {
			case <-over:
				return
			default:
			}
			for start := clock.Now(); clock.Now().Sub(start) < 2*lentTurn; {
			}
			runtime.Gosched()
		}
	}()
	<-begun
	for range 8 { // at times the runtime lends it to nobody
		if !w.dozer.mayDoze(clock.Now()) {
			return
		}
	}
	t.Error("it may doze each time")
}

// A Sleep that is not to wait for a frame alone, or might not, has no doze.
func TestDoze_ThatDoesNotBegin(t *testing.T) {
	for name, have := range map[string]func(w *Wakeup){
		"masked":         func(w *Wakeup) { w.Mask(true) },
		"interrupted":    func(w *Wakeup) { w.Interrupt() },
		"frames left":    func(w *Wakeup) { w.AskLeft(func() bool { return true }) },
		"closed":         func(w *Wakeup) { w.closed = true },
		"too many":       func(w *Wakeup) { w.fds = make([]int, dozeSockets+1) },
		"unknown poller": func(*Wakeup) { runtimePoller.fd = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := forHours(t)
			have(w)
			var fds [2 + dozeSockets]unix.PollFd
			if n, came := w.beginDoze(clock.Now(), &fds); n != 0 || came || w.dozer.dozing {
				t.Errorf("it watches %d descriptors, and has a frame: %v", n, came)
			}
		})
	}
}

// A doze has a frame only where a socket has one, and no error, and frames are to end waits.
func TestDoze_ThatHasEnded(t *testing.T) {
	for _, c := range []struct {
		name    string
		poller  int16
		sockets []int16
		pending func() bool
		masked  bool
		came    bool
	}{
		{name: "by nothing of theirs", sockets: []int16{0, 0}},
		{name: "by a frame", sockets: []int16{0, unix.POLLIN}, came: true},
		{name: "by the runtime's poller", poller: unix.POLLIN, sockets: []int16{0}},
		{name: "by both", poller: unix.POLLIN, sockets: []int16{unix.POLLIN}, came: true},
		{name: "by a frame that is there", sockets: []int16{unix.POLLIN}, pending: func() bool { return true }, came: true},
		{name: "by a frame that is gone", sockets: []int16{unix.POLLIN}, pending: func() bool { return false }},
		{name: "by an error", sockets: []int16{unix.POLLERR}},
		{name: "by a frame and an error", sockets: []int16{unix.POLLIN, unix.POLLIN | unix.POLLERR}},
		{name: "by a frame that is masked", sockets: []int16{unix.POLLIN}, masked: true},
	} {
		w, _ := forHours(t)
		w.pending, w.masked, w.dozer.dozing = c.pending, c.masked, true
		fds := []unix.PollFd{{}, {Revents: c.poller}}
		for _, revents := range c.sockets {
			fds = append(fds, unix.PollFd{Events: unix.POLLIN, Revents: revents})
		}
		if came := w.endDoze(fds); came != c.came || w.dozer.dozing || !w.dozer.isBrief {
			t.Errorf("%s: a frame has come: %v, want %v", c.name, came, c.came)
		}
		if skips := w.dozer.skips > 0; skips != (c.poller != 0) {
			t.Errorf("%s: the next ones have no doze: %v", c.name, skips)
		}
	}
}

// What the runtime's poller is to hear of ends a doze: nobody else may listen there. The next ones
// have none.
func TestDoze_LeavesThePollerToOthers(t *testing.T) {
	w, fd := forHours(t)
	slept := doze(t, w)
	fill(runtimePoller.fd)
	goesOn(t, w)
	fill(fd)
	if err := <-slept; err != nil {
		t.Error(err)
	}
	may := 0
	for range pollerSkips {
		if w.dozer.mayDoze(clock.Now()) {
			may++
		}
	}
	if may > 0 || !w.dozer.mayDoze(clock.Now()) {
		t.Errorf("%d of the next %d Sleeps may doze", may, pollerSkips)
	}
}

// A doze has a frame of any of several sockets.
func TestDoze_OfSeveralSockets(t *testing.T) {
	leaveDozesAlone(t)
	fds := []int{event(t), event(t)}
	for _, fd := range fds {
		drain(fd)
	}
	w := watch(t, fds...)
	w.dozer.longest = time.Hour
	for _, fd := range fds {
		slept := doze(t, w)
		fill(fd)
		if err := <-slept; err != nil || w.sleep.watched {
			t.Errorf("%v, and it has gone on: %v", err, w.sleep.watched)
		}
		drain(fd)
		w.Awake()
	}
}

// Who has closed a Wakeup, or has taken a socket out of it, has nobody hold the socket: its port is
// free once it is closed.
func TestDoze_HoldsNoSocket(t *testing.T) {
	for name, leave := range map[string]func(w *Wakeup, fd int){
		"Close":   func(w *Wakeup, _ int) { w.Close() },
		"Unwatch": (*Wakeup).Unwatch,
	} {
		for range 50 {
			t.Run(name, func(t *testing.T) {
				near, far := connected(t)
				defer unix.Close(far)
				at, err := unix.Getsockname(near)
				if err != nil {
					t.Fatal(err)
				}
				w, _ := forHours(t)
				if err := w.Watch(near); err != nil {
					t.Fatal(err)
				}
				slept := doze(t, w)
				leave(w, near)
				if err := unix.Dup3(w.fds[0], near, unix.O_CLOEXEC); err != nil { // closes it
					t.Fatal(err)
				}
				again, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(again)
				if err := unix.Bind(again, at); err != nil {
					t.Error(err)
				}
				w.Interrupt()
				<-slept
			})
		}
	}
}

// The runtime's poller is the set that watches those of a Wakeup.
func TestWatcherOf(t *testing.T) {
	fd := event(t)
	if set := watcherOf(uintptr(fd)); set != -1 {
		t.Errorf("set %d watches what none does", set)
	}
	w := watch(t, fd)
	r, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	conn, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Control(func(pipe uintptr) {
		if set := watcherOf(w.wait.fd, w.sleep.fd, pipe); set != runtimePoller.fd || set < 0 {
			t.Errorf("set %d watches them, want %d", set, runtimePoller.fd)
		}
		if set := watcherOf(pipe, uintptr(fd)); set != -1 {
			t.Errorf("set %d watches what no set does together", set)
		}
	})
}
