package linktest

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// shortly is the deadline of a Wait that only its deadline may end.
const shortly = 20 * time.Millisecond

// waitUntilError waits again and again, as Wait may return early. It returns the first error and
// how often Wait returned without one.
func waitUntilError(ctx context.Context, l transport.Link) (early int, err error) {
	for start := time.Now(); time.Since(start) < patience; early++ {
		if err = l.Wait(ctx); err != nil {
			return early, err
		}
		runtime.Gosched()
	}
	return early, errors.New("nothing ended the wait")
}

// startWait calls wait in a goroutine and returns where its error comes. Most likely the goroutine
// is asleep in Wait by then; the tests hold if it is not.
func startWait(wait func() error) (ended <-chan error) {
	started, result := make(chan struct{}), make(chan error, 1)
	go func() {
		close(started)
		result <- wait()
	}()
	<-started
	for range 10 {
		runtime.Gosched()
	}
	return result
}

// endOf returns the error that ended a wait.
func endOf(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatalf("Wait did not return within %v", patience)
		return nil
	}
}

// waitArrival: two sides that only wait and answer miss no wake-up, wherever a frame arrives
// between the other side's empty Poll and its sleep.
func waitArrival(t *testing.T, a, b transport.Link) {
	const rounds = 300
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := echo(b, a.MAC(), rounds); err != nil {
			t.Errorf("the answering side: %v", err)
		}
	}()
	for i := range uint64(rounds) {
		send(t, a, numbered(b.MAC(), i))
		wantSeeds(t, receive(t, a, 1), i, 1)
	}
	<-done
}

// echo answers so many frames with their own number.
func echo(l transport.Link, to transport.MAC, rounds int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	buf := make([]transport.Frame, 1)
	for answered := 0; answered < rounds; {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		n, err := l.Poll(buf)
		if err != nil {
			return err
		}
		if n == 0 || buf[0].EtherType != transport.EtherTypeDefault {
			continue
		}
		if _, err := l.Send([]transport.Frame{numbered(to, seedOf(buf[0].Payload))}); err != nil {
			return err
		}
		answered++
	}
	return nil
}

func waitEarlyArrival(t *testing.T, a, b transport.Link) {
	send(t, a, numbered(b.MAC(), 1))
	wantSomething(t, b)
	wantSeeds(t, receive(t, b, 1), 1, 1)
}

// waitLeftOver: Wait returns if there is something to poll, not only if something arrived since;
// and waiting does not use it up.
func waitLeftOver(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, 3)...)
	for i := range uint64(3) {
		wantSomething(t, b)
		wantSomething(t, b)
		wantSeeds(t, receive(t, b, 1), i, 1)
	}
}

// wantSomething fails unless a Wait returns.
func wantSomething(t *testing.T, l transport.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Wait(ctx); err != nil {
		t.Fatalf("Wait with a frame there: %v", err)
	}
}

// waitDeadline waits twice: until the deadline, and after it.
func waitDeadline(t *testing.T, a, _ transport.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), shortly)
	defer cancel()
	for _, when := range []string{"up to", "after"} {
		if _, err := waitUntilError(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait %s its deadline: %v, want context.DeadlineExceeded", when, err)
		}
	}
}

func waitCancel(t *testing.T, a, b transport.Link) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := startWait(func() error { _, err := waitUntilError(ctx, a); return err })
	cancel()
	if err := endOf(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait after cancel: %v, want context.Canceled", err)
	}
	delivers(t, b, a, numbered(a.MAC(), 1)) // the link works on
}

func waitClose(t *testing.T, a, _ transport.Link) {
	ended := startWait(func() error { _, err := waitUntilError(context.Background(), a); return err })
	mustClose(t, a)
	wantClosed(t, "Wait in progress", endOf(t, ended))
}

func wantClosed(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrClosed) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%s after Close: %v, want ErrClosed, which is net.ErrClosed", call, err)
	}
}
