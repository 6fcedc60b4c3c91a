package rawnet

import (
	"context"
	"io"
	"net"
)

// Read waits for bytes, and returns those that are there. Those that come while it waits go from
// the frame into b. Errors: io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET.
func (c *Conn) Read(b []byte) (int, error) {
	c.reads.Lock()
	defer c.reads.Unlock()
	n, owes, err := c.read(b)
	if owes {
		c.n.sendControl(c.peer)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // net returns the very value
		err = c.opError("read", err)
	}
	return n, err
}

// read reports whether control records are owed now, too.
func (c *Conn) read(b []byte) (n int, owes bool, err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		if err := c.readErr(); err != nil || len(b) == 0 {
			return 0, false, err
		}
		if n = c.s.Read(b[:min(len(b), maxCopy)]); n > 0 {
			return n, c.s.Owes(), nil
		}
		if c.s.EOF() {
			return 0, false, io.EOF
		}
		if reason, cause := c.s.Failure(); reason != 0 {
			return 0, false, resetError(reason, cause)
		}
		n, err = c.awaitBytes(b)
		if n > 0 {
			return n, c.s.Owes(), nil
		}
		if err != nil {
			return 0, false, err
		}
	}
}

// awaitBytes waits until the reader is woken, and returns how many bytes have come into b. They
// count as read also if await does not return: then b is the caller's again. The caller holds mu.
func (c *Conn) awaitBytes(b []byte) (n int, err error) {
	c.s.Post(b)
	defer func() { n = c.s.Unpost() }()
	return 0, c.n.await(context.Background(), &c.reader)
}

// readErr returns what ends reads whatever is there. The caller holds mu.
func (c *Conn) readErr() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.readDeadline.passed:
		return errTimeout
	}
	return nil
}

// WriteTo writes what comes to w until EOF. It implements io.WriterTo.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	b := c.n.borrow()
	defer c.n.giveBack(b)
	for {
		k, err := c.Read(b.memory[:cap(b.memory)])
		if k > 0 {
			m, err := w.Write(b.memory[:k])
			n += int64(m)
			if err == nil && m != k {
				err = io.ErrShortWrite
			}
			if err != nil {
				return n, err
			}
		}
		if err == io.EOF { //nolint:errorlint // Read returns the very value
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

var (
	_ io.WriterTo   = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
)
