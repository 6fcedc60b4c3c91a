package control_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Frames to groups and to all go by the VID that reaches most peers, and by one that its pair uses
// though it has not held yet; not by one that answers, and that its pair does not use. While nobody
// is reached they stay where they are.
func TestFailoverDefault(t *testing.T) {
	e := newEnd(t, low, high)
	expect := func(when string, prefer, inUse, want transport.VID) {
		t.Helper()
		if got := e.f.Default(prefer, inUse); got != want {
			t.Errorf("%s: VID %d, want %d of %d, which is preferred, and %d, which is in use", when, got, want, prefer, inUse)
		}
	}
	e.run(time.Second)
	expect("well", 10, 10, 10)
	expect("well, and moved before", 10, 30, 10)
	e.answer[10] = false
	e.run(3 * time.Second)
	expect("10 is dead", 10, 10, 20)
	expect("10 is dead, and 30 in use", 10, 30, 30)
	expect("10 is dead, and not preferred", 30, 10, 30)
	e.answer[20], e.answer[30] = false, false
	e.run(3 * time.Second)
	expect("all are dead", 10, 10, 10)
	expect("all are dead, and 20 in use", 10, 20, 20)
	e.answer[30] = true
	e.run(time.Second)
	if vid, _ := e.f.VID(high); vid != 30 {
		t.Fatalf("the pair uses VID %d, want 30, the only one that answers", vid)
	}
	expect("30 answers, and the pair uses it", 10, 10, 30)
	e.answer[10] = true
	e.run(time.Second)
	expect("10 answers, and has not held", 10, 30, 30)
	e.run(time.Minute)
	expect("10 has held", 10, 30, 10)
	e.f.RemovePeer(high)
	expect("nobody is there", 10, 20, 10)
}
