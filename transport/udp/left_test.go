//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// Datagrams that a Poll leaves end a Wait that has looked before, also where their coming did not;
// and where somebody sleeps, that Sleep alone.
func TestWait_SeesWhatAPollLeaves(t *testing.T) {
	a, b := linked(t)
	b.socket.wakeup.Close()
	b.socket.wakeup = silent(t) // in place of one that Poll was quicker than
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := testbed.Waiting(ctx, b.Wait)
	leave(ctx, t, a, b)
	if err := <-ended; err != nil {
		t.Errorf("Wait, with a frame left: %v", err)
	}
}

func TestSleep_SeesWhatAPollLeaves(t *testing.T) {
	a, b := linked(t)
	b.socket.wakeup.Close()
	b.socket.wakeup = silent(t)
	asked := make(chan struct{}, 100)
	b.socket.wakeup.AskLeft(func() bool {
		asked <- struct{}{}
		return b.socket.left.Load()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	slept := make(chan error, 1)
	go func() { slept <- b.Sleep() }()
	<-asked
	ended := testbed.Waiting(ctx, b.Wait)
	leave(ctx, t, a, b)
	select {
	case err := <-slept:
		if err != nil {
			t.Errorf("Sleep, with a frame left: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("it sleeps on, with a frame left")
	}
	if len(ended) > 0 {
		t.Errorf("Wait has ended while another one sleeps: %v", <-ended)
	}
	b.Awake()
	if err := <-ended; err != nil {
		t.Errorf("Wait behind Awake, with a frame left: %v", err)
	}
}

// silent returns a Wakeup that no frame ends a wait of.
func silent(t *testing.T) *netpoll.Wakeup {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	w, err := netpoll.NewWakeup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// leave sends from a to b until a Poll of b's leaves frames.
func leave(ctx context.Context, t *testing.T, a, b *Link) {
	t.Helper()
	in := make([]transport.Frame, 1)
	for !b.socket.pending() && ctx.Err() == nil {
		if n, err := a.Send(plain(b.MAC(), 2, 100)); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := b.Poll(in); err != nil {
			t.Fatal(err)
		}
	}
}
