package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// leavingLink is a link of which one Poll does not return, as that calls a function of a port's.
type leavingLink struct {
	transport.Link
	leave atomic.Pointer[func()]
}

func (l *leavingLink) Poll(frames []transport.Frame) (int, error) {
	if leave := l.leave.Swap(nil); leave != nil {
		(*leave)()
	}
	return l.Link.Poll(frames)
}

func (l *leavingLink) Unwrap() transport.Link { return l.Link }

// left calls a function that polls, and does not return.
func (l *leavingLink) left(t *testing.T, leave, call func()) {
	t.Helper()
	l.leave.Store(&leave)
	over := make(chan bool)
	go func() {
		defer func() { _ = recover(); over <- true }()
		call()
		t.Error("the call has returned")
	}()
	<-over
}

// leavable is two worlds, and the first one's link.
func leavable(t *testing.T) ([]*World, *leavingLink) {
	t.Helper()
	link := &leavingLink{}
	return openEach(t, mcdtest.Open(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(n mcd.NodeID, _ int, l transport.Link) transport.Link {
			if n > 0 {
				return l
			}
			link.Link = l
			return link
		},
	}), Config{}), link
}

// A multicast that is polled for, before there is a wait, is over too where the poll does not
// return.
func TestUnreturned_Poll(t *testing.T) {
	for name, leave := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worlds, link := leavable(t)
				sums := func(count int) {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					inBoth(t, func(c *Comm) error {
						for k := range count {
							sum := []int{0}
							err := errors.Join(Allreduce(ctx, c, []int{1}, sum, Sum), Bcast(ctx, c, sum, k%2))
							if err != nil || sum[0] != 2 {
								return fmt.Errorf("rank %d, %d: %d, %w", c.Rank(), k, sum[0], err)
							}
						}
						return nil
					}, worlds...)
				}
				sums(1)
				synctest.Wait()
				for range 2 {
					link.left(t, leave, func() { _ = Bcast(t.Context(), worlds[0].Comm(), []int{0}, 1) })
					if err := Bcast(t.Context(), worlds[1].Comm(), []int{0}, 1); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				sums(3 * multicastWindow)
				closeTwo(t, worlds[0], worlds[1])
			})
		})
	}
}

// A message that is about to be written, where the call does not return that has begun to, is
// written all the same: its receiver waits for it.
func TestUnreturned_Write(t *testing.T) {
	for name, leave := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worlds, link := leavable(t)
				data, got := bytes.Repeat([]byte{1}, 4<<20), make([]byte, 4<<20)
				message := func(from int, data []byte) {
					t.Helper()
					inBoth(t, func(c *Comm) (err error) {
						if c.Rank() == from {
							return Send(t.Context(), c, data, 1-from, 0)
						}
						_, err = Recv(t.Context(), c, make([]byte, len(data)), from, 0)
						return err
					}, worlds...)
				}
				message(0, data) // many frames: behind an answer, who sends more polls first
				message(1, data[:1])
				r := Irecv(worlds[1].Comm(), got, 0, 0)
				synctest.Wait()
				written := worlds[0].Counters().Written
				link.left(t, leave, func() { Isend(worlds[0].Comm(), data, 1, 0) })
				if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(got, data) {
					t.Errorf("the receive: %v", err)
				}
				if n := worlds[0].Counters().Written - written; n != 1 {
					t.Errorf("%d were written, want 1", n)
				}
				message(0, data)
				message(1, data)
				closeTwo(t, worlds[0], worlds[1])
			})
		})
	}
}
