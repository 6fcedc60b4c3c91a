//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/transport"
)

// watched is a context that tells when a Wait begins to wait for it: it has looked for frames by
// then.
type watched struct {
	context.Context
	once   sync.Once
	looked chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.looked) })
	return w.Context.Done()
}

// Datagrams that a Poll leaves end a Wait that has looked before, also where their coming did not.
func TestWait_SeesWhatAPollLeaves(t *testing.T) {
	a, b := linked(t)
	silent, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(silent)
	defer b.socket.wakeup.Close()
	if b.socket.wakeup, err = netpoll.NewWakeup(silent); err != nil { // in place of one that Poll was quicker than
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w := &watched{Context: ctx, looked: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- b.Wait(w) }()
	<-w.looked
	in := make([]transport.Frame, 1)
	for !b.socket.pending() && ctx.Err() == nil {
		if n, err := a.Send(plain(b.MAC(), 2, 100)); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := b.Poll(in); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("Wait, with a frame left: %v", err)
	}
}
