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

// While wake-ups are masked a full NIC ends no wait; the mask's end ends one.
func TestWait_NICIsFullAndWakeupsAreMasked(t *testing.T) {
	_, a, b := ends(t)
	nic := full(t)
	replace := func(fd int) (old int) {
		a.sender.mu.Lock()
		defer a.sender.mu.Unlock()
		old, a.sender.socket.FD = a.sender.socket.FD, fd
		return old
	}
	a.MaskWakeups(true)
	defer replace(replace(nic))
	if _, err := a.Send(numbered(b, 1)); err != nil {
		t.Fatal(err)
	}
	wait := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return a.Wait(ctx)
	}
	_ = wait(20 * time.Millisecond) // Send has ended the one that was in progress, or this one
	if err := wait(20 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("masked: %v, want that nothing ends it", err)
	}
	a.MaskWakeups(false) // with which the kernel itself may try again
	if err := wait(20 * time.Second); err != nil {
		t.Errorf("unmasked: %v", err)
	}
}

// A driver's mode is that of the interface that was asked for, where the kernel tells at all.
func TestDriverMode_OfAnInterface(t *testing.T) {
	bed, a, _ := ends(t)
	err := bed.Node(0).Do(func() error {
		known := driverMode(a.door.nic.index)
		if known != ModeAuto && known != Native { // veth runs programs, and knows no zero-copy
			t.Errorf("veth: %v", known)
		}
		if none := driverMode(1 << 30); none != ModeAuto {
			t.Errorf("no interface: %v", none)
		}
		best, err := Probe("eth0")
		if best != known {
			t.Errorf("Probe says %v, want %v; %v", best, known, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
