package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/api"
)

const (
	// maxHandshakes bounds the connections of a listener that have not shown a certificate yet.
	// They are counted apart from those that have.
	maxHandshakes = 64
	// handshakeTimeout bounds the time for a handshake.
	handshakeTimeout = 5 * time.Second
	// acceptPause is the pause after a connection that could not be accepted, as when the process
	// has too many files open.
	acceptPause = 10 * time.Millisecond
	// handshakeLogInterval is the least time between two log entries about handshakes that failed.
	handshakeLogInterval = time.Second
)

// demandsCertificates returns why a configuration of TLS would let anybody in.
func demandsCertificates(c *tls.Config) error {
	if c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil {
		return errors.New("TLS without client certificates: anybody could change the routes " +
			"(want ClientAuth RequireAndVerifyClientCert, and ClientCAs)")
	}
	return nil
}

// harden returns a configuration that speaks TLS 1.3 alone and demands certificates in each
// handshake, whatever GetConfigForClient returns.
func harden(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = tls.VersionTLS13
	c.SessionTicketsDisabled = true // a resumed session would outlive a CA that was replaced
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			latest, err := get(hello)
			if err != nil || latest == nil {
				return nil, err
			}
			if err := demandsCertificates(latest); err != nil {
				return nil, err
			}
			latest = latest.Clone()
			latest.GetConfigForClient = nil
			return harden(latest), nil
		}
	}
	return c
}

// tlsListener accepts connections whose handshake has succeeded. Connections without a certificate
// do not take the places of those that have one: when too many are in their handshake, that of the
// address with the most of them is closed which has been there for longest.
type tlsListener struct {
	net.Listener
	server *Server
	config *tls.Config
	slots  chan struct{} // one is taken for each connection with a certificate
	ready  chan net.Conn
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  sync.WaitGroup // goroutines: accept, and one for each handshake

	mu      sync.Mutex
	pending []pendingConn // in their handshake, the oldest first; guarded by mu
	logged  time.Time     // guarded by mu
}

type pendingConn struct {
	net.Conn
	host string
}

func (s *Server) newTLSListener(inner net.Listener, config *tls.Config, most int) *tlsListener {
	l := &tlsListener{
		Listener: inner, server: s, config: harden(config),
		slots: make(chan struct{}, most), ready: make(chan net.Conn),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.ended.Go(l.acceptLoop) // until Close, which waits for it
	return l
}

// Accept implements net.Listener. Its connections are of type *tls.Conn, over *conn.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tlsListener) Close() error {
	l.cancel()
	err := l.Listener.Close()
	l.mu.Lock()
	for _, c := range l.pending {
		_ = c.Close() // nothing was agreed upon yet
	}
	l.mu.Unlock()
	l.ended.Wait()
	return err
}

func (l *tlsListener) acceptLoop() {
	for l.ctx.Err() == nil {
		c, err := l.Listener.Accept()
		if err != nil {
			select {
			case <-l.ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		p := pendingConn{c, hostOf(c.RemoteAddr())}
		l.admit(p)
		l.ended.Go(func() { l.handshake(p) }) // ends with the handshake, or with p
	}
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}

// admit adds a connection to those in their handshake, and closes one if they are too many.
func (l *tlsListener) admit(p pendingConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		_ = p.Close() // nothing was agreed upon yet
	}
	l.pending = append(l.pending, p)
	if len(l.pending) <= maxHandshakes {
		return
	}
	of := make(map[string]int)
	for _, c := range l.pending {
		of[c.host]++
	}
	victim := 0
	for i, c := range l.pending {
		if of[c.host] > of[l.pending[victim].host] {
			victim = i
		}
	}
	_ = l.pending[victim].Close() // its handshake fails
	l.remove(l.pending[victim])
}

// handshake makes a connection's handshake, and hands it over to Accept.
func (l *tlsListener) handshake(p pendingConn) {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	hasSlot := false
	t := tls.Server(newConn(p.Conn, func() {
		if hasSlot {
			<-l.slots
		}
	}), l.config)
	err := t.HandshakeContext(ctx) // closes the connection at ctx's end
	if err == nil {
		select {
		case l.slots <- struct{}{}:
			hasSlot = true
		case <-l.ctx.Done():
			err = l.ctx.Err()
		}
	}
	l.mu.Lock()
	l.remove(p)
	l.mu.Unlock()
	if err != nil {
		if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil {
			refusePlain(p.Conn)
		}
		_ = p.Close() // nothing was agreed upon
		l.failed(p, err)
		return
	}
	select {
	case l.ready <- t:
	case <-l.ctx.Done():
		_ = t.Close() // the server has ended
	}
}

// refusePlain answers a request without TLS.
func refusePlain(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	e, status := api.Refusal(fmt.Errorf("%w (want a certificate, its key and the CA: "+
		"--tls-cert, --tls-key and --tls-ca)", api.ErrTLSOnly))
	body, _ := json.Marshal(errorAnswer{e}) // text and numbers
	_, _ = fmt.Fprintf(c, "HTTP/1.0 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), body) // the client may be gone, which changes nothing here
}

// remove takes a connection out of those in their handshake. The caller holds mu.
func (l *tlsListener) remove(p pendingConn) {
	for i, c := range l.pending {
		if c.Conn == p.Conn {
			l.pending = append(l.pending[:i], l.pending[i+1:]...)
			return
		}
	}
}

// failed counts a handshake that has failed, and logs one in a while.
func (l *tlsListener) failed(p pendingConn, err error) {
	if l.ctx.Err() != nil {
		return
	}
	s := l.server
	s.mu.Lock()
	s.handshakesFailed++
	s.mu.Unlock()
	l.mu.Lock()
	now := time.Now()
	isDue := now.Sub(l.logged) >= handshakeLogInterval
	if isDue {
		l.logged = now
	}
	l.mu.Unlock()
	if isDue {
		s.log.Warn("a TLS handshake has failed", "from", p.RemoteAddr().String(), "err", err)
	}
}
