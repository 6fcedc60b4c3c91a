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
