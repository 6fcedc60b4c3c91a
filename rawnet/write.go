package rawnet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// Write sends b. It returns when b may be reused; it waits while the other end's window is full.
// Writes of several goroutines go one after the other. Errors: net.ErrClosed,
// os.ErrDeadlineExceeded, syscall.EPIPE (the other end has closed, or CloseWrite was called),
// syscall.ECONNRESET.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	for {
		k, err := c.write(b[n:])
		n += k
		if err != nil {
			return n, c.opError("write", err)
		}
		if n == len(b) {
			return n, nil
		}
	}
}

// write sends some of b, in one turn. The caller holds c.writes.
func (c *Conn) write(b []byte) (int, error) {
	n, buf, err := c.awaitCredit(len(b))
	if n == 0 || err != nil {
		return 0, err
	}
	pushed := false
	defer func() {
		if !pushed {
			c.cutOff()
		}
		c.n.giveBack(buf)
	}()
	done := n
	if n <= c.n.chunk {
		rec := append(c.s.AppendHeader(buf.memory[:0]), b[:n]...)
		if err = c.peer.To.Push((*writeContext)(c), rec); err != nil {
			done = 0
		}
	} else {
		buf.split(c.s, b[:n], c.n.chunk)
		err = c.peer.To.PushBatch((*writeContext)(c), buf.records...)
		if e, ok := errors.AsType[*memfifo.BatchError](err); ok {
			done, err = e.Done*c.n.chunk, e.Err
		}
	}
	pushed = true
	if err != nil {
		return done, c.unsent(n-done, err)
	}
	return done, nil
}

// split makes records of b, all but the last of them of a full frame.
func (r *recordBuffer) split(s *mux.Stream, b []byte, chunk int) {
	memory := r.memory[:0]
	r.records = r.records[:0]
	for len(b) > 0 {
		from, n := len(memory), min(len(b), chunk)
		memory = append(s.AppendHeader(memory), b[:n]...)
		r.records = append(r.records, memory[from:])
		b = b[n:]
	}
}

// awaitCredit takes credit for up to n bytes, and a buffer for them; it waits while there is none.
// It takes 0 and no buffer for n == 0.
func (c *Conn) awaitCredit(n int) (int, *recordBuffer, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		c.allowWrites()
		if err := c.writeErr(); err != nil || n == 0 {
			return 0, nil, err
		}
		if credit := c.s.Credit(); credit > 0 {
			n = min(n, credit, writeBatch*c.n.chunk)
			c.s.Sent(n)
			return n, c.n.getBuffer(), nil
		}
		if err := c.n.await(context.Background(), &c.writer); err != nil {
			return 0, nil, err
		}
	}
}

// cutOff resets the connection where a push does not return: some of it may have gone.
func (c *Conn) cutOff() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.events = c.s.CutOff(c.n.events[:0])
	c.n.deliver()
	c.n.startControl(c.peer)
}

// unsent gives the credit of what was not sent back, and says why it was not: nil if that is over,
// and Write goes on.
func (c *Conn) unsent(n int, err error) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.s.Unsent(n)
	own := c.writeErr()
	switch {
	case own != nil:
		return own
	case errors.Is(err, errTimeout): // the deadline that has passed was moved meanwhile
		return nil
	case errors.Is(err, memfifo.ErrPeerDown):
		return resetError(mux.PeerDown, err)
	}
	return endOf(err)
}

// writeErr returns what ends writes. The caller holds mu.
func (c *Conn) writeErr() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.writeDeadline.passed:
		return errTimeout
	}
	if reason, cause := c.s.Failure(); reason != 0 {
		return resetError(reason, cause) // also behind CloseWrite, as of TCP: who only looks is told
	}
	if c.writeClosed || c.s.Broken() {
		return syscall.EPIPE
	}
	return nil
}

// ReadFrom sends what comes from r until EOF. It implements io.ReaderFrom.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	b := c.n.borrow()
	defer c.n.giveBack(b)
	for {
		k, err := r.Read(b.memory[:cap(b.memory)])
		if k > 0 {
			m, err := c.Write(b.memory[:k])
			n += int64(m)
			if err != nil {
				return n, err
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// writeContext ends the waits of a Write for room in the connection between the nodes. It is the
// Conn by another name, so that a Write allocates nothing.
type writeContext Conn

// Deadline reports none: the connection's own timer ends the wait.
func (*writeContext) Deadline() (at time.Time, ok bool) { return at, false }

// Value returns nil.
func (*writeContext) Value(any) any { return nil }

// Done is closed when the connection is, when its deadline passes, and when its peer is down.
func (w *writeContext) Done() <-chan struct{} {
	c := (*Conn)(w)
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.stop == nil {
		c.stop = make(chan struct{})
		if c.writesEnded.Load() {
			close(c.stop)
		}
	}
	return c.stop
}

// Err returns why Done is closed. It is not nil then, though the deadline was moved meanwhile: who
// finds Done closed and no error takes a record for sent that was taken back.
func (w *writeContext) Err() error {
	c := (*Conn)(w)
	if !c.writesEnded.Load() {
		return nil
	}
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return cmp.Or(c.writeErr(), errTimeout)
}
