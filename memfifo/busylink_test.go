package memfifo_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// slowLink takes a few frames at a time, as a line of 1 Gbit/s does.
type slowLink struct {
	transport.Link
	mu   sync.Mutex
	tick time.Time // when it has taken frames last
	left int       // how many more it takes until the next tick
}

const (
	slowTick   = 100 * time.Microsecond
	slowFrames = 8 // in each
)

func (l *slowLink) Unwrap() transport.Link { return l.Link }

func (l *slowLink) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now().Truncate(slowTick); now != l.tick {
		l.tick, l.left = now, slowFrames
	}
	n := min(l.left, len(frames))
	sent, err := l.Link.Send(frames[:n])
	l.left -= sent
	if err == nil && sent < len(frames) {
		err = transport.ErrBusy
	}
	return sent, err
}

// Operations have their turn at a link for which others' messages wait all the time, be these for
// the same node, for another one or for all.
func TestPut_BesideMessagesThatFillTheLink(t *testing.T) {
	const port = 9
	for name, to := range map[string]mcd.Dest{
		"the same node": mcd.To(mcd.Addr{Node: 1, Port: port}),
		"another node":  mcd.To(mcd.Addr{Node: 2, Port: port}),
		"all":           mcd.ToAll(port),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{}
				c.start(t, 3, mcdtest.Config{
					Endpoint: mcd.Config{Spin: -1},
					Wrap: func(_ mcd.NodeID, _ int, inner transport.Link) transport.Link {
						return &slowLink{Link: inner}
					},
				})
				w := c.window(t, 1, 64)
				p, err := c.eps[0].OpenPort(port, mcd.PortOptions{})
				must(t, err)
				ctx, cancel := context.WithCancel(limit(t))
				var sending sync.WaitGroup
				defer sending.Wait()
				defer cancel()
				for range 2 * slowFrames {
					sending.Go(func() {
						for ctx.Err() == nil {
							if err := p.SendVia(ctx, 0, to, nil); err != nil && ctx.Err() == nil {
								t.Error(err)
							}
						}
					})
				}
				time.Sleep(10 * slowTick)
				begun := time.Now()
				must(t, c.domains[0].Remote(w.Key()).Put(ctx, 0, []byte{1}))
				must(t, c.domains[0].Flush(ctx))
				if took := time.Since(begun); took > 100*slowTick {
					t.Errorf("a put beside others' messages took %v", took)
				}
			})
		})
	}
}
