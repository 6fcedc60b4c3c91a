package proxy

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// One end is reset while the proxy waits to write to it, which hears of that then: what the other end
// reads has no end that would say that it is whole.
func TestReset_HeardByTheOtherHalf(t *testing.T) {
	for _, who := range []string{"client", "server"} {
		t.Run(who, func(t *testing.T) {
			full, ended := make(chan struct{}), make(chan error, 1)
			reads := func(c *net.TCPConn) { // sends more than its other end reads, and then reads to the end
				_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
				_, _ = c.Write(make([]byte, 100_000_000))
				close(full) // a write that goes on would be the one that hears of the reset
				got, err := io.ReadAll(c)
				if err == nil {
					ended <- fmt.Errorf("an end behind %d bytes of what was cut off", len(got))
					return
				}
				ended <- nil
			}
			cuts := func(c *net.TCPConn) { // sends a part, reads nothing, and is reset
				_, _ = c.Write([]byte("a part"))
				<-full // the proxy has more than it can write
				reset(c)
			}
			server, client := reads, cuts
			if who == "server" {
				server, client = cuts, reads
			}
			addr, _, _ := chain(t, serve(t, server))
			client(dial(t, addr))
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("no end")
			}
		})
	}
}

// endsAsLookedAt is a connection whose other half ends just before it is looked at.
type endsAsLookedAt struct {
	*net.TCPConn
	ends *atomic.Bool
}

func (c *endsAsLookedAt) SyscallConn() (syscall.RawConn, error) {
	c.ends.Store(true)
	if err := c.CloseWrite(); err != nil {
		return nil, err
	}
	for !wasReset(c.TCPConn) { // until its other end has acknowledged that: the states are the same
		time.Sleep(time.Millisecond)
	}
	return c.TCPConn.SyscallConn()
}

// Where both halves end at one time, each is whole: neither is taken for one that was reset.
func TestHalf_BothEndAtOnce(t *testing.T) {
	server := serve(t, func(c *net.TCPConn) { _ = c.CloseWrite(); _, _ = io.ReadAll(c) })
	from := dial(t, server)
	read := make(chan error, 1)
	to := dial(t, serve(t, func(c *net.TCPConn) { _, err := io.ReadAll(c); read <- err }))
	var toEnds, fromEnds atomic.Bool
	ended, other := make(chan struct{}), make(chan struct{})
	close(other)
	half(to, &endsAsLookedAt{from, &fromEnds}, &toEnds, &fromEnds, ended, other)
	if err := <-read; err != nil || !toEnds.Load() {
		t.Errorf("%v; ended: %v", err, toEnds.Load())
	}
}
