package rawnet_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/rawnet"
)

// joining is a context that has a node join as it is asked for the second time: behind the look
// whether the node can be probed, and before the dial is sent.
type joining struct {
	context.Context
	asked int
	join  func()
}

func (c *joining) Err() error {
	if c.asked++; c.asked == 2 {
		c.join()
	}
	return c.Context.Err()
}

// A node that joins while it is dialed is probed as others are: its death is not missed.
func TestDial_ANodeThatJoins(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		l, err := c.nets[1].Listen("x")
		must(t, err)
		defer l.Close()
		nodes := c.eps[0].Nodes()
		must(t, c.eps[0].SetNodes(nodes[:1]))
		ctx := &joining{Context: limit(t), join: func() { must(t, c.eps[0].SetNodes(nodes)) }}
		conn, err := c.nets[0].DialContext(ctx, rawnet.Network, "1:x")
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		c.faults[1].Cut(true)
		_, err = conn.Read(make([]byte, 1))
		isOp(t, err, "read", syscall.ECONNRESET, "node 1 has not answered")
	})
}

// So is one that joins and dials, while a dial to it ends before it is sent.
func TestAccept_OfANodeThatJoins(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		l, err := c.nets[0].Listen("x")
		must(t, err)
		defer l.Close()
		nodes := c.eps[0].Nodes()
		must(t, c.eps[0].SetNodes(nodes[:1]))
		dialed, cancel := context.WithCancel(limit(t))
		var conn net.Conn
		ctx := &joining{Context: dialed, join: func() {
			must(t, c.eps[0].SetNodes(nodes))
			_, err := c.nets[1].Dial(rawnet.Network, "0:x")
			must(t, err)
			conn, err = l.Accept()
			must(t, err)
			cancel()
		}}
		_, err = c.nets[0].DialContext(ctx, rawnet.Network, "1:x")
		isOp(t, err, "dial", context.Canceled, "")
		must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		c.faults[1].Cut(true)
		_, err = conn.Read(make([]byte, 1))
		isOp(t, err, "read", syscall.ECONNRESET, "node 1 has not answered")
	})
}
