package mcd

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport/fabric"
)

func openSpinning(t *testing.T) *Endpoint {
	t.Helper()
	return openSpinningBy(t, Config{Spin: time.Hour})
}

func openSpinningBy(t *testing.T, cfg Config) *Endpoint {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	links, err := f.AddSwitch("").Links(1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(cfg, links[0])
	if err != nil {
		t.Fatal(err)
	}
	e.spinning.usual.Store(int64(time.Hour)) // on a crowded machine, too
	return e
}

// masked reports whether wake-ups are masked.
func masked(e *Endpoint) bool {
	for !e.tryLockPoll() {
		runtime.Gosched()
	}
	defer e.unlockPoll()
	return e.wakeupsOff
}

// Where as many goroutines spin as may, the next one sleeps at once, and the last spinner leaves the
// link to the goroutine that wakes the sleeper.
func TestSpinnersAreLimited(t *testing.T) {
	for procs, most := range map[int32]int{1: 1, 2: 2, maxSpinners: maxSpinners, 100: maxSpinners} {
		t.Run(fmt.Sprintf("%d processors", procs), func(t *testing.T) { limitSpinners(t, procs, most) })
	}
}

func limitSpinners(t *testing.T, procs int32, most int) {
	e := openSpinning(t)
	defer func() { _ = e.Close() }()
	e.spinning.procs.Store(procs)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var waits [maxSpinners + 1]Completion
	ended := make(chan error, len(waits))
	wait := func(k int, until func() bool) {
		go func() { ended <- e.Await(ctx, &waits[k]) }()
		for !until() && ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	for k := range most {
		wait(k, func() bool { return e.spinners.Load() == int32(k+1) })
	}
	last := &waits[most]
	wait(most, last.asleep.Load)
	for k := range most {
		waits[k].Complete(nil)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if masked(e) {
		t.Error("wake-ups are masked, somebody sleeps, and nobody polls")
	}
	if n := e.excess.Load(); n != 1 {
		t.Errorf("%d sleep in excess, want 1", n)
	}
	last.Complete(nil)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e.spinners.Load() != 0 || e.excess.Load() != 0 {
		t.Errorf("%d spin and %d sleep in excess after all waits", e.spinners.Load(), e.excess.Load())
	}
}

// A wait that spun may leave wake-ups masked, as it will be back soon. One that sleeps at once, as
// spinning does not pay, unmasks them first: it would be deaf for unmaskAfter.
func TestSleeperUnmasksWakeups(t *testing.T) {
	e := openSpinning(t)
	defer func() { _ = e.Close() }()
	for !e.tryLockPoll() {
		runtime.Gosched()
	}
	e.wakeupsOff = true // without a word to the unmaskLoop, which would do it later
	for _, m := range e.maskers {
		m.MaskWakeups(true)
	}
	e.unlockPoll()
	e.spinning.avoids.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var c Completion
	ended := make(chan error, 1)
	go func() { ended <- e.Await(ctx, &c) }()
	for !c.asleep.Load() && ctx.Err() == nil {
		runtime.Gosched()
	}
	if masked(e) {
		t.Error("wake-ups are masked, and the only wait sleeps")
	}
	c.Complete(nil)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A wait that spins for long postpones the unmaskLoop's turn. Where other processes have the cores,
// that one may not come to set its timer within the first of them.
func TestSpin_PostponesUnmask(t *testing.T) {
	e := openSpinning(t)
	defer func() { _ = e.Close() }()
	var never Completion
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := e.Await(ctx, &never)
		cancel()
		if err == nil {
			t.Fatal("ended without an error")
		}
		for !e.tryLockPoll() {
			runtime.Gosched()
		}
		postponed := e.postponed
		e.unlockPoll()
		if !postponed.IsZero() {
			return
		}
	}
	t.Error("the unmaskLoop was awake all the time")
}

// All spinners may leave while one more is counted among them and about to sleep: then it is that
// one that leaves the link to its own goroutine.
func TestSpinnersLeaveBeforeOneSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time stands still, and so does the unmaskLoop
		e := openSpinning(t)
		defer func() { _ = e.Close() }()
		if !e.tryLockPoll() {
			t.Fatal("somebody polls")
		}
		e.maskWakeups() // as a leader with its own message leaves them
		e.unlockPoll()
		var c Completion
		e.spinners.Store(1)
		go e.sleepInExcess(t.Context(), &c)
		synctest.Wait()
		if !c.asleep.Load() || e.spinners.Load() != 0 || masked(e) {
			t.Errorf("asleep %t, %d spin, masked %t", c.asleep.Load(), e.spinners.Load(), masked(e))
		}
		c.Complete(nil)
	})
}

// A wait that spins and keeps its core is taken into account.
func TestSpin_WhatItTookIsNoted(t *testing.T) {
	e := openSpinning(t)
	defer func() { _ = e.Close() }()
	var c Completion
	go func() {
		for e.spinners.Load() == 0 {
			runtime.Gosched()
		}
		c.Complete(nil)
	}()
	if err := e.Await(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if usual := time.Duration(e.spinning.usual.Load()); usual >= time.Hour {
		t.Errorf("a wait that keeps its core takes %v as before", usual)
	}
}

// However long goroutines spin, keys are replaced meanwhile, and contact is begun: the leader gives
// the poll lock to those who claim it.
func TestSpin_LeavesTheLockToThoseWhoClaimIt(t *testing.T) {
	e := openSpinningBy(t, Config{Spin: time.Hour, Keys: keyring.New()})
	defer func() { _ = e.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	over := make(chan struct{}, 2)
	e.spinning.procs.Store(int32(cap(over))) // on a machine with one, too
	for range cap(over) {
		go func() {
			var never Completion
			_ = e.Await(ctx, &never)
			over <- struct{}{}
		}()
	}
	for e.spinners.Load() < int32(cap(over)) || !isHeld(e.lock.Load()) {
		runtime.Gosched()
	}
	for range 100 {
		if err := e.SetKeys(keyring.New()); err != nil {
			t.Fatal(err)
		}
		e.auth.wakeLoop()
	}
	for len(e.auth.kick) > 0 && ctx.Err() == nil {
		runtime.Gosched()
	}
	if ctx.Err() != nil {
		t.Error("they waited until nobody spun")
	}
	cancel()
	for range cap(over) {
		<-over
	}
}
