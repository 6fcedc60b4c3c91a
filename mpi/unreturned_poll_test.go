package mpi

import (
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

// A multicast that is polled for, before there is a wait, is over too where the poll does not
// return.
func TestUnreturned_Poll(t *testing.T) {
	for name, leave := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := &leavingLink{}
				worlds := openEach(t, mcdtest.Open(t, 2, mcdtest.Config{
					Endpoint: mcd.Config{Spin: -1},
					Wrap: func(n mcd.NodeID, _ int, l transport.Link) transport.Link {
						if n > 0 {
							return l
						}
						link.Link = l
						return link
					},
				}), Config{})
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
				over := make(chan bool)
				for range 2 {
					link.leave.Store(&leave)
					go func() {
						defer func() { _ = recover(); over <- true }()
						_ = Bcast(t.Context(), worlds[0].Comm(), []int{0}, 1)
						t.Error("the call has returned")
					}()
					<-over
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
