package rawnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

// stuff leaves no room in node 0's connection to node 1: it writes on a stream until its window is
// full, where nothing is confirmed any more. The network between them is cut.
func (c *cluster) stuff(t *testing.T) {
	t.Helper()
	c.fill(t, 0, func() { c.faults[0].Cut(true) })
}

// fill leaves no room in the connection of one of nodes 0 and 1 to the other: it writes on streams
// until their windows are full, once silence has cut the way.
func (c *cluster) fill(t *testing.T, node mcd.NodeID, silence func()) {
	t.Helper()
	var filler []*rawnet.Conn
	for range 8 {
		a, b := c.pair(t, "filler")
		filler = append(filler, []*rawnet.Conn{a, b}[node])
	}
	silence()
	for _, conn := range filler {
		go func() { _, _ = conn.Write(make([]byte, 1<<20)) }()
	}
	synctest.Wait()
}

// What a node owes another one goes when there is room again, in order, and no caller waits for it:
// a connection is accepted, is closed, and takes what was read, however full the way was.
func TestControl_WaitsForRoom(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
		closed, other := c.pair(t, "closed")
		half, rest := c.pair(t, "half")
		for range 2 { // both ends have something to say then
			_, err := closed.Write([]byte("bye"))
			must(t, err)
		}
		l, err := c.nets[0].Listen("slow")
		must(t, err)
		synctest.Wait()
		c.stuff(t)
		begun := time.Now()
		must(t, closed.Close())
		must(t, half.CloseWrite())
		if took := time.Since(begun); took != 0 {
			t.Errorf("the calls took %v", took)
		}
		dialed := make(chan net.Conn)
		go func() {
			conn, err := c.nets[1].Dial(rawnet.Network, "0:slow") // comes where there is no room for the answer
			if err != nil {
				t.Error(err)
			}
			dialed <- conn
		}()
		synctest.Wait()
		c.faults[0].Cut(false)
		got, err := io.ReadAll(other)
		if string(got) != "byebye" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := io.ReadAll(rest); len(got) != 0 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		conn, err := l.Accept()
		must(t, err)
		there := <-dialed
		_, err = there.Write([]byte("hello"))
		must(t, err)
		must(t, there.Close())
		if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A node is probed while there are connections with it, at either end, and not any longer.
func TestConn_ProbesWhileItIsOpen(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		frames := func(node int) uint64 {
			before := c.eps[node].Counters().TxMessages
			time.Sleep(time.Minute)
			return c.eps[node].Counters().TxMessages - before
		}
		for node := range 2 {
			if n := frames(node); n < 20 {
				t.Errorf("node %d has sent %d frames in a minute with a connection", node, n)
			}
		}
		must(t, a.Close())
		must(t, b.Close())
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		for node := range 2 {
			if n := frames(node); n > 0 {
				t.Errorf("node %d has sent %d frames in a minute without connections", node, n)
			}
		}
	})
}

// A node whose connections nobody has accepted is probed no longer than it has them.
func TestConn_ProbesNobodyWhoHasGivenUp(t *testing.T) {
	for _, how := range []string{"close", "reset", "give up"} {
		bubble(t, options{}, func(t *testing.T, c *cluster) {
			_, err := c.nets[1].Listen("x")
			must(t, err)
			a, err := c.nets[0].Dial(rawnet.Network, "1:x")
			must(t, err)
			switch how {
			case "reset":
				must(t, a.(*rawnet.Conn).SetLinger(0))
			case "give up":
				c.faults[1].Cut(true)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := c.nets[0].DialContext(ctx, rawnet.Network, "1:x")
				isOp(t, err, "dial", context.DeadlineExceeded, "")
				c.faults[1].Cut(false)
			}
			must(t, a.Close())
			time.Sleep(3 * memfifo.DefaultPeerTimeout)
			before := c.eps[1].Counters().TxMessages
			time.Sleep(time.Minute)
			if n := c.eps[1].Counters().TxMessages - before; n > 0 {
				t.Errorf("%s: %d frames in a minute", how, n)
			}
		})
	}
}

// A dial that is under way while its node restarts is for the node's next life.
func TestDial_NodeRestartsMeanwhile(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		must(t, a.Close())
		must(t, b.Close())
		time.Sleep(time.Second) // all is confirmed
		c.faults[1].Cut(true)
		_ = c.nets[1].Close() // which nobody confirms
		done := make(chan error, 1)
		go func() { _, err := c.nets[0].Dial(rawnet.Network, "1:x"); done <- err }()
		synctest.Wait()
		n, err := rawnet.Open(c.eps[1], rawnet.Config{})
		must(t, err)
		c.nets[1] = n
		_, err = n.Listen("x")
		must(t, err)
		c.faults[1].Cut(false)
		must(t, <-done)
	})
}

// An endpoint that is closed before its Net ends every wait.
func TestWaits_EndWithTheEndpoint(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 16 << 20}}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		l, err := c.nets[0].Listen("y")
		must(t, err)
		p, err := c.nets[0].ListenPacket("")
		must(t, err)
		c.faults[1].Cut(true) // so a Write waits for room
		ends := map[string]chan error{}
		for op, wait := range map[string]func() error{
			"read":   func() error { _, err := a.Read(make([]byte, 1)); return err },
			"write":  func() error { _, err := a.Write(make([]byte, 10<<20)); return err },
			"accept": func() error { _, err := l.Accept(); return err },
			"dial":   func() error { _, err := c.nets[0].Dial("", "1:nobody"); return err },
		} {
			end := make(chan error)
			ends[op] = end
			go func() { end <- wait() }()
		}
		packet := make(chan error)
		go func() { _, _, err := p.ReadFrom(nil); packet <- err }()
		synctest.Wait()
		must(t, c.eps[0].Close())
		for op, end := range ends {
			err := <-end
			if isOp(t, err, op, net.ErrClosed, ""); errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v: no peer has reset it", err)
			}
		}
		isOp(t, <-packet, "read", net.ErrClosed, "")
	})
}

// The end that has dialed is named by a number, in hexadecimal digits, that counts up.
func TestAddresses_OfDialers(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		last := uint64(0)
		for i := range 20 {
			a, b := c.pair(t, "x")
			addr, ok := a.LocalAddr().(rawnet.Addr)
			number, err := strconv.ParseUint(addr.Service, 16, 64)
			if !ok || err != nil || addr.Node != 0 || i > 0 && number != last+1 || b.RemoteAddr() != addr {
				t.Errorf("connection %d is %v, behind %x: %v", i, addr, last, err)
			}
			last = number
			must(t, a.Close())
			must(t, b.Close())
		}
	})
}

// Numbers of nodes are decimal, up to the greatest that there may be.
func TestResolve_Numbers(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		for _, node := range []mcd.NodeID{0, 9, 10, 11, 4000, mcd.MaxNodeID} {
			if a := c.addr(t, strconv.Itoa(int(node))+":x"); a.Node != node || a.Service != "x" {
				t.Errorf("node %d is %v", node, a)
			}
		}
		for _, bad := range []string{"1a:x", "-1:x", "70000:x", strconv.Itoa(int(mcd.MaxNodeID)+1) + ":x"} {
			if a, err := c.nets[0].Resolve(bad); err == nil {
				t.Errorf("%s is %v", bad, a)
			}
		}
	})
}

// The names of nodes are those that there were as the Net was opened: a caller may use its map again.
func TestOpen_CopiesNames(t *testing.T) {
	names := map[string]mcd.NodeID{"storage": 1}
	bubble(t, options{cfg: rawnet.Config{Names: names}}, func(t *testing.T, c *cluster) {
		names["storage"] = 0
		if addr, err := c.nets[0].Resolve("storage:x"); err != nil || addr.Node != 1 {
			t.Errorf("%v, %v", addr, err)
		}
	})
}
