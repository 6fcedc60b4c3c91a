package mpi_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// byTree has all Bcasts go by trees, which pass the same tests.
var byTree = mpi.Config{Algorithms: []mpi.Algorithm{{Operation: "bcast", Name: "binomial tree"}}}

// within is Bcast of a value, with a deadline.
func within(t *testing.T, d time.Duration, c *mpi.Comm, value, root int) (int, error) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	b := []int{-1}
	if c.Rank() == root {
		b[0] = value
	}
	err := mpi.Bcast(ctx, c, b, root)
	return b[0], err
}

// Without loss nobody asks.
func TestMulticast_Heard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, _ := openLossy(t, 3, byMulticast, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			for k := range 40 {
				bcastValue(t, c, k, 0)
				must(t, c.Barrier(t.Context()))
			}
			if got := c.World().Counters().Asked; got > 0 {
				t.Errorf("rank %d has asked for %d, and nothing is lost", c.Rank(), got)
			}
		})
		closeAll(worlds)
	})
}

// checkWithin is Bcast of a value, which has to come in time.
func checkWithin(t *testing.T, c *mpi.Comm, value, root int) bool {
	t.Helper()
	got, err := within(t, 10*time.Second, c, value, root)
	if err != nil || got != value {
		t.Errorf("rank %d has %d of root %d, want %d: %v", c.Rank(), got, root, value, err)
		return false
	}
	return true
}

func closeAll(worlds []*mpi.World) {
	inAll(worlds, func(c *mpi.Comm) { _ = c.World().Close() })
}

// inEachConfig runs a test with either way of a short Bcast, in a bubble each.
func inEachConfig(t *testing.T, test func(t *testing.T, cfg mpi.Config)) {
	t.Helper()
	for name, cfg := range map[string]mpi.Config{"multicast": byMulticast, "tree": byTree} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, cfg) })
		})
	}
}

// freeAlone frees a communicator that others do not free.
func freeAlone(t *testing.T, c *mpi.Comm) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Free(ctx); err == nil {
		t.Error("Free has not failed")
	}
}

// A Bcast whose context has ended before it begins takes nothing from those after it.
func TestMulticast_RootCancelledBeforeItBegins(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		worlds, _ := openLossy(t, 2, cfg, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for k := range 20 {
				_ = mpi.Bcast(ended, c, []int{-7}, 0)
				time.Sleep(2 * time.Second) // both are here
				got, err := within(t, time.Second, c, k, 0)
				if got != k || err != nil {
					t.Errorf("rank %d, round %d: %d, %v", c.Rank(), k, got, err)
					return
				}
			}
		})
		closeAll(worlds)
	})
}

// Bcasts that the root gives up do not push out of its memory those that have succeeded before.
func TestMulticast_GivenUpForgetsTheKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, _ := openLossy(t, 2, byMulticast, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			if c.Rank() == 1 {
				time.Sleep(time.Second)
			}
			for k := range 31 {
				if !checkWithin(t, c, k, 0) {
					break
				}
			}
			if c.Rank() == 0 {
				for k := range 40 {
					_, _ = within(t, time.Millisecond, c, k, 0)
				}
				time.Sleep(time.Minute)
			}
		})
		closeAll(worlds)
	})
}

// One is given up behind which the others would have told what they have: the root does not run
// ahead of who is late by more than it keeps.
func TestMulticast_GivenUpAtAnAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
		inAll(worlds, func(c *mpi.Comm) {
			for k := 1; k <= 70; k++ {
				switch {
				case c.Rank() == 1 && k == 2:
					time.Sleep(time.Second)
				case c.Rank() == 0 && k == 2:
					time.Sleep(10 * time.Millisecond)
				}
				if c.Rank() == 0 && k <= 33 {
					lost.Store(k >= 17 && k <= 31)
				}
				if k == 32 {
					_, _ = within(t, 10*time.Millisecond, c, k, 0)
					continue
				}
				if !checkWithin(t, c, k, 0) {
					break
				}
			}
		})
		closeAll(worlds)
	})
}

// A root gives up while others ask it, and while it is closed: a test for the race detector.
func TestMulticast_GivenUpAtOnce(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			worlds, _ := openLossy(t, 3, byMulticast, func() bool { return true })
			inAll(worlds, func(c *mpi.Comm) {
				if c.Rank() == 2 {
					time.Sleep(time.Second)
					return
				}
				for range 45 {
					_, _ = within(t, 2*time.Millisecond, c, 1, 0)
				}
			})
			closeAll(worlds)
		})
	}
}

// A root that frees its communicator alone, as another process is down, sends those what they lack
// that live.
func TestMulticast_FreedAlone(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		cfg.PeerTimeout = time.Second
		var lost atomic.Bool
		worlds, eps := openLossy(t, 3, cfg, lost.Load)
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Dup(t.Context())
			must(t, err)
			if c.Rank() != 2 {
				bcastValue(t, d, 1, 0)
			} else {
				_ = mpi.Bcast(t.Context(), d, []int{0}, 0)
				must(t, eps[2].Close())
				return
			}
			time.Sleep(100 * time.Millisecond)
			lost.Store(true)
			if c.Rank() == 0 {
				bcastValue(t, d, 2, 0)
				if err := d.Free(t.Context()); !errors.Is(err, mpi.ErrProcessFailed) {
					t.Errorf("Free: %v", err)
				}
				return
			}
			time.Sleep(3 * time.Second)
			got, err := within(t, time.Minute, d, 2, 0)
			if got != 2 || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		})
		closeAll(worlds)
	})
}

// A process that is still making a communicator gets what a root has sent in it that was closed
// meanwhile.
func TestMulticast_CloseBeforeAnotherHasTheCommunicator(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		// Of Dup's Allgather, rank 3 lacks what rank 1 sends it, and rank 0 nothing.
		cfg.Algorithms = append(slices.Clone(cfg.Algorithms), mpi.Algorithm{Operation: "allgather", Name: "dissemination"})
		worlds, holds := openHeld(t, cfg)
		inAll(worlds, func(c *mpi.Comm) { must(t, c.Barrier(t.Context())) })
		holds.Store(true)
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Dup(t.Context())
			must(t, err)
			if c.Rank() == 0 {
				time.Sleep(20 * time.Millisecond) // ranks 1 and 2 have theirs
			}
			bcastValue(t, d, 5, 0)
			if c.Rank() == 0 {
				must(t, c.World().Close())
				holds.Store(false)
			}
		})
		closeAll(worlds)
	})
}

// Who is late for its first Bcast, and has not joined the group before, is not taken for deaf.
func TestMulticast_LateIsNotDeaf(t *testing.T) {
	bubble(t, 4, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		for k := range 10 {
			bcastValue(t, c, k, 0)
		}
		must(t, c.Barrier(t.Context()))
		before := c.World().Counters().Multicasts
		for k := range 100 {
			bcastValue(t, c, k, 0)
			must(t, c.Barrier(t.Context()))
		}
		if got := c.World().Counters().Multicasts - before; c.Rank() == 0 && got < 90 {
			t.Errorf("%d of 100 Bcasts went as a frame", got)
		}
	})
}

// Two Bcasts of one root are under way, in a program that is wrong. The second is given up, and its
// multicast comes before that of the first: it goes nowhere, also if its request is used again.
func TestMulticast_PooledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
		inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 1, 0) })
		time.Sleep(10 * time.Millisecond)
		const us = time.Microsecond
		root, c := worlds[0].Comm(), worlds[1].Comm()
		go func() { _, _ = within(t, time.Second, c, 2, 0) }()
		time.Sleep(100 * us)
		if _, err := within(t, 100*us, c, 3, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done := make(chan int)
		go func() {
			b := []int{-1}
			_, err := mpi.Recv(t.Context(), c, b, 0, 7)
			must(t, err)
			done <- b[0]
		}()
		time.Sleep(100 * us)
		lost.Store(true)
		bcastValue(t, root, 1002, 0)
		lost.Store(false)
		bcastValue(t, root, 1003, 0)
		time.Sleep(100 * us)
		go func() { _ = mpi.Send(t.Context(), root, []int{70}, 1, 7) }()
		if got := <-done; got != 70 {
			t.Errorf("the receive has %d, want 70: a Bcast's", got)
		}
		time.Sleep(2 * time.Second)
		closeAll(worlds)
	})
}

// What a process tells a root does not wait behind its messages, and goes if its Bcast was given
// up.
func TestMulticast_TellsWithoutCredit(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		worlds, _ := openLossy(t, 2, cfg, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			var sends []*mpi.Request
			for k := 1; k <= 40; k++ {
				if k == 16 && c.Rank() == 1 {
					for range 2000 {
						sends = append(sends, mpi.Isend(c, []int{1}, 0, 9))
					}
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					_ = mpi.Bcast(ctx, c, []int{0}, 0)
					continue
				}
				if k == 17 {
					time.Sleep(time.Millisecond)
				}
				if !checkWithin(t, c, k, 0) {
					break
				}
			}
			if c.Rank() == 0 {
				for range 2000 {
					_, err := mpi.Recv(t.Context(), c, []int{0}, 1, 9)
					must(t, err)
				}
			}
			for _, r := range sends {
				_, err := r.Wait(t.Context())
				must(t, err)
			}
		})
		closeAll(worlds)
	})
}

// Bcasts follow a Dup at once, and nobody is taken for deaf.
func TestMulticast_DupThenBcasts(t *testing.T) {
	bubble(t, 4, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup(t.Context())
		must(t, err)
		for k := range 10 {
			bcastValue(t, d, k, 0)
		}
		must(t, c.Barrier(t.Context()))
		before := c.World().Counters().Multicasts
		for k := range 100 {
			bcastValue(t, d, k, 0)
			must(t, c.Barrier(t.Context()))
		}
		if got := c.World().Counters().Multicasts - before; c.Rank() == 0 && got < 90 {
			t.Errorf("%d of 100 Bcasts went as a frame", got)
		}
	})
}

// A root does not wait for a process that has freed the communicator alone.
func TestMulticast_ListenerFreesAlone(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		worlds, _ := openLossy(t, 2, cfg, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Dup(t.Context())
			must(t, err)
			bcastValue(t, d, 1, 0)
			if c.Rank() == 1 {
				freeAlone(t, d)
				return
			}
			time.Sleep(10 * time.Millisecond)
			for k := range 50 {
				if !checkWithin(t, d, k, 0) {
					break
				}
			}
		})
		closeAll(worlds)
	})
}

// distant is a link with a latency of 50 µs.
type distant struct{ transport.Link }

func (l *distant) Unwrap() transport.Link { return l.Link }

func (l *distant) Send(frames []transport.Frame) (int, error) {
	for _, f := range frames {
		f.Payload = slices.Clone(f.Payload)
		time.AfterFunc(50*time.Microsecond, func() { _, _ = l.Link.Send([]transport.Frame{f}) })
	}
	return len(frames), nil
}

// A frame and an ask for it may cross: then nothing was lost, and nobody is taken for deaf.
func TestMulticast_CrossedAsksAreNoLosses(t *testing.T) {
	for period := 1500 * time.Microsecond; period < 2500*time.Microsecond; period += 50 * time.Microsecond {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap:     func(_ mcd.NodeID, _ int, l transport.Link) transport.Link { return &distant{l} },
			})
			worlds := openAll(t, eps, byMulticast)
			inAll(worlds, func(c *mpi.Comm) {
				for k := range 100 {
					if c.Rank() == 0 {
						time.Sleep(period)
					}
					bcastValue(t, c, k, 0)
				}
			})
			if got := worlds[0].Counters().Multicasts; got < 90 {
				t.Errorf("a Bcast each %v: %d of 100 went as a frame", period, got)
			}
			inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
		})
	}
}

// Who has missed some now and then is not taken for deaf.
func TestMulticast_SomeMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
		inAll(worlds, func(c *mpi.Comm) {
			for k := range 160 {
				if c.Rank() == 0 {
					lost.Store(k%16 > 0 && k%16 <= 5)
				}
				bcastValue(t, c, k, 0)
				must(t, c.Barrier(t.Context()))
			}
			want := [][2]uint64{{159, 0}, {0, 50}}[c.Rank()]
			if got := c.World().Counters(); [...]uint64{got.Multicasts, got.Asked} != want {
				t.Errorf("rank %d: %d multicasts, %d asked for, want %v", c.Rank(), got.Multicasts, got.Asked, want)
			}
		})
		closeAll(worlds)
	})
}

// A multicast that was lost is asked for as soon as a later one has come, whether its Bcast is called
// before that or after.
func TestMulticast_AskedForAtOnce(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Bool
			worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
			inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 0, 0) })
			inAll(worlds, func(c *mpi.Comm) {
				switch {
				case c.Rank() == 0 && !late:
					time.Sleep(time.Millisecond)
				case c.Rank() == 1 && late:
					time.Sleep(time.Millisecond)
				}
				start := time.Now()
				lost.Store(true)
				bcastValue(t, c, 1, 0)
				lost.Store(false)
				bcastValue(t, c, 2, 0)
				if took := time.Since(start); c.Rank() == 1 && took > 1500*time.Microsecond {
					t.Errorf("late: %v: it came after %v", late, took)
				}
			})
			closeAll(worlds)
		})
	}
}

// The communicators of a Split have one group: a frame of another one is nothing wrong.
func TestMulticast_OfAnotherColor(t *testing.T) {
	bubble(t, 4, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Split(t.Context(), c.Rank()%2, 0)
		must(t, err)
		for k := range 10 {
			checkWithin(t, d, 2*k+c.Rank()%2, 0)
		}
		must(t, c.Barrier(t.Context()))
		if n := c.World().Counters().Malformed; n > 0 {
			t.Errorf("rank %d: %d records are malformed", c.Rank(), n)
		}
	})
}
