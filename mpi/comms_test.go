package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mpi/internal/consensus"
	"github.com/rawlane/rawlane/mpi/internal/wire"
	"github.com/rawlane/rawlane/transport/fault"
)

// A record about a communicator that is being made is kept until it is there, and passed on then; if
// none is being made, or none is made, it is dropped. What is kept is bounded.
func TestReceiveComm_BeforeTheCommunicator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		revoke := func(context uint32) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.receiveComm(1, wire.AppendComm(nil, &wire.Comm{Context: context, Revoke: true}))
		}
		comm := func(context uint32) *Comm {
			return &Comm{w: w, context: context, members: w.comm.members}
		}
		if err := revoke(2); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("none is being made: %v", err)
		}
		w.beginMaking()
		w.beginMaking()
		for _, context := range []uint32{2, 4} {
			if err := revoke(context); err != nil {
				t.Error(err)
			}
		}
		first, second, third := comm(2), comm(4), comm(6)
		otherFirst := &Comm{w: other, context: 2, members: w.comm.members, rank: 1}
		other.add(otherFirst)
		w.add(first)
		w.endMaking()
		w.add(third)
		synctest.Wait()
		if !first.Revoked() || !otherFirst.Revoked() || third.Revoked() || len(w.early) != 1 {
			t.Errorf("revoked: %v, on the other process %v, another one %v; %d are kept",
				first.Revoked(), otherFirst.Revoked(), third.Revoked(), len(w.early))
		}
		w.endMaking()
		w.add(second)
		if second.Revoked() || w.early != nil {
			t.Errorf("what came for a communicator that was not made then is kept: %v", w.early)
		}
		w.beginMaking()
		n := 0
		for ; revoke(8) == nil; n++ {
		}
		if n != 2*maxEarly {
			t.Errorf("%d records are kept", n)
		}
		w.endMaking()
		closeTwo(t, w, other)
	})
}

// Records about communicators that make no sense are counted.
func TestReceiveComm_WhatMakesNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		alone := &Comm{w: w, context: 2, members: w.comm.members[:1]}
		w.add(alone)
		for k, record := range [][]byte{
			wire.AppendComm(nil, &wire.Comm{Context: 2, Revoke: true}), // of no member
			wire.AppendComm(nil, &wire.Comm{Context: 4, Revoke: true}),
			wire.AppendComm(nil, &wire.Comm{Message: consensus.Message{Kind: consensus.Accept, Number: 1}}),
			wire.AppendComm(nil, &wire.Comm{Revoke: true})[:11],
		} {
			if err := other.all[0].To.Push(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := w.Counters().Malformed; n != uint64(k+1) {
				t.Errorf("%x: %d are counted", record, n)
			}
		}
		if alone.Revoked() || w.comm.Revoked() {
			t.Error("it was revoked")
		}
		closeTwo(t, w, other)
	})
}

// A window that is freed leaves nothing of its communicator.
func TestNewWin_LeavesNoCommunicator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		made := make(chan error, 2)
		for _, w := range []*World{w, other} {
			go func() {
				v, err := NewWin(t.Context(), w.Comm(), make([]int64, 4))
				if err == nil {
					err = v.Free(t.Context())
				}
				made <- err
			}()
		}
		for range 2 {
			if err := <-made; err != nil {
				t.Error(err)
			}
		}
		for _, w := range []*World{w, other} {
			if len(w.comms) != 1 || len(w.comm.windows) != 0 || len(w.windows) != 0 {
				t.Errorf("%d communicators, %d and %d windows", len(w.comms), len(w.comm.windows), len(w.windows))
			}
		}
	})
}

// A process that lives, and that others have agreed on without, hears that from each for which it
// waits: also from one that has found it down by the agreement alone.
func TestAgree_TellsWhoIsOut(t *testing.T) {
	freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		worlds[0].mu.Lock()
		worlds[0].fail(worlds[2].me.ID, errFound)
		worlds[0].mu.Unlock()
		inBoth(t, func(c *Comm) (err error) {
			if c.Rank() == 2 {
				_, err = Recv(ctx, d[2], make([]byte, 1), 1, 0)
			} else {
				_, err = d[c.Rank()].Agree(ctx, 1)
				time.Sleep(2 * time.Minute)
			}
			if !errors.Is(err, ErrProcessFailed) {
				return fmt.Errorf("rank %d: %w", c.Rank(), err)
			}
			return nil
		}, worlds...)
	})
}
