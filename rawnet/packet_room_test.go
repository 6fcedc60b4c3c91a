package rawnet_test

import (
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
)

// fullLink is a link that has no room while it is full.
type fullLink struct {
	transport.Link
	full atomic.Bool
}

func (l *fullLink) Unwrap() transport.Link { return l.Link }

func (l *fullLink) Send(frames []transport.Frame) (int, error) {
	if l.full.Load() {
		return 0, transport.ErrBusy
	}
	return l.Link.Send(frames)
}

// WriteTo waits while the link has no room: until there is some, until its deadline, also one that is
// set meanwhile, or until the connection or its Net is closed.
func TestPacketConn_WaitsForRoom(t *testing.T) {
	var link *fullLink
	wrap := func(node mcd.NodeID, inner transport.Link) transport.Link {
		if node != 0 {
			return inner
		}
		link = &fullLink{Link: inner}
		return link
	}
	bubble(t, options{wrap: wrap}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		to := c.addr(t, "1:time")
		ends := make(chan error, 1)
		write := func() {
			n, err := a.WriteTo([]byte("x"), to)
			if (n == 1) != (err == nil) {
				t.Errorf("%d bytes, %v", n, err)
			}
			ends <- err
		}
		waits := func() {
			t.Helper()
			go write()
			if synctest.Wait(); len(ends) > 0 {
				t.Fatalf("it does not wait: %v", <-ends)
			}
		}
		end := func() error {
			t.Helper()
			select {
			case err := <-ends:
				return err
			case <-time.After(100 * time.Millisecond):
				link.full.Store(false)
				t.Fatal("it waits still")
			}
			return nil
		}
		link.full.Store(true)
		waits()
		link.full.Store(false)
		must(t, end())
		_, _, err := b.ReadFrom(make([]byte, 1))
		must(t, err)

		link.full.Store(true)
		begun := time.Now()
		must(t, a.SetWriteDeadline(begun.Add(10*time.Millisecond)))
		waits()
		isOp(t, end(), "write", os.ErrDeadlineExceeded, "")
		write()
		isOp(t, end(), "write", os.ErrDeadlineExceeded, "")
		if took := time.Since(begun); took != 10*time.Millisecond {
			t.Errorf("they took %v", took)
		}
		must(t, a.SetWriteDeadline(time.Time{}))
		waits()
		must(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
		isOp(t, end(), "write", os.ErrDeadlineExceeded, "")
		must(t, a.SetWriteDeadline(time.Time{}))
		waits()
		must(t, a.SetReadDeadline(time.Now()))
		if synctest.Wait(); len(ends) > 0 {
			t.Errorf("that of reads ends a write: %v", <-ends)
		}
		must(t, a.Close())
		isOp(t, end(), "write", net.ErrClosed, "")

		a, err = c.nets[0].ListenPacket("")
		must(t, err)
		waits()
		must(t, c.nets[0].Close())
		isOp(t, end(), "write", net.ErrClosed, "")
		link.full.Store(false)
	})
}

// The deadlines of reads and of writes are apart.
func TestPacketConn_DeadlinesAreApart(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		one := make([]byte, 1)
		must(t, a.SetWriteDeadline(time.Now()))
		_, err := b.WriteTo(one, a.LocalAddr())
		must(t, err)
		_, _, err = a.ReadFrom(one)
		must(t, err)
		_, err = a.WriteTo(one, b.LocalAddr())
		isOp(t, err, "write", os.ErrDeadlineExceeded, "")
		must(t, b.SetReadDeadline(time.Now()))
		_, err = b.WriteTo(one, a.LocalAddr())
		must(t, err)
		_, _, err = b.ReadFrom(one)
		isOp(t, err, "read", os.ErrDeadlineExceeded, "")
	})
}

// Senders that take turns are told apart: services of one node, and those of one name on several.
func TestPacketConn_SendersAreToldApart(t *testing.T) {
	bubble(t, options{nodes: 3}, func(t *testing.T, c *cluster) {
		to, err := c.nets[2].ListenPacket("x")
		must(t, err)
		var from []net.PacketConn
		for _, x := range []struct {
			node    int
			service string
		}{{0, "a"}, {0, "b"}, {1, "a"}, {1, "b"}, {0, "b"}, {0, "a"}, {1, "a"}, {2, "a"}, {1, "a"}} {
			p, err := c.nets[x.node].ListenPacket(x.service)
			if err == nil {
				from = append(from, p)
			} else {
				for _, q := range from {
					if q.LocalAddr() == (rawnet.Addr{Node: mcd.NodeID(x.node), Service: x.service}) {
						from = append(from, q)
						break
					}
				}
			}
		}
		for _, p := range from {
			_, err := p.WriteTo([]byte("x"), to.LocalAddr())
			must(t, err)
			if _, sender, err := to.ReadFrom(make([]byte, 1)); sender != p.LocalAddr() || err != nil {
				t.Errorf("%v, %v: want %v", sender, err, p.LocalAddr())
			}
		}
	})
}
