package server

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of pipes.
type pipes struct {
	ctx context.Context // ends with Close
	end context.CancelFunc
	in  chan net.Conn
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.in:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error { l.end(); return nil }

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A connection that never makes its handshake is closed, and gives back no place: it had none.
func TestSilentHandshakesTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		inner := &pipes{in: make(chan net.Conn)}
		inner.ctx, inner.end = context.WithCancel(t.Context())
		l := s.newTLSListener(inner, &tls.Config{}, 2)
		l.slots <- struct{}{} // a connection with a certificate
		client, conn := net.Pipe()
		inner.in <- conn
		begin := time.Now()
		if _, err := client.Read(make([]byte, 1)); err == nil || time.Since(begin) != handshakeTimeout {
			t.Errorf("after %v: %v, want the end of the connection after %v", time.Since(begin), err, handshakeTimeout)
		}
		if err := l.Close(); err != nil || len(l.slots) != 1 {
			t.Errorf("%v; %d places are taken, want 1", err, len(l.slots))
		}
	})
}
