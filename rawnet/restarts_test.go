package rawnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// restarts is a cluster whose nodes are cut off and restart at random. Each serves "echo".
type restarts struct {
	*cluster
	cfg     rawnet.Config
	mu      sync.Mutex // guards nets
	servers sync.WaitGroup
}

func (r *restarts) net(k int) *rawnet.Net {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nets[k]
}

// echo serves "echo" on a node, until its Net is closed.
func (r *restarts) echo(t *testing.T, n *rawnet.Net) {
	l, err := n.Listen("echo")
	must(t, err)
	r.servers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.servers.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
}

// disturb cuts a node off for up to 3 s, or restarts it, with a word to the others or without.
func (r *restarts) disturb(t *testing.T, rng *rand.Rand) {
	k := rng.IntN(len(r.nets))
	if rng.IntN(2) == 0 {
		r.faults[k].Cut(true)
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		r.faults[k].Cut(false)
		return
	}
	r.faults[k].Cut(rng.IntN(2) == 0)
	_ = r.net(k).Close()
	n, err := rawnet.Open(r.eps[k], r.cfg)
	must(t, err)
	r.mu.Lock()
	r.nets[k] = n
	r.mu.Unlock()
	r.faults[k].Cut(false)
	r.echo(t, n)
}

// ask sends a node some bytes and reads what comes back, which is a part of them, or all.
func (r *restarts) ask(t *testing.T, rng *rand.Rand) {
	wait := time.Duration(1+rng.IntN(5000)) * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	begun := time.Now()
	conn, err := r.net(rng.IntN(len(r.nets))).DialWait(ctx, rawnet.Network, fmt.Sprintf("%d:echo", rng.IntN(len(r.nets))))
	if took := time.Since(begun); took > wait {
		t.Errorf("a dial of %v took %v", wait, took)
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		return
	}
	data := make([]byte, 2+rng.IntN(1<<(1+rng.IntN(17))))
	for i := range data {
		data[i] = byte(i ^ i>>8)
	}
	pause := time.Duration(rng.IntN(50)) * time.Millisecond
	r.servers.Go(func() {
		_, _ = conn.Write(data[:len(data)/2])
		time.Sleep(pause)
		if _, err := conn.Write(data[len(data)/2:]); err == nil {
			_ = conn.(*rawnet.Conn).CloseWrite()
		}
	})
	got, err := io.ReadAll(conn)
	if len(got) > len(data) || string(got) != string(data[:len(got)]) {
		t.Errorf("%d bytes of %d came, and others", len(got), len(data))
	}
	if err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	_ = conn.Close()
}

// Nodes that restart and are cut off at random, while all dial each other: each wait ends, what
// comes is what was sent, and in the end there is no connection, and nobody is probed.
func TestConn_Restarts(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		o := options{nodes: 3, seed: seed, cfg: rawnet.Config{Window: []int{4096, 256 << 10}[seed%2], Backlog: 1 + int(seed%4)}}
		if seed%3 == 0 {
			o.fault = fault.Config{Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}
		}
		if seed%2 == 0 {
			o.wrap = func(_ mcd.NodeID, inner transport.Link) transport.Link { return trainsLink{inner} }
		}
		bubble(t, o, func(t *testing.T, c *cluster) {
			r := &restarts{cluster: c, cfg: o.cfg}
			for _, n := range r.nets {
				r.echo(t, n)
			}
			over := make(chan struct{})
			var disturber, asking sync.WaitGroup
			disturber.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Duration(rng.IntN(40)) * time.Millisecond):
						r.disturb(t, rng)
					}
				}
			})
			for k := range uint64(8) {
				asking.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 2+k))
					for range 10 {
						time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
						r.ask(t, rng)
					}
				})
			}
			asking.Wait()
			close(over)
			disturber.Wait()
			time.Sleep(time.Minute)
			for k, n := range r.nets {
				before := c.eps[k].Counters().TxMessages
				time.Sleep(time.Minute)
				s, sent := n.Counters(), c.eps[k].Counters().TxMessages-before
				if s.Conns != 0 || s.Violations+s.Malformed > 0 || sent > 0 {
					t.Errorf("seed %d, node %d: %d connections, %d frames in a minute, %+v", seed, k, s.Conns, sent, s)
				}
			}
			for _, n := range r.nets {
				must(t, n.Close())
			}
			r.servers.Wait()
		})
	}
}
