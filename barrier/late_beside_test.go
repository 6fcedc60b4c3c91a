package barrier_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/transport/fault"
)

// A program that asks for the status all the time takes nothing from the log of a late barrier, and
// is told by itself what all answer.
func TestLate_BesideStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &cluster{cfg: barrier.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		c = c.startWith(t, 3, 1, fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}, 0)
		all := c.groups(t, barrier.GroupConfig{Late: 20 * time.Millisecond})
		ticket := arrive(t, all[0], barrier.Options{})
		for begun := time.Now(); time.Since(begun) < 100*time.Millisecond; {
			got, err := all[0].Status(limit(t), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got[1].Presence != barrier.NotEntered || got[2].Presence != barrier.NotEntered {
				t.Fatalf("%v", got)
			}
		}
		arrive(t, all[1], barrier.Options{})
		arrive(t, all[2], barrier.Options{})
		if err := ticket.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for the logger
		if l := log.String(); !strings.Contains(l, `not_entered="[1 2]"`) || !strings.Contains(l, "no_answer=[]") {
			t.Errorf("the log is %q", l)
		}
	})
}

// However long a silent member is waited for, a lost frame costs a tenth of a second at most, and a
// barrier is told to be late soon after it is.
func TestLongPeerTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c := &cluster{cfg: barrier.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
			c = c.startWith(t, 2, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{PeerTimeout: timeout, Late: 7 * time.Second})
			done := make(chan error, 1)
			go func() { done <- all[0].Barrier(limit(t)) }()
			time.Sleep(7*time.Second + 250*time.Millisecond)
			synctest.Wait()
			if !strings.Contains(log.String(), "barrier is late") {
				t.Errorf("peer timeout %v: the log is %q", timeout, log.String())
			}
			time.Sleep(6 * time.Second)
			c.faults[0][0].Cut(true)
			ticket := arrive(t, all[1], barrier.Options{})
			synctest.Wait()
			c.faults[0][0].Cut(false) // what was sent meanwhile is lost
			lost := time.Now()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if cost := time.Since(lost); cost > 110*time.Millisecond {
				t.Errorf("peer timeout %v: one lost frame cost %v", timeout, cost)
			}
			if err := ticket.Wait(limit(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
