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

// soon is how long the suite lets a Wait run which must end by its context's deadline.
const soon = 20 * time.Millisecond

// waitUntilError waits again and again, as Wait may return early, and returns the first error and
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

// waiting starts waitUntilError in a goroutine, which runs when it returns, and hands out the
// result.
func waiting(ctx context.Context, l transport.Link) (ended <-chan error) {
	started, result := make(chan struct{}), make(chan error, 1)
	go func() {
		close(started)
		_, err := waitUntilError(ctx, l)
		result <- err
	}()
	<-started
	for range 10 {
		runtime.Gosched() // most likely it sleeps in Wait after this; it must be right either way
	}
	return result
}

// endOf returns what ended the waiting.
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

// waitArrival: two sides that only Wait and answer never miss a wake-up, wherever the arrival falls
// between the other side's empty Poll and its falling asleep.
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
		got := receive(t, a, 1)
		wantSeeds(t, got, i, 1)
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

// waitLeftOver: Wait asks whether something is there, not whether something came lately.
func waitLeftOver(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, 3)...)
	for i := range uint64(3) {
		wantSomething(t, b)
		wantSomething(t, b) // and asking does not use it up
		wantSeeds(t, receive(t, b, 1), i, 1)
	}
}

func wantSomething(t *testing.T, l transport.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Wait(ctx); err != nil {
		t.Fatalf("Wait with a frame there: %v", err)
	}
}

func waitDeadline(t *testing.T, a, _ transport.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if _, err := waitUntilError(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait past its deadline: %v, want context.DeadlineExceeded", err)
	}
	if _, err := waitUntilError(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait whose deadline passed before it: %v, want context.DeadlineExceeded", err)
	}
}

func waitCancel(t *testing.T, a, b transport.Link) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := waiting(ctx, a)
	cancel()
	if err := endOf(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait after cancel: %v, want context.Canceled", err)
	}
	// The link is none the worse for it.
	send(t, b, numbered(a.MAC(), 1))
	wantSeeds(t, receive(t, a, 1), 1, 1)
}

func waitClose(t *testing.T, a, _ transport.Link) {
	ended := waiting(context.Background(), a)
	mustClose(t, a)
	wantClosed(t, "Wait in progress", endOf(t, ended))
}

func wantClosed(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrClosed) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%s after Close: %v, want ErrClosed, which is net.ErrClosed", call, err)
	}
}
