package barrier_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport/fault"
)

// Two goroutines on each node, with a number each: each node is late in the other one, for longer
// than the peer timeout.
func TestCrosswise_TwoGoroutinesTwoNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
		var running sync.WaitGroup
		for k, g := range all {
			for number := range uint8(2) {
				running.Go(func() {
					if int(number) != k {
						time.Sleep(10 * time.Second) // computes
					}
					if err := g.BarrierWith(limit(t), barrier.Options{Number: number}); err != nil {
						t.Errorf("node %d, number %d: %v", k, number, err)
					}
				})
			}
		}
		running.Wait()
	})
}

// The same with a group for each of two libraries.
func TestCrosswise_TwoLibraries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		var running sync.WaitGroup
		for lib := range 2 {
			for k, g := range c.groups(t, barrier.GroupConfig{ID: uint32(lib)}) {
				running.Go(func() {
					if lib != k {
						time.Sleep(10 * time.Second) // computes
					}
					if err := g.Barrier(limit(t)); err != nil {
						t.Errorf("node %d, library %d: %v", k, lib, err)
					}
				})
			}
		}
		running.Wait()
	})
}

// Members that contradict each other, by numbers or masks, wait until their contexts end. The
// errors name the nodes awaited, and the log those that have not entered.
func TestCrosswise_IsReportedWithNames(t *testing.T) {
	for name, options := range map[string][2]barrier.Options{
		"numbers": {{Number: 1}, {Number: 2}},
		"masks":   {{Members: barrier.MaskOf(0, 1)}, {}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			var all []*barrier.Group
			for _, e := range eps {
				s := service(t, e, barrier.Config{Logger: logger})
				defer s.Close()
				all = append(all, group(t, s, barrier.GroupConfig{Algorithm: schedule.Concurrent(), Late: time.Second}))
			}
			var running sync.WaitGroup
			for k := range 2 {
				running.Go(func() {
					err := all[k].BarrierWith(shorter(t, limit(t), 10*time.Second), options[k])
					if !errors.Is(err, barrier.ErrIncomplete) {
						t.Errorf("%s, node %d: %v", name, k, err)
					}
					if k == 0 && !strings.Contains(err.Error(), "waiting for node") {
						t.Errorf("%s: %v", name, err)
					}
				})
				time.Sleep(time.Millisecond) // node 0 is first in the log
			}
			running.Wait()
			synctest.Wait() // for the loggers
			if first, _, _ := strings.Cut(log.String(), "\n"); !strings.Contains(first, "barrier is late") ||
				!strings.Contains(first, "[1") {
				t.Errorf("%s: the log says %s", name, &log)
			}
		})
	}
}

func TestMismatch_Algorithms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		var all []*barrier.Group
		for k, name := range []string{"shuffle", "concurrent"} {
			all = append(all, group(t, c.services[k], barrier.GroupConfig{Algorithm: parse(t, name)}))
		}
		for k, err := range each(all, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
			var mismatch *barrier.MismatchError
			if !errors.As(err, &mismatch) || !errors.Is(err, barrier.ErrMismatch) || mismatch.Algorithm.String() != []string{"shuffle", "concurrent"}[k] {
				t.Errorf("node %d: %v", k, err)
			} else if want := "nodes 0, 1: another algorithm than"; !strings.Contains(err.Error(), want) {
				t.Errorf("node %d: %q does not say %q", k, err, want)
			}
		}
	})
}

func TestGroup_Refuses(t *testing.T) {
	c := open(t, 3, 1, fault.Config{}, 0)
	s := c.services[0]
	none := schedule.New("none", func(int, int) []schedule.Step { return nil })
	for _, c := range []struct {
		name string
		cfg  barrier.GroupConfig
		is   error
		says string
	}{
		{"not a member", barrier.GroupConfig{Members: barrier.MaskOf(1, 2)}, barrier.ErrNotMember, "node 0, members {1 2}"},
		{"an unknown member", barrier.GroupConfig{Members: barrier.MaskOf(0, 7)}, mcd.ErrUnknownNode, "member 7"},
		{"a member beyond all node numbers", barrier.GroupConfig{Members: barrier.Bits(append(make([]uint64, 1024), 1)...)},
			mcd.ErrUnknownNode, "member 65536"},
		{"an algorithm that is wrong", barrier.GroupConfig{Algorithm: none}, schedule.ErrWrong, "none for 3 ranks"},
		{"a network that is not there", barrier.GroupConfig{Algorithm: schedule.Redundant(schedule.Tree(2), 2)}, nil,
			"wants network 1: the endpoint has 1"},
		{"a negative timeout", barrier.GroupConfig{PeerTimeout: -1}, nil, "PeerTimeout -1ns"},
		{"a timeout within which nobody can be asked", barrier.GroupConfig{PeerTimeout: time.Millisecond - 1}, nil,
			"PeerTimeout 999.999µs, Late 0s, Quorum 0 (want 0 or more, and times of 1ms at least; a number without a unit is in nanoseconds)"},
		{"a negative time until it is late", barrier.GroupConfig{Late: -1}, nil, "Late -1ns"},
		{"a time within which no barrier is late", barrier.GroupConfig{Late: time.Millisecond - 1}, nil, "Late 999.999µs"},
		{"a negative quorum", barrier.GroupConfig{Quorum: -1}, nil, "Quorum -1"},
		{"a quorum that no members are", barrier.GroupConfig{Quorum: 4}, nil, "Quorum 4 of 3 members"},
	} {
		g, err := s.Group(c.cfg)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", c.name, g, err)
		}
	}
	g := group(t, s, barrier.GroupConfig{})
	_, err := g.ArriveWith(barrier.Options{Members: barrier.MaskOf(0, 5)})
	if err == nil || !strings.Contains(err.Error(), "mask {0 5}: node 5 is not in the group {0 1 2}") {
		t.Error(err)
	}
	if _, err := g.ArriveWith(barrier.Options{Members: barrier.MaskOf(1, 2)}); !errors.Is(err, barrier.ErrNotMember) {
		t.Error(err)
	}
}

// A port has one service at a time. Close gives it back, ends all groups, and refuses new ones.
func TestService_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		if _, err := barrier.Open(c.eps[0], barrier.Config{}); !errors.Is(err, mcd.ErrPortBusy) {
			t.Errorf("a second service: %v", err)
		}
		one, two := group(t, c.services[0], barrier.GroupConfig{ID: 1}), group(t, c.services[0], barrier.GroupConfig{ID: 2})
		waits := make(chan error)
		go func() { waits <- one.Barrier(limit(t)) }()
		synctest.Wait()
		for range 2 {
			if err := c.services[0].Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-waits; !errors.Is(err, barrier.ErrClosed) {
			t.Errorf("a wait ended with %v", err)
		}
		if _, err := two.Arrive(); !errors.Is(err, barrier.ErrClosed) {
			t.Errorf("a group of a closed service: %v", err)
		}
		if _, err := c.services[0].Group(barrier.GroupConfig{}); !errors.Is(err, barrier.ErrClosed) {
			t.Errorf("a new group: %v", err)
		}
		if s := service(t, c.eps[0], barrier.Config{}); s.Close() != nil {
			t.Error("the second service does not close")
		}
	})
}

// A service that is closed while a group of it says goodbye waits for that, and so does a second
// Close. The other members hear the goodbye, though the first one is lost.
func TestService_CloseBesideGroupClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		ticket := arrive(t, all[1], barrier.Options{})
		synctest.Wait()
		c.faults[0][0].Cut(true)
		var closing sync.WaitGroup
		for _, closeIt := range []func() error{all[0].Close, c.services[0].Close, c.services[0].Close} {
			closing.Go(func() {
				_ = closeIt()
				if s, err := barrier.Open(c.eps[0], barrier.Config{}); err == nil {
					_ = s.Close()
				} else if !errors.Is(err, mcd.ErrPortBusy) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		c.faults[0][0].Cut(false)
		err := ticket.Wait(limit(t))
		var down *barrier.NodeDownError
		if !errors.As(err, &down) || down.Reasons[0] != barrier.Left {
			t.Errorf("the other member: %v", err)
		}
		closing.Wait()
	})
}

// A logger may call the group whose barrier it logs.
func TestLate_TheLoggerMayCallTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *barrier.Group
		logged := 0
		handler := func(slog.Record) { logged += int(g.Stats().Notifies) }
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		s := service(t, eps[0], barrier.Config{Logger: slog.New(callingHandler{slog.DiscardHandler, handler})})
		defer s.Close()
		g = group(t, s, barrier.GroupConfig{Algorithm: schedule.Shuffle(), PeerTimeout: 10 * time.Second, Late: time.Second})
		if err := g.Barrier(shorter(t, limit(t), 5*time.Second)); !errors.Is(err, barrier.ErrIncomplete) {
			t.Error(err)
		}
		if synctest.Wait(); logged != 1 {
			t.Errorf("the logger was called with %d notifies sent, want 1", logged)
		}
	})
}

type callingHandler struct {
	slog.Handler
	call func(slog.Record)
}

func (callingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h callingHandler) Handle(_ context.Context, r slog.Record) error {
	h.call(r)
	return nil
}

// All masks of a group say goodbye at the same time: Close takes 50 ms, however many there are,
// if a member does not answer.
func TestClose_OfManyMasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 8, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		for m := uint64(1); m < 64; m++ { // of 0, 7 and some others
			arrive(t, all[0], barrier.Options{Members: barrier.Bits(m<<1 | 1 | 1<<7)})
		}
		_ = c.eps[7].Close()
		begun := time.Now()
		_ = all[0].Close()
		if took := time.Since(begun); took > 60*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}
