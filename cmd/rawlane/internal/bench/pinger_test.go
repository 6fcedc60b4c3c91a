package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// clientOf returns a client on the first of some nodes, and the ports of the others.
func clientOf(t *testing.T, nodes int) (c *client, others []*mcd.Port) {
	t.Helper()
	eps, closeAll, err := mcdtest.Start(nodes, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	c = &client{ep: eps[0], asked: time.Now()}
	if c.data, err = eps[0].OpenPort(benchData, mcd.PortOptions{}); err != nil {
		t.Fatal(err)
	}
	if c.ping, err = eps[0].OpenPort(benchPing, mcd.PortOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ep := range eps[1:] {
		port, err := ep.OpenPort(benchPing, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.peers, others = append(c.peers, ep.Node()), append(others, port)
	}
	return c, others
}

// echoOne echoes the next message to a port.
func echoOne(ctx context.Context, port *mcd.Port) error {
	b := make([]byte, 64)
	n, from, err := port.Recv(ctx, b)
	if err != nil {
		return err
	}
	return port.Send(ctx, from, b[:n])
}

// A late echo of a longer size is passed over, as one of the same size is.
func TestPinger_LateEchoOfALongerSize(t *testing.T) {
	for what, measure := range map[string]func(*client, context.Context) error{
		"round": func(c *client, ctx context.Context) error {
			p := c.pinger(1, 4)
			defer p.forget()
			_, err := p.round(ctx)
			return err
		},
		"logp": func(c *client, ctx context.Context) error {
			m := &logpClient{c: c, ping: c.pinger(1, 4), in: make([]byte, 5)}
			defer m.ping.forget()
			_, _, err := m.echoed(ctx)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, others := clientOf(t, 2)
				if err := others[0].Send(t.Context(), c.ping.Addr(), make([]byte, 64)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				echoed := make(chan error, 1)
				go func() { echoed <- echoOne(t.Context(), others[0]) }()
				if err := measure(c, t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-echoed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What was sent and lost was sent: of ten messages that five echoes answer, ten messages went both
// ways.
func TestLatency_LostMessagesWereSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, others := clientOf(t, 2)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { // until stop
			b := make([]byte, 4)
			for {
				n, from, err := others[0].Recv(ctx, b)
				if err != nil {
					return
				}
				time.Sleep(time.Millisecond)
				if binary.BigEndian.Uint32(b)%2 == 0 {
					_ = others[0].Send(ctx, from, b[:n]) // or one more is lost
				}
			}
		}()
		r := &result{SizeBytes: 4, Iters: 10}
		if err := c.latency(ctx, r); err != nil || r.Lost != 5 {
			t.Fatalf("%v, %d of 10 were lost", err, r.Lost)
		}
		if math.Abs(r.TxPerS/r.MsgsPerS-1) > 1e-9 || r.TxPerS == 0 {
			t.Errorf("%v sent a second, %v there and back, want as many", r.TxPerS, r.MsgsPerS)
		}
	})
}

// lateEchoes echoes what comes to a port after a while, one after the other; but some, by their count,
// later by themselves.
func lateEchoes(ctx context.Context, port *mcd.Port, after, later time.Duration, late map[int]bool) {
	for i := 0; ; i++ {
		b := make([]byte, 64)
		n, from, err := port.Recv(ctx, b)
		if err != nil {
			return
		}
		send := func() { _ = port.Send(ctx, from, b[:n]) }
		if late[i] {
			time.AfterFunc(later, send)
			continue
		}
		time.Sleep(after)
		send()
	}
}

// A late echo is taken for no other message's, also of those that have no room for a number, and in
// the warm-up: no round trip is shorter than the path.
func TestLatency_LateEchoes(t *testing.T) {
	const path = 20 * time.Millisecond
	for _, size := range []int{0, 1, 3, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, others := clientOf(t, 2)
				ctx, stop := context.WithCancel(t.Context())
				defer func() { stop(); time.Sleep(time.Second) }()         // late echoes end
				late := map[int]bool{1: true, 10: true, 11: true}          // of which the first warms up
				go lateEchoes(ctx, others[0], path, 5*pingTimeout/2, late) // until stop
				r := &result{SizeBytes: size, Iters: 40}
				if err := c.latency(ctx, r); err != nil || r.Lost != 2 {
					t.Fatalf("%v, %d of %d were lost", err, r.Lost, r.Iters)
				}
				if float64(r.MinUS) < float64(path.Microseconds())/2*0.99 {
					t.Errorf("half of a round trip took %v us, of a path of %v", r.MinUS, path)
				}
			})
		})
	}
}

// An echo that comes while a burst of LogP computes counts if it is that message's.
func TestEchoed_LateEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, others := clientOf(t, 2)
		if err := others[0].Send(t.Context(), c.ping.Addr(), make([]byte, 8)); err != nil { // as of another message
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go lateEchoes(ctx, others[0], time.Millisecond, 0, nil) // until stop
		m := &logpClient{c: c, ping: c.pinger(1, 8), in: make([]byte, 9)}
		defer m.ping.forget()
		if _, inTime, err := m.echoed(ctx); err != nil || inTime {
			t.Errorf("%v, a late echo was taken: %v", err, inTime)
		}
	})
}

// Nodes that are idle hear of node 0 while it warms up with another one, and while it sends batches,
// however long that takes.
func TestWarmUp_OthersHearOfNode0(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, others := clientOf(t, 3)
		heard := time.Now()
		longest := time.Duration(0) // without a word to node 2
		open := func(ep *mcd.Endpoint, answer func(mcd.NodeID, []byte) ([]byte, bool)) *cluster.Exchanger {
			x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{Answer: answer})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = x.Close() })
			return x
		}
		count := make([]byte, 8)
		c.x = open(c.ep, nil)
		open(others[0].Endpoint(), func(mcd.NodeID, []byte) ([]byte, bool) { return count, true })
		open(others[1].Endpoint(), func(mcd.NodeID, []byte) ([]byte, bool) {
			longest, heard = max(longest, time.Since(heard)), time.Now()
			return count, true
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { // until stop
			for echoOne(ctx, others[0]) == nil {
				time.Sleep(pingTimeout / 2)
			}
		}()
		p := c.pinger(1, 4)
		defer p.forget()
		if err := c.warmUp(ctx, p, int(2*launch.Silence/(pingTimeout/2))); err != nil {
			t.Fatal(err)
		}
		if longest = max(longest, time.Since(heard)); longest > launch.Silence/2 {
			t.Errorf("node 2 heard nothing for %v while node 0 warmed up", longest)
		}
		time.Sleep(launch.Silence / 2)
		if err := c.stream(ctx, newTimes(), c.batch(&result{Batch: 1, SizeBytes: 4}), 1); err != nil || time.Since(heard) > launch.Silence/6 {
			t.Errorf("node 2 has heard nothing for %v before a batch: %v", time.Since(heard), err)
		}
	})
}
