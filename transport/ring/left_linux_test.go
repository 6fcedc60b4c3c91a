package ring

import (
	"context"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/testbed"
)

// What a Poll leaves of a train while somebody sleeps in the link ends the Sleep, and no Wait before
// Awake: who sleeps polls.
func TestSleep_SeesWhatAPollLeaves(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	_, l := testbed.OpenPair(t, bed, func(name string) (*Link, error) { return Open(name, Config{}) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, l.Interrupt)()
	l.Interrupt()
	if err := l.Sleep(); err != nil { // until Awake somebody sleeps
		t.Fatal(err)
	}
	slept, waited := make(chan error, 1), testbed.Waiting(ctx, l.Wait)
	go func() { slept <- l.Sleep() }()
	afpacket.SetPending(&l.attachment, true, l.socket.wakeup.Kick) // as a Poll does
	if err := <-slept; err != nil || ctx.Err() != nil {
		t.Errorf("Sleep, with frames left: %v, %v", err, ctx.Err())
	}
	select {
	case err := <-waited:
		t.Fatalf("Wait has ended while somebody sleeps: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	l.Awake()
	if err := <-waited; err != nil {
		t.Errorf("Wait behind Awake: %v", err)
	}
}
