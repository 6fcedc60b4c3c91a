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
	// maxHandshakes bounds the connections of a listener that have not shown a certificate yet, and
	// apart from them those that have and wait for a place.
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
// do not take the places of those that have one: they are a crowd of their own. So are those with a
// certificate that find all places taken.
type tlsListener struct {
	net.Listener
	server  *Server
	config  *tls.Config
	longest time.Duration // for a handshake
	slots   chan struct{} // one is taken for each connection with a certificate
	ready   chan net.Conn
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	ended   sync.WaitGroup // goroutines: accept, and one for each guest of the two crowds
	shaking crowd          // in their handshake
	waiting crowd          // for a slot

	mu     sync.Mutex
	logged time.Time // guarded by mu
}

func (s *Server) newTLSListener(inner net.Listener, config *tls.Config, most int, longest time.Duration) *tlsListener {
	l := &tlsListener{
		Listener: inner, server: s, config: harden(config), longest: longest,
		slots: make(chan struct{}, most), ready: make(chan net.Conn),
		shaking: crowd{most: maxHandshakes}, waiting: crowd{most: maxHandshakes},
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
	l.cancel() // and with it each handshake
	err := l.Listener.Close()
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
		g := newGuest(l.ctx, c)
		l.shaking.add(g)
		l.ended.Go(func() { l.handshake(g) }) // ends with the handshake and the wait for a slot, or with g
	}
}

// handshake makes a connection's handshake, and hands it over to Accept.
func (l *tlsListener) handshake(g *guest) {
	defer g.end()
	ctx, cancel := context.WithTimeout(g.ctx, l.longest)
	defer cancel()
	hasSlot := false
	t := tls.Server(newConn(g.Conn, func() {
		if hasSlot {
			<-l.slots
		}
	}), l.config)
	err := t.HandshakeContext(ctx) // closes the connection at ctx's end
	l.shaking.remove(g)
	if err == nil {
		err = l.takeSlot(g)
		hasSlot = err == nil
	}
	if err != nil {
		if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil {
			refusePlain(g.Conn)
		}
		_ = g.Close() // nothing was agreed upon
		l.failed(g, err)
		return
	}
	select {
	case l.ready <- t:
	case <-l.ctx.Done():
		_ = t.Close() // the server has ended
	}
}

// takeSlot waits for a place, as long as not too many others do.
func (l *tlsListener) takeSlot(g *guest) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	l.waiting.add(g)
	defer l.waiting.remove(g)
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-g.ctx.Done():
		return errCrowded
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

// failed counts a connection that was not served, and logs one in a while.
func (l *tlsListener) failed(g *guest, err error) {
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
		s.log.Warn("a TLS handshake has failed", "from", g.RemoteAddr().String(), "err", err)
	}
}
