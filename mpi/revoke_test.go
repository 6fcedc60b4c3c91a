package mpi_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// waiting is operations that rank 0 begins with rank 1, which does nothing, or that both begin with
// each other; each is to end by a Revoke.
var waiting = map[string]func(t *testing.T, c *mpi.Comm) error{
	"a receive": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Recv(t.Context(), c, make([]byte, 1), 1, 0))
	},
	"a receive that is offered": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Recv(t.Context(), c, make([]byte, 100_000), 1, 0))
	},
	"a receive from any source": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Recv(t.Context(), c, make([]byte, 100_000), mpi.AnySource, mpi.AnyTag))
	},
	"a receive from itself": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Recv(t.Context(), c, make([]byte, 1), 0, 0))
	},
	"a long send":           func(t *testing.T, c *mpi.Comm) error { return mpi.Send(t.Context(), c, make([]byte, 100_000), 1, 0) },
	"a long send to itself": func(t *testing.T, c *mpi.Comm) error { return mpi.Send(t.Context(), c, make([]byte, 100_000), 0, 0) },
	"a synchronous send":    func(t *testing.T, c *mpi.Comm) error { return mpi.Ssend(t.Context(), c, []byte{1}, 1, 0) },
	"a send without credit": sendMany(2000),
	"a send and a receive": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Sendrecv(t.Context(), c, []byte{1}, 1, 0, make([]byte, 1), 1, 0))
	},
	"a probe":        func(t *testing.T, c *mpi.Comm) error { return second(c.Probe(t.Context(), 1, 0)) },
	"a probe of any": func(t *testing.T, c *mpi.Comm) error { return second(c.Mprobe(t.Context(), mpi.AnySource, 0)) },
	"an allreduce": func(t *testing.T, c *mpi.Comm) error {
		return mpi.Allreduce(t.Context(), c, []int{1}, []int{0}, mpi.Sum)
	},
	"a broadcast": func(t *testing.T, c *mpi.Comm) error { return mpi.Bcast(t.Context(), c, make([]byte, 50_000), 1) },
	"a barrier":   func(t *testing.T, c *mpi.Comm) error { return c.Barrier(t.Context()) },
	"a split":     func(t *testing.T, c *mpi.Comm) error { return second(c.Split(t.Context(), 0, 0)) },
	"a broadcast that began": func(t *testing.T, c *mpi.Comm) error {
		return second(mpi.Ibcast(c, make([]byte, 50_000), 1).Wait(t.Context()))
	},
	"a barrier that began": func(t *testing.T, c *mpi.Comm) error { return second(c.Ibarrier().Wait(t.Context())) },
	"one of several requests": func(t *testing.T, c *mpi.Comm) error {
		_, _, err := mpi.WaitAny(t.Context(), mpi.Irecv(c, make([]byte, 1), 1, 0), mpi.Issend(c, []byte{1}, 1, 1))
		return err
	},
	"a persistent receive": func(t *testing.T, c *mpi.Comm) error {
		p := mpi.RecvInit(c, make([]byte, 1), 1, 0)
		must(t, p.Start())
		_, err := p.Wait(t.Context())
		must(t, p.Start())
		return errors.Join(err, second(p.Wait(t.Context())))
	},
}

// sendMany sends messages that nobody receives.
func sendMany(n int) func(t *testing.T, c *mpi.Comm) error {
	return func(t *testing.T, c *mpi.Comm) error {
		for range n {
			if err := mpi.Send(t.Context(), c, []byte{1}, 1, 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// What waits ends by a Revoke, of this process or of another one, and so does what begins later; other
// communicators are left as they are.
func TestRevoke(t *testing.T) {
	for who := range 3 {
		for what, begin := range waiting {
			bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				ctx := t.Context()
				d, err := c.Dup(ctx)
				must(t, err)
				other := mpi.Irecv(c, make([]byte, 5000), (c.Rank()+1)%3, 5)
				start := time.Now()
				if c.Rank() == who {
					time.AfterFunc(time.Millisecond, d.Revoke)
				}
				if c.Rank() == 0 {
					if err := begin(t, d); !errors.Is(err, mpi.ErrRevoked) {
						t.Errorf("%s, revoked by rank %d: %v", what, who, err)
					}
					if took := time.Since(start); took < time.Millisecond || took > 20*time.Millisecond {
						t.Errorf("%s, revoked by rank %d: it has taken %v", what, who, took)
					}
				}
				time.Sleep(time.Second)
				if !d.Revoked() || c.Revoked() {
					t.Errorf("%s: rank %d: revoked: %v, %v", what, c.Rank(), d.Revoked(), c.Revoked())
				}
				for what, begin := range waiting {
					if err := begin(t, d); !errors.Is(err, mpi.ErrRevoked) {
						t.Errorf("%s, later: %v", what, err)
					}
				}
				if _, _, err := d.Iprobe(0, 0); !errors.Is(err, mpi.ErrRevoked) {
					t.Errorf("%v", err)
				}
				if _, done, _ := other.Test(); done {
					t.Errorf("%s: what is under way in another communicator has ended", what)
				}
				d.Revoke()
				time.Sleep(time.Second)
				must(t, mpi.Send(ctx, c, make([]byte, 5000), (c.Rank()+2)%3, 5))
				_, err = other.Wait(ctx)
				must(t, err)
				if flags, err := d.Agree(ctx, 7); err != nil || flags != 7 {
					t.Errorf("%d, %v", flags, err)
				}
				s, err := d.Shrink(ctx)
				must(t, err)
				must(t, s.Barrier(ctx))
			})
		}
	}
}

// A Revoke that dies with its process after one has heard of it is passed on by that one.
func TestRevoke_IsPassedOn(t *testing.T) {
	mortal(t, 4, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		ctx := t.Context()
		must(t, c.Barrier(ctx))
		if c.Rank() == 0 {
			time.Sleep(time.Millisecond) // the others have left the barrier
			for _, l := range all.links[2:] {
				must(t, l.SetConfig(fault.Config{Loss: 1, Match: from(all.links[0].MAC())}))
			}
			c.Revoke()
			time.Sleep(time.Millisecond)
			all.die(0)
			return
		}
		start := time.Now()
		_, err := mpi.Recv(ctx, c, make([]byte, 1), 1+c.Rank()%3, 0)
		if took := time.Since(start); !errors.Is(err, mpi.ErrRevoked) || took > 500*time.Millisecond {
			t.Errorf("rank %d, after %v: %v", c.Rank(), took, err)
		}
		s, err := c.Shrink(ctx)
		must(t, err)
		if s.Size() != 3 {
			t.Errorf("%d processes", s.Size())
		}
	})
}

// Messages of a communicator that was revoked give back what they have taken: credit and memory.
func TestRevoke_GivesCreditBack(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		for range 5 {
			d, err := c.Dup(ctx)
			must(t, err)
			if c.Rank() == 0 {
				for range 600 { // of 1,024
					must(t, mpi.Send(ctx, d, make([]byte, 1000), 1, 0))
				}
			}
			must(t, c.Barrier(ctx))
			d.Revoke()
			must(t, c.Barrier(ctx))
		}
		if c.Rank() == 1 {
			must(t, mpi.Send(ctx, c, []byte{1}, 0, 0))
			_, err := mpi.Recv(ctx, c, make([]byte, 1), 0, 0)
			must(t, err)
			return
		}
		_, err := mpi.Recv(ctx, c, make([]byte, 1), 1, 0)
		must(t, err)
		must(t, mpi.Send(ctx, c, []byte{1}, 1, 0))
		if n := c.World().Counters().Requested; n > 0 {
			t.Errorf("%d messages had no credit", n)
		}
	})
}

// Whatever was under way when a communicator was revoked, messages of another one arrive as before.
func TestRevoke_LeavesOthers(t *testing.T) {
	sizes := []int{1, 3000, 50_000}
	bubble(t, 3, fault.Config{Loss: .05, Delay: .1, DelayMax: time.Millisecond}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		for round := range 20 {
			d, err := c.Dup(ctx)
			must(t, err)
			var ended, kept []*mpi.Request
			for other := range 3 {
				for tag, size := range sizes {
					ended = append(ended, mpi.Isend(d, pattern(round, size), other, tag), mpi.Irecv(d, make([]byte, size), other, 2-tag))
					kept = append(kept, mpi.Isend(c, pattern(round+tag, size), other, tag))
				}
			}
			if c.Rank() == round%3 {
				time.Sleep(time.Duration(round) * 100 * time.Microsecond)
				d.Revoke()
			}
			for _, r := range ended {
				_, err := r.Wait(ctx)
				if err != nil && !errors.Is(err, mpi.ErrRevoked) && !errors.Is(err, mpi.ErrTruncate) && !errors.Is(err, mpi.ErrWithdrawn) {
					t.Errorf("%v", err)
				}
			}
			for other := range 3 {
				for tag, size := range sizes {
					buf := make([]byte, size)
					s, err := mpi.Recv(ctx, c, buf, other, tag)
					must(t, err)
					if s.Bytes() != size || !slices.Equal(buf, pattern(round+tag, size)) {
						t.Errorf("round %d: %+v", round, s)
					}
				}
			}
			must(t, mpi.WaitAll(ctx, kept...))
		}
		must(t, c.Barrier(ctx))
		if n := c.World().Counters().Malformed; n > 0 {
			t.Errorf("%d records made no sense", n)
		}
	})
}

// Messages that come after a Revoke are dropped, too, and give their credit back.
func TestRevoke_DropsWhatComesLater(t *testing.T) {
	bubble(t, 2, fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		for range 5 {
			d, err := c.Dup(ctx)
			must(t, err)
			must(t, c.Barrier(ctx))
			if c.Rank() == 1 {
				d.Revoke() // the other one hears of it while its messages are under way
			} else {
				time.Sleep(100 * time.Microsecond)
				for range 600 {
					must(t, mpi.Send(ctx, d, []byte{1}, 1, 0))
				}
			}
			time.Sleep(time.Second)
			must(t, c.Barrier(ctx))
		}
		if kept := c.World().Counters().Kept; c.Rank() == 1 && kept > 0 {
			t.Errorf("%d messages are kept", kept)
		}
	})
}

// The answer to a send that a Revoke has ended completes no other send, which has taken its place.
func TestRevoke_AnswersNoOtherSend(t *testing.T) {
	delayed := fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}
	bubble(t, 2, delayed, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		d, err := c.Dup(ctx)
		must(t, err)
		must(t, c.Barrier(ctx))
		start := time.Now()
		if c.Rank() == 1 {
			time.Sleep(time.Second)
			must(t, second(mpi.Recv(ctx, c, make([]byte, 1), 0, 0)))
			must(t, c.Barrier(ctx))
			return
		}
		time.AfterFunc(100*time.Millisecond, d.Revoke)
		if err := mpi.Ssend(ctx, d, []byte{1}, 1, 0); !errors.Is(err, mpi.ErrRevoked) {
			t.Errorf("%v", err)
		}
		must(t, mpi.Ssend(ctx, c, []byte{1}, 1, 0))
		if took := time.Since(start); took < 900*time.Millisecond {
			t.Errorf("complete after %v, before it was received", took)
		}
		must(t, c.Barrier(ctx))
	})
}
