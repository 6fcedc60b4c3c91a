package engine

import (
	"testing"
	"time"
)

// A message is known by its sender and label, both of them whole.
func TestKey_OfEachSenderAndLabel(t *testing.T) {
	seen := map[uint64]bool{}
	for from := range 300 {
		for label := range 256 {
			k := key(from, uint8(label))
			if seen[k] || k&(1<<keyIndexBits-1) != 0 {
				t.Fatalf("the key of sender %d, label %d is another one's", from, label)
			}
			seen[k] = true
		}
	}
}

// A nack for a message that the schedule does not have is counted, and not answered.
func TestNack_ForNoMessage(t *testing.T) {
	a := newAlone(t, "tree:2", 2, 4)
	a.arrives(0)
	a.notify(3, 1, 0)
	a.want(a.hears(3, a.from(3, Nack, 1, 9)), "")
	a.want(a.hears(1, a.from(1, Nack, 1, 1)), "")
	if a.stats.Unexpected != 2 {
		t.Errorf("%d were unexpected, want 2", a.stats.Unexpected)
	}
}

// Statistics of several engines add up; the longest wait is the longest of all.
func TestStats_AddUp(t *testing.T) {
	var sum Stats
	for _, e := range []Stats{
		{Barriers: 1, Wait: 2, MaxWait: 9, Notifies: 4, Nacks: 5, Resent: 6, Late: 7, Duplicates: 8, Unexpected: 9},
		{Barriers: 10, Wait: 20, MaxWait: 3, Notifies: 40, Nacks: 50, Resent: 60, Late: 70, Duplicates: 80, Unexpected: 90},
	} {
		(&Engine{stats: e}).AddStats(&sum)
	}
	want := Stats{Barriers: 11, Wait: 22, MaxWait: 9, Notifies: 44, Nacks: 55, Resent: 66, Late: 77, Duplicates: 88, Unexpected: 99}
	if sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}

// A message two generations ahead is none of the next one: its sender has left one that this member
// has not entered.
func TestNotify_TwoGenerationsAhead(t *testing.T) {
	for ahead, want := range map[uint32]string{1: "", 2: "1 report (restarted: [0])"} {
		a := newAlone(t, "star", 0, 3)
		a.want(a.notify(1, ahead, 0), want)
	}
}

// What was lost says nothing about how long a step takes: the next loss is noticed as soon.
func TestPatience_AfterLosses(t *testing.T) {
	a := newAlone(t, "concurrent", 1, 2)
	for g := range uint32(20) {
		a.arrives(0)
		a.passes(80 * time.Millisecond) // the message was lost
		a.notify(0, g+1, 1)
		a.is(Idle, g+1)
	}
	a.arrives(0)
	a.want(a.passes(firstNack), "0 nack 1 gen=21")
}
