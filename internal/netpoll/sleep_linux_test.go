package netpoll

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what is to happen at once.
const patience = 5 * time.Second

// patiently returns a Wait that ends in any case.
func patiently(t *testing.T, w *Wakeup) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return w.Poller().Wait(ctx)
	}
}

// sleepSoon is a Sleep that ends in any case, and reports whether it did so by itself.
func sleepSoon(t *testing.T, w *Wakeup) bool {
	t.Helper()
	late := time.AfterFunc(patience, w.Interrupt)
	if err := w.Sleep(); err != nil {
		t.Errorf("Sleep: %v", err)
	}
	return late.Stop()
}

// Wake-ups that are unmasked twice wake who sleeps all the same.
func TestSleep_UnmaskedTwice(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		w := watching(event(t))
		for range 3 {
			if !sleepSoon(t, w) {
				t.Fatal("there is something, and it sleeps on")
			}
			w.Awake()
			w.Mask(false)
			w.Mask(false)
		}
	})
}

// Of several sockets, those that have raised nothing end no Wait either, from Sleep to Awake; nor is
// any watched for a Sleep after Awake.
func TestSleep_OfSeveralSockets(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		first, second := event(t), event(t)
		raised := func(s *set) int {
			n, err := unix.EpollWait(int(s.fd), make([]unix.EpollEvent, 2), 0)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		drain(second)
		w := watching(first, second)
		if err := patiently(t, w)(); err != nil { // by the first
			t.Fatal(err)
		}
		if !sleepSoon(t, w) {
			t.Fatal("there is something, and it sleeps on")
		}
		fill(second)
		if n := raised(&w.wait); n != 0 {
			t.Errorf("%d sockets would end a Wait while another one sleeps", n)
		}
		drain(first)
		drain(second)
		w.Awake()
		fill(first)
		fill(second)
		if n := raised(&w.sleep); n != 0 {
			t.Errorf("%d sockets would end a Sleep that nobody is in", n)
		}
		if err := patiently(t, w)(); err != nil {
			t.Errorf("Wait behind Awake: %v", err)
		}
	})
}

// A Kick while somebody sleeps ends a Wait behind Awake, and none before.
func TestSleep_PutsOffAKick(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		fd := event(t)
		w := watching(fd)
		if !sleepSoon(t, w) {
			t.Fatal("there is something, and it sleeps on")
		}
		drain(fd)
		w.Kick()
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.Poller().Wait(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait meanwhile: %v", err)
		}
		w.Awake()
		if err := patiently(t, w)(); err != nil {
			t.Errorf("Wait behind Awake: %v", err)
		}
		w.Kick()
		if err := patiently(t, w)(); err != nil {
			t.Errorf("Wait behind a Kick: %v", err)
		}
	})
}

// Where the link tells by itself whether there is a frame, each one that comes ends a Sleep, one that
// came while nobody slept, too; and none raises an event once a Wait has taken over.
func TestSleep_AskedInMemory(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		fd := event(t)
		drain(fd)
		w := watching(fd)
		asked := make(chan struct{}, 16)
		w.AskInMemory(func() bool {
			asked <- struct{}{}
			return isReadable(fd)
		})
		for range 3 {
			go func() {
				<-asked // it has found nothing, and sleeps or is about to
				fill(fd)
			}()
			if !sleepSoon(t, w) {
				t.Fatal("there is something, and it sleeps on")
			}
			drain(fd)
			w.Awake()
			fill(fd) // while nobody sleeps
			if !sleepSoon(t, w) {
				t.Fatal("something came before, and it sleeps on")
			}
			drain(fd)
			w.Awake()
			for len(asked) > 0 {
				<-asked
			}
		}
		fill(fd)
		if err := patiently(t, w)(); err != nil {
			t.Errorf("Wait behind Awake: %v", err)
		}
		if w.sleep.watched {
			t.Error("frames raise events of a Sleep that nobody is in, though a Wait has them")
		}
	})
}

// Nothing that comes between the look at the link and the sleep is missed by a Wait.
func TestWait_AskedInMemory(t *testing.T) {
	fd := event(t)
	w := watch(t, fd)
	looks := 0
	w.AskInMemory(func() bool {
		looks++
		return false // it comes just behind the look
	})
	for range 3 {
		if err := patiently(t, w)(); err != nil {
			t.Fatalf("Wait: %v", err)
		}
	}
	if looks == 0 {
		t.Error("the link was not asked")
	}
}

// A socket's error ends the Sleep, though the Wait has it.
func TestSleep_AskedInMemoryEndsByAnError(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		fd := refusedSocket(t)
		w := watching(fd)
		asked := make(chan struct{}, 16)
		w.AskInMemory(func() bool {
			asked <- struct{}{}
			return false
		})
		slept, waited := make(chan bool, 1), make(chan error, 1)
		go func() { slept <- sleepSoon(t, w) }()
		<-asked // it sleeps, or is about to: a Wait before that would have the error alone
		go func() { waited <- patiently(t, w)() }()
		bothFail(t, slept, waited)
	})
}

// So does one behind an event that the Wait has had: the kernel tells nothing then until it is asked
// anew.
func TestSleep_AskedInMemoryEndsByALaterError(t *testing.T) {
	bothWays(t, func(t *testing.T, watching watching) {
		near, far := connected(t)
		w := watching(near)
		asked := make(chan struct{}, 16)
		w.AskInMemory(func() bool {
			asked <- struct{}{}
			return isReadable(near)
		})
		_, _ = unix.Write(far, []byte("x"))
		if err := patiently(t, w)(); err != nil {
			t.Fatal(err)
		}
		_, _ = unix.Read(near, make([]byte, 1))
		for len(asked) > 0 {
			<-asked
		}
		slept, waited := make(chan bool, 1), make(chan error, 1)
		go func() { slept <- sleepSoon(t, w) }()
		<-asked // it sleeps, or is about to
		looked, ready := make(chan struct{}, 16), w.wait.poller.ready
		w.wait.poller.ready = func(fd uintptr) bool {
			defer func() { looked <- struct{}{} }()
			return ready(fd)
		}
		go func() { waited <- patiently(t, w)() }()
		<-looked
		_ = unix.Close(far)
		_, _ = unix.Write(near, []byte("?")) // which nobody takes
		bothFail(t, slept, waited)
	})
}

// bothFail awaits the ends of a Sleep and of a Wait, by the socket's error.
func bothFail(t *testing.T, slept <-chan bool, waited <-chan error) {
	t.Helper()
	if !<-slept {
		t.Error("the socket has failed, and it sleeps on")
	}
	if err := <-waited; !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("Wait: %v, want ECONNREFUSED", err)
	}
}

// watching makes a Wakeup for as long as the test.
type watching func(fds ...int) *Wakeup

// bothWays has Sleeps begin with a doze that no alarm ends, and with none.
func bothWays(t *testing.T, test func(t *testing.T, watching watching)) {
	for name, longest := range map[string]time.Duration{"dozing": time.Hour, "parked": 0} {
		t.Run(name, func(t *testing.T) {
			leaveDozesAlone(t)
			test(t, func(fds ...int) *Wakeup {
				w := watch(t, fds...)
				w.dozer.longest, w.dozer.isBrief = longest, longest > 0
				return w
			})
		})
	}
}

func watch(t *testing.T, fds ...int) *Wakeup {
	t.Helper()
	w, err := NewWakeup(fds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func isReadable(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n == 1 && err == nil
}

// connected returns two UDP sockets that send to each other.
func connected(t *testing.T) (near, far int) {
	t.Helper()
	var fds [2]int
	var at [2]unix.Sockaddr
	for i := range fds {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			at[i], err = unix.Getsockname(fd)
		}
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	if err := errors.Join(unix.Connect(fds[0], at[1]), unix.Connect(fds[1], at[0])); err != nil {
		t.Fatal(err)
	}
	return fds[0], fds[1]
}
