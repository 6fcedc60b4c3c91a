package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

func TestNow_NeverRunsBackAndIsNeverZero(t *testing.T) {
	last := Now()
	if last.IsZero() {
		t.Error("Now returned the zero Time")
	}
	for range 10000 {
		now := Now()
		if now.Before(last) {
			t.Fatalf("%v came after %v", now, last)
		}
		last = now
	}
}

func TestNow_IsTheBubblesInSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		if !start.After(monotime.Time{}) {
			t.Errorf("the bubble starts at %v, want an instant after the zero Time", start)
		}
		time.Sleep(time.Hour) // virtual
		if d := Now().Sub(start); d != time.Hour {
			t.Errorf("an hour of the bubble took %v", d)
		}
	})
}

func TestNow_DoesNotAllocate(t *testing.T) {
	var at monotime.Time
	if n := testing.AllocsPerRun(100, func() { at = Now() }); n != 0 {
		t.Errorf("Now: %v allocs, want 0", n)
	}
	_ = at
}

func BenchmarkNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Now()
	}
}

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		time.Now()
	}
}
