package rawnet

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// Conn is a connection: a stream of bytes each way, in order and once. It is a net.Conn with half
// closes, as a net.TCPConn.
type Conn struct {
	n             *Net
	s             *mux.Stream // Net.mu guards it
	peer          *node
	local, remote Addr

	reads  sync.Mutex // one Read at a time waits
	writes sync.Mutex // one Write at a time sends; taken before Net.mu

	writesEnded atomic.Bool // Write ends with writeErr, or looks again; changed under Net.mu

	// Net.mu guards what follows.
	reader, writer              waiter
	readDeadline, writeDeadline deadline
	stop                        chan struct{} // closed when writesEnded is set; nil: nobody has waited for it
	closed                      bool
	writeClosed                 bool
	cutsOff                     bool // Close does: SetLinger(0) was called
}

var _ net.Conn = (*Conn)(nil)

func (n *Net) newConn(s *mux.Stream, local, remote Addr) *Conn {
	c := &Conn{n: n, s: s, peer: n.layer.Node(remote.Node), local: local, remote: remote}
	s.Owner = c
	return c
}

// LocalAddr returns this end's Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

func (c *Conn) opError(op string, err error) error { return opError(op, c.local, c.remote, err) }

// endWrites ends the Write that waits, and those to come, until allowWrites. The caller holds mu.
func (c *Conn) endWrites() {
	if !c.writesEnded.Swap(true) && c.stop != nil {
		close(c.stop)
	}
	c.writer.wake()
}

// allowWrites lets a Write go on, with a new deadline. It is for the beginning of a turn: one whose
// context has ended stays so. The caller holds writes and mu.
func (c *Conn) allowWrites() {
	if c.writesEnded.Load() && c.writeErr() == nil {
		c.stop = nil
		c.writesEnded.Store(false)
	}
}

// CloseWrite ends the sending half: the other end reads EOF behind what was written.
func (c *Conn) CloseWrite() error {
	if err := c.endHalf(&c.writeClosed, c.endWrites); err != nil {
		return c.opError("close", err)
	}
	c.writes.Lock() // a Write that is under way ends first
	c.n.mu.Lock()
	c.s.CloseWrite()
	c.n.mu.Unlock()
	c.writes.Unlock()
	c.n.sendControl(c.peer)
	return nil
}

// CloseRead ends the receiving half: reads return EOF, and what comes is dropped. The other end is
// not told, as by TCP's shutdown: it may go on to write.
func (c *Conn) CloseRead() error {
	ended := false
	err := c.endHalf(&ended, func() {
		c.s.CloseRead()
		c.reader.wake()
	})
	if err != nil {
		return c.opError("close", err)
	}
	c.n.sendControl(c.peer)
	return nil
}

// Close ends both halves: the other end reads EOF behind what was written, and its writes fail.
// Waits end with net.ErrClosed. After SetLinger(0) the other end's reads and writes fail with
// syscall.ECONNRESET.
func (c *Conn) Close() error {
	err := c.endHalf(&c.closed, func() {
		c.endWrites()
		c.reader.wake()
		c.readDeadline.stop()
		c.writeDeadline.stop()
	})
	if err != nil {
		return c.opError("close", err)
	}
	c.closeStream()
	return nil
}

// closeStream does what Close has left to do, once a Write that is under way has ended. A second
// goroutine may do it, too: then it has been done when either returns.
func (c *Conn) closeStream() {
	c.writes.Lock()
	c.n.mu.Lock()
	if c.cutsOff {
		c.s.Reset()
	} else {
		c.s.Close()
	}
	c.n.mu.Unlock()
	c.writes.Unlock()
	c.n.sendControl(c.peer)
}

// SetLinger says how Close ends the connection. With 0 the other end hears that it was cut off, as
// what was sent is not whole; with any other number, and without it, that it has ended. It is that
// of a net.TCPConn, but waits for nothing and drops nothing.
func (c *Conn) SetLinger(sec int) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.cutsOff = sec == 0
	return nil
}

// endHalf sets what says that a half, or all, has ended, and does the rest with mu held.
func (c *Conn) endHalf(ended *bool, do func()) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	*ended = true
	do()
	return nil
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline sets when Read ends with os.ErrDeadlineExceeded, now and later. Zero is never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline sets when Write ends with os.ErrDeadlineExceeded: it may have sent a part.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *Conn) setDeadlines(t time.Time, read, write bool) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	if read {
		c.readDeadline.set(c.n, t, &c.reader)
	}
	if write {
		c.writeDeadline.set(c.n, t, (*writeContext)(c))
	}
	return nil
}
