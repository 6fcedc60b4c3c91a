package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// byMulticast has all short Bcasts go by multicasts.
var byMulticast = mpi.Config{Algorithms: []mpi.Algorithm{{Operation: "bcast", Name: "multicast"}}}

// allByMulticast has all go by multicast that can.
var allByMulticast = mpi.Config{Algorithms: []mpi.Algorithm{
	{Operation: "bcast", Name: "multicast"},
	{Operation: "allreduce", Name: "multicast"},
	{Operation: "allgather", Name: "multicast"},
}}

// byEach has what all get be multicast by each.
var byEach = mpi.Config{Algorithms: []mpi.Algorithm{
	{Operation: "bcast", Name: "multicast"},
	{Operation: "allreduce", Name: "multicast by each"},
	{Operation: "allgather", Name: "multicast by each"},
}}

// bcastValue broadcasts a value of the root's, and checks what comes.
func bcastValue(t *testing.T, c *mpi.Comm, value, root int) {
	t.Helper()
	b := []int{-1}
	if c.Rank() == root {
		b[0] = value
	}
	must(t, mpi.Bcast(t.Context(), c, b, root))
	if b[0] != value {
		t.Errorf("rank %d has %d of root %d, want %d", c.Rank(), b[0], root, value)
	}
}

// Random programs of what ends with a multicast: whoever is the root, and whoever is late, in communicators that come
// and go. What links lose, double and reorder is asked for, and comes once, whole.
func TestMulticast_Model(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), func(t *testing.T, seed uint64) {
		program := rand.New(rand.NewPCG(seed, 0))
		n := 2 + program.IntN(4)
		faults := randomFaults(program)
		cfg := []mpi.Config{allByMulticast, byEach}[program.IntN(2)]
		cfg.PeerTimeout = time.Minute
		bubble(t, n, faults, cfg, func(t *testing.T, c *mpi.Comm) {
			program := rand.New(rand.NewPCG(seed, 1)) // the same at all ranks
			random := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))
			d := c
			for k := range 1 + program.IntN(120) {
				if random.IntN(10) == 0 {
					time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
				}
				root, size := program.IntN(1+program.IntN(n)), program.IntN(1025)
				switch program.IntN(30) {
				case 0:
					must(t, d.Barrier(t.Context()))
				case 1:
					if d != c {
						must(t, d.Free(t.Context()))
					}
					var err error
					d, err = c.Dup(t.Context())
					must(t, err)
				case 2:
					bcastPattern(t, c, k, size, root)
				case 3, 4, 5:
					count := size / 8
					sum := make([]int, 2*count)
					must(t, mpi.Allreduce(t.Context(), d, mapOf(d.Rank(), count), sum, affine))
					if !slices.Equal(sum, combined(0, n-1, count)) {
						t.Errorf("rank %d: an allreduce of %d bytes is wrong", d.Rank(), 8*len(sum))
					}
				case 6, 7, 8:
					count := size / 8 / n
					all := make([]int, n*count)
					must(t, mpi.Allgather(t.Context(), d, sequence(k+d.Rank()*count, count), all))
					if !slices.Equal(all, sequence(k, n*count)) {
						t.Errorf("rank %d: an allgather of %d bytes is wrong", d.Rank(), 8*len(all))
					}
				default:
					bcastPattern(t, d, k, size, root)
				}
			}
			must(t, c.Barrier(t.Context())) // so that nobody leaves before the last acknowledgement
		})
	})
}

// randomFaults are none, one time in three.
func randomFaults(program *rand.Rand) fault.Config {
	if program.IntN(3) == 0 {
		return fault.Config{}
	}
	return fault.Config{
		Loss: program.Float64() / 4, Duplicate: program.Float64() / 4, Reorder: program.Float64() / 4,
		Delay: .1, DelayMax: time.Duration(1+program.IntN(10)) * time.Millisecond,
	}
}

// bcastPattern broadcasts the root's pattern, and checks what comes.
func bcastPattern(t *testing.T, c *mpi.Comm, k, size, root int) {
	t.Helper()
	b := make([]byte, size)
	if c.Rank() == root {
		copy(b, patternView(k, size))
	}
	must(t, mpi.Bcast(t.Context(), c, b, root))
	if !bytes.Equal(b, patternView(k, size)) {
		t.Errorf("rank %d: %d bytes of root %d are wrong", c.Rank(), size, root)
	}
}

// What is lost was asked for, and comes.
func TestMulticast_Lost(t *testing.T) {
	bubble(t, 3, fault.Config{Loss: 0.1}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		for k := range 200 {
			bcastValue(t, c, 1000+k, 1)
		}
		got := c.World().Counters()
		if (got.Multicasts < 100) != (c.Rank() != 1) || (got.Asked < 2) != (c.Rank() == 1) || got.Malformed > 0 {
			t.Errorf("rank %d: %d multicasts, %d asked for, %d malformed", c.Rank(), got.Multicasts, got.Asked, got.Malformed)
		}
	})
}

// The root goes on without those that are late, as far as it can answer them: 32 behind what they
// have told.
func TestMulticast_Window(t *testing.T) {
	var returned atomic.Int32
	bubble(t, 3, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		for k := range 100 {
			if k == 1 && c.Rank() == 2 {
				time.Sleep(time.Second)
				if got := returned.Load(); got != 33 {
					t.Errorf("the root has returned %d times, want 33", got)
				}
			}
			bcastValue(t, c, k, 0)
			if c.Rank() == 0 {
				returned.Add(1)
			}
		}
	})
}

// withoutMulticasts is a link that takes and loses those of a port.
type withoutMulticasts struct {
	transport.Link
	lost func() bool
}

func (l *withoutMulticasts) Unwrap() transport.Link { return l.Link }

func (l *withoutMulticasts) Send(frames []transport.Frame) (int, error) {
	var kept []transport.Frame
	for _, f := range frames {
		if !f.Dst.IsMulticast() || !l.lost() {
			kept = append(kept, f)
		}
	}
	if len(kept) > 0 {
		if _, err := l.Link.Send(kept); err != nil {
			return 0, err
		}
	}
	return len(frames), nil
}

// openLossy opens worlds whose multicasts are lost while lost says so.
func openLossy(t *testing.T, n int, cfg mpi.Config, lost func() bool) (worlds []*mpi.World, eps []*mcd.Endpoint) {
	t.Helper()
	eps = mcdtest.Open(t, n, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
			return &withoutMulticasts{Link: l, lost: lost}
		},
	})
	worlds = openAll(t, eps, cfg)
	return worlds, eps
}

// inAll runs a program in all worlds.
func inAll(worlds []*mpi.World, program func(c *mpi.Comm)) {
	var ranks sync.WaitGroup
	for _, w := range worlds {
		ranks.Go(func() { program(w.Comm()) })
	}
	ranks.Wait()
}

// Processes that hear no multicasts get records, once they have said that they have missed some:
// those from 17 on. The root tries again from 145 to 160, after 8 times 16, and then after 16.
func TestMulticast_Deaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds, _ := openLossy(t, 3, byMulticast, func() bool { return true })
		inAll(worlds, func(c *mpi.Comm) {
			for k := range 200 {
				bcastValue(t, c, k, 0)
				must(t, c.Barrier(t.Context()))
				if c.Rank() != 0 {
					continue
				}
				synctest.Wait() // what the others have told has come: a barrier may overtake it
				if got := c.World().Counters().Multicasts; k+1 == 144 && got != 15 {
					t.Errorf("%d multicasts of 144, want 15", got)
				}
			}
		})
		if got := worlds[0].Counters().Multicasts; got != 15+16 {
			t.Errorf("%d multicasts, want 31", got)
		}
		for _, w := range worlds[1:] {
			if got := w.Counters().Asked; got != 15+16 {
				t.Errorf("%d asked for, want 31", got)
			}
		}
		inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
	})
}

// A root that leaves has sent all by records that others are not known to have.
func TestMulticast_CloseSendsWhatWasLost(t *testing.T) {
	for _, count := range []int{2, 5, 20, 31, 40} {
		synctest.Test(t, func(t *testing.T) {
			worlds, _ := openLossy(t, 3, byMulticast, func() bool { return true })
			inAll(worlds, func(c *mpi.Comm) {
				if c.Rank() > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				for k := range count {
					bcastValue(t, c, k, 0)
				}
				must(t, c.World().Close())
			})
		})
	}
}

// Who waits for a root that dies is told, and a root is told who is down.
func TestMulticast_Down(t *testing.T) {
	cfg := byMulticast
	cfg.PeerTimeout = time.Second
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 4, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		worlds := openAll(t, eps, cfg)
		inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 5, 0) })
		must(t, eps[0].Close())
		inAll(worlds[1:], func(c *mpi.Comm) {
			err := mpi.Bcast(t.Context(), c, []int{0}, 0)
			if failed, ok := errors.AsType[*mpi.ProcessError](err); !ok || failed.Rank != 0 {
				t.Errorf("rank %d, of a root that is down: %v", c.Rank(), err)
			}
		})
		inAll(worlds[1:], func(c *mpi.Comm) {
			for k := range 50 {
				b := []int{0}
				if c.Rank() == 1 {
					b[0] = k
				}
				err := mpi.Bcast(t.Context(), c, b, 1)
				failed, ok := errors.AsType[*mpi.ProcessError](err)
				if named := ok && failed.Rank == 0; named != (c.Rank() == 1) || b[0] != k {
					t.Errorf("rank %d, Bcast %d without rank 0: %d, %v", c.Rank(), k, b[0], err)
				}
			}
		})
		for _, w := range worlds[1:] {
			_ = w.Close() // of what rank 0 has not confirmed
		}
		_ = worlds[0].Close()
	})
}

// A wait for a multicast ends with its context, with Revoke, and with Close; and so does the wait
// of a root for those that are late.
func TestMulticast_Waits(t *testing.T) {
	for name, want := range map[string]error{
		"deadline": context.DeadlineExceeded, "revoke": mpi.ErrRevoked, "close": mpi.ErrClosed,
	} {
		for waiter := range 2 {
			synctest.Test(t, func(t *testing.T) {
				worlds, _ := openLossy(t, 2, byMulticast, func() bool { return false })
				c := worlds[waiter].Comm()
				ctx, cancel := context.WithCancel(t.Context())
				if name == "deadline" {
					ctx, cancel = context.WithTimeout(ctx, time.Second)
				}
				defer cancel()
				done := make(chan error)
				go func() {
					var err error
					for k := 0; k < 40 && err == nil; k++ {
						err = mpi.Bcast(ctx, c, []int{0}, 0)
					}
					done <- err
				}()
				time.Sleep(100 * time.Millisecond)
				switch name {
				case "revoke":
					worlds[1-waiter].Comm().Revoke()
				case "close":
					must(t, worlds[waiter].Close())
				}
				if err := <-done; !errors.Is(err, want) {
					t.Errorf("the wait of rank %d: %v, want %v", waiter, err, want)
				}
				inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
			})
		}
	}
}

// A Bcast that was given up takes nothing from those after it.
func TestMulticast_GivenUp(t *testing.T) {
	bubble(t, 3, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		bcastValue(t, c, 1, 0)
		if c.Rank() == 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			b := []int{9}
			if err := mpi.Bcast(ctx, c, b, 0); !errors.Is(err, context.DeadlineExceeded) || b[0] != 9 {
				t.Errorf("%v, %d", err, b[0])
			}
		} else {
			time.Sleep(20 * time.Millisecond)
			bcastValue(t, c, 2, 0)
		}
		for k := range 50 {
			bcastValue(t, c, 3+k, 0)
		}
	})
}

// A multicast that is longer than its memory says so, and ends.
func TestMulticast_Truncate(t *testing.T) {
	bubble(t, 2, fault.Config{}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		for range 40 {
			err := mpi.Bcast(t.Context(), c, make([]int, 2-c.Rank()), 0)
			if want := c.Rank() == 1; errors.Is(err, mpi.ErrTruncate) != want || !want && err != nil {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
		}
	})
}

// A communicator is freed while acknowledgements are under way, and others have multicasts of their
// own.
func TestMulticast_Free(t *testing.T) {
	bubble(t, 4, fault.Config{Loss: 0.1}, byMulticast, func(t *testing.T, c *mpi.Comm) {
		for count := range 40 {
			d, err := c.Dup(t.Context())
			must(t, err)
			for k := range count {
				bcastValue(t, d, 100*count+k, k/20)
			}
			bcastValue(t, c, count, 1)
			must(t, d.Free(t.Context()))
		}
	})
}

// Frames of a process' former life, of strangers, and those that make no sense are not taken.
func TestMulticast_Strangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		cfg := byMulticast
		cfg.Nodes = []mcd.NodeID{0, 1}
		worlds := openAll(t, eps[:2], cfg)
		inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 1, 0) })
		forged := wire.AppendMulticast(nil, &wire.Multicast{
			Kind: wire.Data, Number: 2, Incarnation: 7, Operation: wire.Operation{Collective: wire.Bcast}, Data: make([]byte, 8),
		})
		ask := wire.AppendMulticast(nil, &wire.Multicast{Kind: wire.Ask, Number: 1})
		for k, frame := range []struct {
			from      int
			bytes     []byte
			malformed uint64
			version   uint64
		}{
			{0, forged, 0, 0}, {2, forged, 1, 0}, {0, ask, 1, 0}, {0, forged[:5], 1, 0}, {0, []byte{0x3c}, 0, 1},
		} {
			before := worlds[1].Counters()
			p, err := eps[frame.from].OpenPort(9, mcd.PortOptions{})
			must(t, err)
			must(t, p.Send(t.Context(), mcd.Addr{Node: 1, Port: mpi.DefaultPort + 2}, frame.bytes))
			time.Sleep(time.Millisecond)
			must(t, p.Close())
			got := worlds[1].Counters()
			if got.Malformed-before.Malformed != frame.malformed || got.Version-before.Version != frame.version {
				t.Errorf("frame %d: counters %+v, before %+v", k, got, before)
			}
		}
		inAll(worlds, func(c *mpi.Comm) { bcastValue(t, c, 2, 0) })
		inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
	})
}

// The port of multicasts is one of three, and says so if it is busy.
func TestMulticast_PortBusy(t *testing.T) {
	ep := mcdtest.Open(t, 1, mcdtest.Config{})[0]
	p, err := ep.OpenPort(mpi.DefaultPort+2, mcd.PortOptions{})
	must(t, err)
	if _, err := mpi.Open(ep, mpi.Config{}); !errors.Is(err, mcd.ErrPortBusy) {
		t.Errorf("%v, want ErrPortBusy", err)
	}
	must(t, p.Close())
	w, err := mpi.Open(ep, mpi.Config{})
	must(t, err)
	must(t, w.Close())
	if d, err := memfifo.Open(ep, memfifo.Config{Port: mpi.DefaultPort + 2}); err != nil {
		t.Error("Close has kept the port:", err)
	} else {
		must(t, d.Close())
	}
}
