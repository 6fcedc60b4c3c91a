package rpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// leaving is a context that does in a wait what another port's function may do that the wait polls:
// it does not return.
type leaving struct {
	context.Context
	leave func()
}

func (c leaving) Done() <-chan struct{} { c.leave(); return nil }

// A call whose wait does not return, as another port's function panics in it or ends the goroutine,
// is given up like one whose context ends: its handler hears of that, and what comes later is not
// written to memory that is the caller's again.
func TestCall_WhoseWaitDoesNotReturn(t *testing.T) {
	for name, leave := range noreturn.Ways {
		bubble(t, 2, fault.Config{}, rpc.Config{}, func(t *testing.T, c *cluster) {
			began, ended, release := make(chan bool), make(chan error, 1), make(chan bool)
			c.serve(t, 1, "late", func(ctx context.Context, _ mcd.NodeID, _, resp []byte) ([]byte, error) {
				began <- true
				select {
				case <-ctx.Done():
				case <-release:
				}
				ended <- ctx.Err()
				return append(resp, "late"...), nil
			})
			memory := make([]byte, 4)
			ctx := leaving{context.Background(), func() { <-began; leave() }}
			go func() {
				defer func() { _ = recover() }()
				_, err := c.nodes[0].CallWith(ctx, 1, "late", nil, rpc.Options{Response: memory[:0]})
				t.Errorf("%s: the call has returned: %v", name, err)
			}()
			time.Sleep(time.Second)
			close(release)
			if err := <-ended; err == nil {
				t.Errorf("%s: the handler has not heard of it", name)
			}
			synctest.Wait()
			if s := c.nodes[0].Counters(); s.Unexpected != 1 || string(memory) != "\x00\x00\x00\x00" {
				t.Errorf("%s: %d responses to no call, and %q in the memory", name, s.Unexpected, memory)
			}
		})
	}
}
