package rpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// Requests that wait leave their places as nobody waits for them any more: their callers have given
// up, their deadlines have passed, or their node is down. Their handlers do not run, and are not
// counted as if they had.
func TestBacklog_IsOfThoseWhoWait(t *testing.T) {
	const backlog = 3
	for _, how := range []string{"cancelled", "late", "down"} {
		bubble(t, 3, fault.Config{}, rpc.Config{Concurrency: 1, Backlog: backlog}, func(t *testing.T, c *cluster) {
			hold := make(chan struct{})
			s := c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
				<-hold
				return nil, nil
			})
			call := func(ctx context.Context, from int) chan error {
				done := make(chan error, 1)
				go func() { _, err := c.nodes[from].Call(ctx, 1, "hold", nil); done <- err }()
				synctest.Wait()
				return done
			}
			running := call(t.Context(), 0)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if how == "late" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
			}
			var over []chan error
			for range backlog {
				over = append(over, call(ctx, 2))
			}
			switch how {
			case "cancelled":
				cancel()
			case "late":
				time.Sleep(10 * time.Millisecond)
			case "down":
				c.faults[2].Cut(true)
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			var waiting []chan error
			for range backlog {
				waiting = append(waiting, call(t.Context(), 0))
			}
			close(hold)
			must(t, <-running)
			for i, done := range waiting {
				if err := <-done; err != nil {
					t.Errorf("%s: call %d: %v", how, i, err)
				}
			}
			for _, done := range over {
				if err := <-done; err == nil {
					t.Errorf("%s: a call that is over has a response", how)
				}
			}
			if s := c.nodes[1].Counters(); s.Served != 1+backlog || s.Refused != backlog {
				t.Errorf("%s: %d served and %d refused, want %d and %d", how, s.Served, s.Refused, 1+backlog, backlog)
			}
			must(t, s.Close()) // it waits for none of them
		})
	}
}

// Each request leaves its place as its own deadline passes, in whichever order they came, also if its
// node is not heard, which would say so.
func TestBacklog_DeadlinesPassOneByOne(t *testing.T) {
	deadlines := []time.Duration{2 * time.Second, time.Second, 3 * time.Second}
	cfg := rpc.Config{Concurrency: 1, Backlog: len(deadlines), PeerTimeout: time.Minute}
	bubble(t, 3, fault.Config{}, cfg, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		c.serve(t, 1, "hold", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			<-hold
			return nil, nil
		})
		call := func(ctx context.Context, from int) chan error {
			done := make(chan error, 1)
			go func() { _, err := c.nodes[from].Call(ctx, 1, "hold", nil); done <- err }()
			synctest.Wait()
			return done
		}
		answered := []chan error{call(t.Context(), 0)}
		for _, d := range deadlines {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			call(ctx, 2)
		}
		c.faults[2].Cut(true)
		for range deadlines {
			time.Sleep(time.Second)
			answered = append(answered, call(t.Context(), 0))
		}
		close(hold)
		for i, done := range answered {
			if err := <-done; err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}
