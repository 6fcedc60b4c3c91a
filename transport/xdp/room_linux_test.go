package xdp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// A wait for room is a short one, and then it is the caller's to try again. The context's end, the
// interface's and the link's are what they are in any wait.
func TestWaitForRoom_Ends(t *testing.T) {
	bed, a, _ := ends(t)
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.waitForRoom(long); err != nil || long.Err() != nil {
		t.Errorf("nothing happens: %v", err)
	}
	past, cancelPast := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelPast()
	if err := a.waitForRoom(past); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline that has passed: %v", err)
	}
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	if err := a.waitForRoom(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that was canceled: %v", err)
	}
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil && long.Err() == nil { // until the kernel has told
		err = a.waitForRoom(long)
	}
	if !errors.Is(err, transport.ErrInterfaceDown) {
		t.Errorf("the interface is down: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.waitForRoom(long); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the link is closed: %v", err)
	}
}
