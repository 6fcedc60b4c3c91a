package mpi_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
)

// Who frees a communicator alone before anything of multicasts has come to it says so, too.
func TestMulticast_FreesAloneBeforeTheFirst(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		worlds, _ := openLossy(t, 2, cfg, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Dup(t.Context())
			must(t, err)
			if c.Rank() == 1 {
				freeAlone(t, d)
				return
			}
			time.Sleep(10 * time.Millisecond)
			for k := range 5 {
				if !checkWithin(t, d, k, 0) {
					break
				}
			}
		})
		closeAll(worlds)
	})
}

// A Split that has failed at one process alone: the root of the others' Bcasts does not wait for it.
func TestMulticast_SplitFailedAtOne(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		cfg.Algorithms = append(slices.Clone(cfg.Algorithms), mpi.Algorithm{Operation: "allgather", Name: "dissemination"})
		worlds, holds := openHeld(t, cfg)
		inAll(worlds, func(c *mpi.Comm) { must(t, c.Barrier(t.Context())) })
		holds.Store(true)
		inAll(worlds, func(c *mpi.Comm) {
			ctx, cancel := t.Context(), func() {}
			if c.Rank() == 3 {
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			}
			defer cancel()
			d, err := c.Dup(ctx)
			if c.Rank() == 3 {
				if err == nil {
					t.Error("Dup has not failed")
				}
				time.Sleep(10 * time.Millisecond)
				holds.Store(false)
				return
			}
			must(t, err)
			time.Sleep(100 * time.Millisecond)
			for k := range 5 {
				if !checkWithin(t, d, k, 0) {
					break
				}
			}
		})
		closeAll(worlds)
	})
}

// holder loses what is for one address while it holds.
type holder struct {
	transport.Link
	dst   func() transport.MAC
	holds *atomic.Bool
}

func (l *holder) Send(frames []transport.Frame) (int, error) {
	for k := range frames {
		if l.holds.Load() && frames[k].Dst == l.dst() {
			continue
		}
		if _, err := l.Link.Send(frames[k : k+1]); err != nil {
			return k, err
		}
	}
	return len(frames), nil
}

// openHeld opens four worlds; what rank 1 sends to rank 3 is lost while it is held.
func openHeld(t *testing.T, cfg mpi.Config) (worlds []*mpi.World, holds *atomic.Bool) {
	holds = new(atomic.Bool)
	macs := make([]transport.MAC, 4)
	eps := mcdtest.Open(t, 4, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(n mcd.NodeID, _ int, l transport.Link) transport.Link {
			macs[n] = l.MAC()
			if n == 1 {
				return &holder{Link: l, dst: func() transport.MAC { return macs[3] }, holds: holds}
			}
			return l
		},
	})
	worlds = openAll(t, eps, cfg)
	return worlds, holds
}

// Asks of a process that is long in making a communicator push nothing out that comes once.
func TestMulticast_AsksFillTheEarly(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		cfg.PeerTimeout = time.Minute
		cfg.Algorithms = append(slices.Clone(cfg.Algorithms), mpi.Algorithm{Operation: "allgather", Name: "dissemination"})
		worlds, holds := openHeld(t, cfg)
		inAll(worlds, func(c *mpi.Comm) { must(t, c.Barrier(t.Context())) })
		holds.Store(true)
		time.AfterFunc(20*time.Second, func() { holds.Store(false) })
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Split(t.Context(), 0, -c.Rank()) // rank 3 is its rank 0
			must(t, err)
			if c.Rank() != 3 { // which hears of it late
				b := []int{0}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				_ = mpi.Bcast(ctx, d, b, 0)
				cancel()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if _, err := d.Agree(ctx, 1); err != nil {
				t.Errorf("rank %d: %v, %d malformed", c.Rank(), err, c.World().Counters().Malformed)
			}
		})
		closeAll(worlds)
	})
}

// Processes that were deaf for a while hear again, also if the root is always ahead of them.
func TestMulticast_DeafComesBack(t *testing.T) {
	for _, paced := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Bool
			eps := mcdtest.Open(t, 3, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
					return &distant{&withoutMulticasts{Link: l, lost: lost.Load}}
				},
			})
			worlds := openAll(t, eps, byMulticast)
			inAll(worlds, func(c *mpi.Comm) {
				lost.Store(true)
				for k := range 64 {
					bcastValue(t, c, k, 0)
				}
				must(t, c.Barrier(t.Context()))
				lost.Store(false)
				before := c.World().Counters().Multicasts
				for k := range 5000 {
					if c.Rank() == 0 {
						time.Sleep(5 * time.Microsecond)
					}
					bcastValue(t, c, k, 0)
					if paced {
						must(t, c.Barrier(t.Context()))
					}
				}
				must(t, c.Barrier(t.Context()))
				if got := c.World().Counters().Multicasts - before; c.Rank() == 0 {
					t.Logf("paced %v: %d of 5000 went as a frame", paced, got)
					if got < 4000 {
						t.Errorf("paced %v: %d of 5000 went as a frame", paced, got)
					}
				}
			})
			closeAll(worlds)
		})
	}
}

// A hole is asked for at once also behind many that both sides have given up, or this one alone.
func TestMulticast_LatestIsStuck(t *testing.T) {
	for _, gaveUp := range []int{5, 40} {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Bool
			worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
			inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 0, 0) })
			inAll(worlds, func(c *mpi.Comm) {
				if c.Rank() == 0 {
					time.Sleep(time.Second)
				}
				for range gaveUp {
					_, _ = within(t, time.Millisecond, c, 1, 0)
				}
			})
			time.Sleep(2 * time.Second)
			inAll(worlds, func(c *mpi.Comm) {
				for k := range 20 {
					bcastValue(t, c, k, 0)
					must(t, c.Barrier(t.Context()))
				}
			})
			inAll(worlds, func(c *mpi.Comm) {
				if c.Rank() == 0 {
					time.Sleep(time.Millisecond)
				}
				start := time.Now()
				lost.Store(true)
				bcastValue(t, c, 1, 0)
				lost.Store(false)
				bcastValue(t, c, 2, 0)
				if took := time.Since(start); c.Rank() == 1 && took > 1500*time.Microsecond {
					t.Errorf("%d given up: it came after %v", gaveUp, took)
				}
			})
			closeAll(worlds)
		})
	}
}

// refusing is a link that refuses to send.
type refusing struct {
	transport.Link
	refuses *atomic.Bool
}

func (l *refusing) Unwrap() transport.Link { return l.Link }

func (l *refusing) Send(frames []transport.Frame) (int, error) {
	if l.refuses.Load() {
		return 0, syscall.ENETDOWN
	}
	return l.Link.Send(frames)
}

// A link that refuses to send for a moment loses frames: memfifo takes it so, too.
func TestMulticast_LinkErrorForAMoment(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		var refuses atomic.Bool
		eps := mcdtest.Open(t, 3, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(n mcd.NodeID, nic int, l transport.Link) transport.Link {
				return &refusing{l, &refuses}
			},
		})
		worlds := openAll(t, eps, cfg)
		inAll(worlds, func(c *mpi.Comm) {
			bcastValue(t, c, 0, 0)
			must(t, c.Barrier(t.Context()))
		})
		refuses.Store(true)
		time.AfterFunc(10*time.Millisecond, func() { refuses.Store(false) })
		inAll(worlds, func(c *mpi.Comm) {
			for k := range 5 {
				checkWithin(t, c, k, 0)
			}
		})
		closeAll(worlds)
	})
}

// A wait for a root that frees the communicator alone ends.
func TestMulticast_WaitForARootThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, _ := openLossy(t, 2, byMulticast, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			d, err := c.Dup(t.Context())
			must(t, err)
			bcastValue(t, d, 1, 0)
			if c.Rank() == 0 {
				freeAlone(t, d)
				return
			}
			for range 2 { // one waits, and one begins, behind what the root says
				if _, err = within(t, time.Hour, d, 1, 0); !errors.Is(err, mpi.ErrFreed) {
					t.Errorf("%v, want ErrFreed", err)
				}
			}
		})
		closeAll(worlds)
	})
}

// Blips that are far apart do not add up: behind each the frames are tried again after 128.
func TestMulticast_BlipsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		worlds, _ := openLossy(t, 2, byMulticast, lost.Load)
		inAll(worlds, func(c *mpi.Comm) {
			cast := func(n int) uint64 {
				before := c.World().Counters().Multicasts
				for k := range n {
					bcastValue(t, c, k, 0)
					must(t, c.Barrier(t.Context()))
				}
				return c.World().Counters().Multicasts - before
			}
			for blip := range 6 {
				lost.Store(true)
				cast(16)
				must(t, c.Barrier(t.Context()))
				lost.Store(false)
				got := cast(4200)
				if c.Rank() == 0 {
					t.Logf("blip %d: %d of 4200 went as a frame", blip, got)
					if got < 4000 {
						t.Errorf("blip %d: %d of 4200 went as a frame", blip, got)
					}
				}
			}
		})
		closeAll(worlds)
	})
}

// openDup opens four worlds, and returns rank 0's duplicate of their communicator, in which a Bcast
// was done.
func openDup(t *testing.T, cfg mpi.Config) (worlds []*mpi.World, d *mpi.Comm) {
	worlds, _ = openLossy(t, 4, cfg, func() bool { return false })
	inAll(worlds, func(c *mpi.Comm) {
		mine, err := c.Dup(t.Context())
		must(t, err)
		bcastValue(t, mine, 1, 0)
		if c.Rank() == 0 {
			d = mine
		}
	})
	return worlds, d
}

// A Free that waits when its world is closed begins nothing: for the race detector.
func TestMulticast_CloseDuringFree(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			worlds, d := openDup(t, byMulticast)
			done := make(chan error)
			go func() { done <- d.Free(t.Context()) }()
			time.Sleep(time.Millisecond)
			err := worlds[0].Close()
			failed := worlds[0].Comm().Failed()
			if free := <-done; err != nil || len(failed) > 0 || free == nil {
				t.Errorf("Close: %v; Free: %v; failed: %v", err, free, failed)
			}
			time.Sleep(time.Second)
			if failed := worlds[0].Comm().Failed(); len(failed) > 0 {
				t.Errorf("%v are down, and nobody is", failed)
			}
			closeAll(worlds[1:])
		})
	}
}

// A Free behind Close queues nothing, and takes nobody for down.
func TestMulticast_FreeBehindClose(t *testing.T) {
	inEachConfig(t, func(t *testing.T, cfg mpi.Config) {
		worlds, d := openDup(t, cfg)
		must(t, worlds[0].Close())
		if err := d.Free(t.Context()); err == nil {
			t.Error("Free has not failed")
		}
		time.Sleep(time.Second)
		if failed := worlds[0].Comm().Failed(); len(failed) > 0 {
			t.Errorf("%v are down, and nobody is", failed)
		}
		closeAll(worlds[1:])
	})
}
