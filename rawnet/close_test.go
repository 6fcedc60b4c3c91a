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

// Connections that are accepted while a Net closes are closed, too: nobody waits at them for ever.
func TestClose_WhileConnectionsCome(t *testing.T) {
	for range 5 { // of which seven in eight find some where they stay open
		closeWhileConnectionsCome(t)
	}
}

func closeWhileConnectionsCome(t *testing.T) {
	t.Helper()
	c := open(t, options{spin: 20 * time.Microsecond, bare: true})
	for i := range 20_000 { // whose end takes some time, in which connections come
		_, err := c.nets[1].Listen(fmt.Sprint("idle ", i))
		must(t, err)
	}
	var accepting, dialing, first sync.WaitGroup
	var mu sync.Mutex // guards accepted
	var accepted []net.Conn
	for i := range 8 {
		l, err := c.nets[1].Listen(fmt.Sprint(i))
		must(t, err)
		first.Add(1)
		accepting.Go(func() {
			for n := 0; ; n++ {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				mu.Lock()
				accepted = append(accepted, conn)
				mu.Unlock()
				if n == 0 {
					first.Done()
				}
			}
		})
		dialing.Go(func() {
			for {
				if _, err := c.nets[0].Dial("", fmt.Sprint("1:", i)); err != nil {
					return
				}
			}
		})
	}
	first.Wait()
	must(t, c.nets[1].Close())
	accepting.Wait()
	open := 0
	for _, conn := range accepted {
		if err := conn.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			open++
		}
	}
	if open > 0 {
		t.Errorf("%d of %d connections are open still", open, len(accepted))
	}
	dialing.Wait()
}

// What was owed to a node that died is not for its next life: Close waits for nothing then, and names
// nobody.
func TestClose_BehindANodeThatDiedWithoutRoom(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		b, _ := c.pair(t, "y")
		c.stuff(t)
		must(t, a.Close())
		synctest.Wait()
		_, err := b.Read(make([]byte, 1))
		isOp(t, err, "read", memfifo.ErrPeerDown, "")
		begun := time.Now()
		if err := c.nets[0].Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// Who has ended its own half, and only looks, hears of a reset all the same, as of a TCP connection:
// "rawlane proxy" finds out so.
func TestWrite_ToldOfAResetBehindACloseWrite(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		for _, reset := range []func(b *rawnet.Conn){
			func(b *rawnet.Conn) { must(t, errors.Join(b.SetLinger(0), b.Close())) },
			func(*rawnet.Conn) { c.faults[1].Cut(true) },
		} {
			a, b := c.pair(t, "x")
			must(t, a.CloseWrite())
			_, err := a.Write(nil)
			isOp(t, err, "write", syscall.EPIPE, "")
			reset(b)
			time.Sleep(time.Minute)
			_, err = a.Write(nil)
			isOp(t, err, "write", syscall.ECONNRESET, "")
		}
	})
}
