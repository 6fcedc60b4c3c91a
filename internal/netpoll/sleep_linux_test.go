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
	w, err := NewWakeup(event(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		if !sleepSoon(t, w) {
			t.Fatal("there is something, and it sleeps on")
		}
		w.Awake()
		w.Mask(false)
		w.Mask(false)
	}
}

// Of several sockets, those that have raised nothing end no Wait either, from Sleep to Awake; nor is
// any watched for a Sleep after Awake.
func TestSleep_OfSeveralSockets(t *testing.T) {
	first, second := event(t), event(t)
	drain := func(fd int) { _, _ = unix.Read(fd, make([]byte, 8)) }
	fill := func(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }
	raised := func(s *set) int {
		n, err := unix.EpollWait(int(s.fd), make([]unix.EpollEvent, 2), 0)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	drain(second)
	w, err := NewWakeup(first, second)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
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
}

// A Kick while somebody sleeps ends a Wait behind Awake, and none before.
func TestSleep_PutsOffAKick(t *testing.T) {
	fd := event(t)
	w, err := NewWakeup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !sleepSoon(t, w) {
		t.Fatal("there is something, and it sleeps on")
	}
	_, _ = unix.Read(fd, make([]byte, 8))
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
}
