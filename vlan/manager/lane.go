package manager

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// lane is a session's own connection for its changes. It does what http.Client does for them, one
// at a time and without passing each on to goroutines: that is a sixth of the time of a change. Not
// for several goroutines at once.
type lane struct {
	dial   func(context.Context) (net.Conn, error)
	conn   net.Conn // nil: none yet
	reader *bufio.Reader
	writer *bufio.Writer
}

// onLane returns a client of the same manager whose requests go by one connection, one at a time.
func (c *Client) onLane() *Client {
	return &Client{addr: c.addr, host: c.host, dial: c.dial, transport: &lane{dial: c.dial}}
}

// RoundTrip sends a request and returns the answer. A request on a connection that the manager has
// closed meanwhile is sent once more on a new one: the requests of a session may be repeated.
func (l *lane) RoundTrip(r *http.Request) (w *http.Response, err error) {
	isNew := l.conn == nil
	if isNew {
		if l.conn, err = l.dial(r.Context()); err != nil {
			return nil, err
		}
		l.reader, l.writer = bufio.NewReader(l.conn), bufio.NewWriter(l.conn)
	}
	w, err = l.exchange(r)
	if err == nil {
		return w, nil
	}
	l.CloseIdleConnections()
	if isNew || r.Context().Err() != nil {
		return nil, err
	}
	again := *r
	if r.Body != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return l.RoundTrip(&again)
}

// exchange writes a request and reads its answer. The end of the request's context ends both, and
// the connection with them.
func (l *lane) exchange(r *http.Request) (*http.Response, error) {
	conn := l.conn
	stop := context.AfterFunc(r.Context(), func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	w, err := func() (*http.Response, error) {
		if err := r.Write(l.writer); err != nil {
			return nil, err
		}
		if err := l.writer.Flush(); err != nil {
			return nil, err
		}
		w, err := http.ReadResponse(l.reader, r)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
		w.Body = io.NopCloser(bytes.NewReader(b))
		return w, err
	}()
	if !stop() && err == nil {
		err = r.Context().Err()
	}
	return w, err
}

// CloseIdleConnections ends the connection.
func (l *lane) CloseIdleConnections() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing on it is of use any more
		l.conn = nil
	}
}
