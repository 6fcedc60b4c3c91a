package linktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// ifSleeps runs a test on links that have a Sleep; the others promise nothing.
func ifSleeps(
	test func(t *testing.T, a, b transport.Link, s transport.Sleeper),
) func(t *testing.T, a, b transport.Link) {
	return func(t *testing.T, a, b transport.Link) {
		if s, ok := b.(transport.Sleeper); ok {
			test(t, a, b, s)
		}
	}
}

// sleepWakes: a frame ends a Sleep, wherever it arrives between an empty Poll and the Sleep, and no
// Wait until Awake.
func sleepWakes(t *testing.T, a, b transport.Link, s transport.Sleeper) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.Interrupt()
	if err := s.Sleep(); err != nil { // from here to Awake frames end no Wait
		t.Fatal(err)
	}
	early := 0
	waits := startWait(func() (err error) { early, err = waitUntilError(ctx, b); return err })
	for i := range uint64(200) {
		slept := startWait(s.Sleep)
		send(t, a, numbered(b.MAC(), i))
		for got := 0; got == 0; { // it may return early
			if err := endOf(t, slept); err != nil {
				t.Fatalf("Sleep: %v", err)
			}
			if got = poll(t, b, i); got == 0 {
				slept = startWait(s.Sleep)
			}
		}
	}
	select {
	case err := <-waits:
		t.Fatalf("Wait meanwhile: %v", err)
	default:
	}
	cancel()
	if err := endOf(t, waits); !errors.Is(err, context.Canceled) || early > earlyReturns {
		t.Errorf("Wait has returned %d times, then %v: want none before its context ended", early, err)
	}
	s.Awake()
	waitDeadline(t, b, a)
}

// poll takes the frame of that number, if it has come.
func poll(t *testing.T, l transport.Link, want uint64) int {
	t.Helper()
	var frames [2]transport.Frame
	n, err := l.Poll(frames[:])
	if err != nil || n > 1 {
		t.Fatalf("Poll: %d frames, %v", n, err)
	}
	if n == 1 {
		wantSeeds(t, frames[:1], want, 1)
		_, _ = l.Poll(frames[:]) // gives its memory back
	}
	return n
}

// sleepAwake: what came during a Sleep, and was not taken, ends a Wait once it is over.
func sleepAwake(t *testing.T, a, b transport.Link, s transport.Sleeper) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range uint64(20) {
		waits := startWait(func() error { return b.Wait(ctx) })
		slept := startWait(s.Sleep)
		send(t, a, numbered(b.MAC(), i))
		if err := endOf(t, slept); err != nil {
			t.Fatalf("Sleep: %v", err)
		}
		s.Awake()
		if err := endOf(t, waits); err != nil {
			t.Fatalf("Wait, with a frame there: %v", err)
		}
		wantSeeds(t, receive(t, b, 1), i, 1)
	}
}

// sleepInterrupt: Interrupt ends a Sleep, or else the next one, and only that.
func sleepInterrupt(t *testing.T, a, b transport.Link, s transport.Sleeper) {
	for range 20 {
		slept := startWait(s.Sleep)
		s.Interrupt()
		if err := endOf(t, slept); err != nil {
			t.Fatalf("Sleep, interrupted: %v", err)
		}
	}
	s.Awake()
	s.Interrupt()
	if err := endOf(t, startWait(s.Sleep)); err != nil {
		t.Fatalf("Sleep, interrupted before: %v", err)
	}
	slept := startWait(s.Sleep)
	select {
	case err := <-slept:
		t.Errorf("Sleep: %v, where nothing ends it", err)
	case <-time.After(shortly):
	}
	send(t, a, numbered(b.MAC(), 0))
	if err := endOf(t, slept); err != nil {
		t.Fatalf("Sleep, with a frame there: %v", err)
	}
	s.Awake()
	wantSeeds(t, receive(t, b, 1), 0, 1)
	waitDeadline(t, b, a)
}

// sleepMasked: masked, frames end no Sleep; unmasked, they do, those too that came before.
func sleepMasked(t *testing.T, a, b transport.Link, s transport.Sleeper) {
	m, ok := transport.As[transport.WakeupMasker](b)
	if !ok {
		return
	}
	for i := range uint64(20) {
		slept := startWait(s.Sleep)
		m.MaskWakeups(true)
		send(t, a, numbered(b.MAC(), i))
		m.MaskWakeups(false)
		if err := endOf(t, slept); err != nil {
			t.Fatalf("Sleep: %v", err)
		}
		wantSeeds(t, receive(t, b, 1), i, 1)
		if i%2 == 0 {
			s.Awake()
		}
	}
	s.Awake()
	m.MaskWakeups(true)
	slept := startWait(s.Sleep)
	send(t, a, numbered(b.MAC(), 20))
	select {
	case err := <-slept:
		t.Errorf("Sleep, masked: %v, where nothing ends it", err)
	case <-time.After(shortly):
	}
	s.Interrupt()
	if err := endOf(t, slept); err != nil {
		t.Fatalf("Sleep, interrupted: %v", err)
	}
	s.Awake()
	m.MaskWakeups(false)
	wantSeeds(t, receive(t, b, 1), 20, 1)
	waitDeadline(t, b, a)
}

func sleepClose(t *testing.T, _, b transport.Link, s transport.Sleeper) {
	slept := startWait(s.Sleep)
	mustClose(t, b)
	wantClosed(t, "Sleep", endOf(t, slept))
	s.Awake()
	wantClosed(t, "Sleep", s.Sleep())
	s.Interrupt()
}
