package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// limitedListener bounds the connections that are open at once. Further ones wait to be accepted.
type limitedListener struct {
	net.Listener
	slots  chan struct{} // one is taken for each connection
	closed chan struct{}
	once   sync.Once
}

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener. Its connections are of type *conn.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return newConn(c, func() { <-l.slots }), nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is a client's connection.
type conn struct {
	net.Conn
	// caller is the process at the other end, or its address.
	caller  string
	release func()
	once    sync.Once
}

// newConn asks the system for the other end of a connection. release is called once, when it is
// closed.
func newConn(c net.Conn, release func()) *conn {
	caller := ""
	if addr := c.RemoteAddr(); addr != nil {
		caller = addr.String()
	}
	if u, ok := c.(*net.UnixConn); ok {
		caller = credentials(u)
	}
	return &conn{Conn: c, caller: caller, release: release}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// withCaller keeps who is at the other end of a connection in the context of its requests.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if own, ok := c.(*conn); ok {
		return context.WithValue(ctx, callerKey{}, own.caller)
	}
	return ctx
}

// callerOf says who has made a request, for the log and the journal of changes: a user and process
// by a Unix socket, a certificate by TLS, else an address. It is empty for the server's own
// changes.
func callerOf(r *http.Request) string {
	if r == nil {
		return ""
	}
	caller, _ := r.Context().Value(callerKey{}).(string)
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return fmt.Sprintf("certificate %s at %s", certificateName(r.TLS.PeerCertificates[0]), caller)
	}
	return caller
}

// maxCertificateName bounds the part of a certificate's name that is shown, in bytes.
const maxCertificateName = 128

// certificateName is what a certificate was issued for, and its serial number.
func certificateName(c *x509.Certificate) string {
	name := c.Subject.CommonName
	switch {
	case name != "":
	case len(c.DNSNames) > 0:
		name = c.DNSNames[0]
	case len(c.URIs) > 0:
		name = c.URIs[0].String()
	}
	if len(name) > maxCertificateName {
		name = name[:maxCertificateName]
	}
	return fmt.Sprintf("%s serial %x", strconv.Quote(name), c.SerialNumber)
}
