package afpacket

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/netpoll"
)

// Frames that a Poll leaves end a Wait that has found none before, unless wake-ups are masked: then
// the end of the mask does.
func TestSetPending_EndsAWait(t *testing.T) {
	for name, masked := range map[string]bool{"not masked": false, "masked": true} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe() // in place of a socket to which nothing comes any more
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = r.Close(), w.Close() }()
			conn, err := r.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			looked := make(chan struct{}, 1)
			a := &Attachment{}
			a.poller = netpoll.NewPoller(conn, r.SetReadDeadline, func(uintptr) bool {
				select {
				case looked <- struct{}{}:
				default:
				}
				return false
			})
			MaskPending(a, masked, a.poller.Kick)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- a.Wait(ctx) }()
			<-looked
			SetPending(a, true, a.poller.Kick)
			if masked {
				select {
				case err := <-ended:
					t.Fatalf("Wait has ended while wake-ups are masked: %v", err)
				case <-time.After(10 * time.Millisecond):
				}
				MaskPending(a, false, a.poller.Kick)
			}
			if err := <-ended; err != nil {
				t.Errorf("Wait: %v", err)
			}
			SetPending(a, false, a.poller.Kick)
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait with nothing pending: %v", err)
			}
		})
	}
}
