package rawnet_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport/fault"
)

// Nodes that close at the same time, as those of a program that ends, are all content: nobody waits
// for a node that has left.
func TestClose_AllAtOnce(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, options{nodes: 3, seed: seed}, func(t *testing.T, c *cluster) {
			for k, n := range c.nets {
				_, err := n.Listen("x")
				must(t, err)
				for other := range c.nets[:k] {
					conn, err := n.Dial(rawnet.Network, fmt.Sprintf("%d:x", other))
					must(t, err)
					_, err = conn.Write(make([]byte, 1000*int(seed)))
					must(t, err)
				}
			}
			var all sync.WaitGroup
			for k, n := range c.nets {
				all.Go(func() {
					time.Sleep(time.Duration(uint64(k)*seed) * 10 * time.Microsecond)
					if err := n.Close(); err != nil {
						t.Errorf("seed %d, node %d: %v", seed, k, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// Close names a node that has not confirmed what was written to it, and not one of which those who
// wrote to it have heard before.
func TestClose_NamesTheSilent(t *testing.T) {
	bubble(t, options{nodes: 3}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		c.faults[1].Cut(true)
		_, err := a.Write([]byte("lost"))
		must(t, err)
		err = c.nets[0].Close()
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Node != 1 || down.Reason != memfifo.Silent {
			t.Errorf("%v, want node 1", err)
		}
	})
	bubble(t, options{nodes: 3}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		c.faults[1].Cut(true)
		_, err := a.Write([]byte("lost"))
		must(t, err)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		must(t, c.nets[0].Close())
	})
}

// What was written before a Close arrives, whichever end closes its Net first.
func TestClose_BehindWhatWasWritten(t *testing.T) {
	bubble(t, options{fault: fault.Config{Loss: .1, Reorder: .1}, seed: 3}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		_, err := a.Write(make([]byte, 200_000))
		must(t, err)
		must(t, c.nets[0].Close())
		got, err := io.ReadAll(b)
		if len(got) != 200_000 || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// A Close after SetLinger(0) tells the other end that what has come is not whole: its reads fail
// behind the data, and its writes. Any other number takes that back.
func TestClose_CutsOff(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		for _, sec := range []int{0, 1, -1} {
			a, b := c.pair(t, "x")
			_, err := a.Write([]byte("a part"))
			must(t, err)
			must(t, a.SetLinger(0))
			must(t, a.SetLinger(sec))
			must(t, a.Close())
			isOp(t, a.SetLinger(0), "set", net.ErrClosed, "")
			got, err := io.ReadAll(b)
			if string(got) != "a part" {
				t.Errorf("%q came", got)
			}
			_, werr := b.Write([]byte("x"))
			if sec == 0 {
				isOp(t, err, "read", syscall.ECONNRESET, "connection reset by peer: the other end has cut it off")
				isOp(t, werr, "write", syscall.ECONNRESET, "the other end has cut it off")
			} else {
				must(t, err)
				isOp(t, werr, "write", syscall.EPIPE, "")
			}
			must(t, b.SetLinger(0))
			must(t, b.Close()) // nobody is to hear of it any more
		}
		synctest.Wait()
		for node, n := range c.nets {
			if s := n.Counters(); s.NoStream+s.Violations > 0 {
				t.Errorf("node %d: %+v", node, s)
			}
		}
	})
}

// A second Close waits for the first: the port is free then.
func TestClose_Twice(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		c.faults[1].Cut(true)
		_, err := a.Write([]byte("x")) // which Close waits for
		must(t, err)
		for range 2 {
			go func() { _ = c.nets[0].Close() }()
		}
		synctest.Wait()
		must(t, c.nets[0].Close())
		n, err := rawnet.Open(c.eps[0], rawnet.Config{})
		must(t, err)
		must(t, n.Close())
	})
}

// Close does not name a node that has restarted since it confirmed all, with which there was
// nothing any more: nobody has heard of that before, and nothing is lost.
func TestClose_KnowsWhatWasConfirmed(t *testing.T) {
	for _, there := range []bool{true, false} {
		bubble(t, options{}, func(t *testing.T, c *cluster) {
			a, b := c.pair(t, "x")
			_, err := a.Write([]byte("x"))
			must(t, err)
			must(t, a.Close())
			must(t, b.Close())
			time.Sleep(time.Second)
			c.faults[1].Cut(true)
			_ = c.nets[1].Close() // which nobody hears
			if there {
				n, err := rawnet.Open(c.eps[1], rawnet.Config{})
				must(t, err)
				c.nets[1] = n
			}
			c.faults[1].Cut(false)
			time.Sleep(time.Minute)
			must(t, c.nets[0].Close())
		})
	}
}
