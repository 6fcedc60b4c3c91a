package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
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
		l := s.newTLSListener(inner, &tls.Config{}, 2, handshakeTimeout)
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

// Clients with a certificate that find all places taken wait, and not too many of them: who is one
// too many is closed at once, and not when a place is free.
func TestClientsThatWaitForAPlaceAreBounded(t *testing.T) {
	ca := newTestAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		inner := &pipes{in: make(chan net.Conn)}
		inner.ctx, inner.end = context.WithCancel(t.Context())
		l := s.newTLSListener(inner, ca.server(), 1, handshakeTimeout)
		l.slots <- struct{}{} // the only place is taken
		var clients []*tls.Conn
		for range maxHandshakes + 1 {
			client, conn := net.Pipe()
			inner.in <- conn
			c := tls.Client(client, ca.client())
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
			synctest.Wait() // it has got in line
		}
		begin := time.Now()
		if _, err := clients[0].Read(make([]byte, 1)); err == nil || time.Since(begin) > 0 {
			t.Errorf("the oldest one: %v after %v, want its end at once", err, time.Since(begin))
		}
		time.Sleep(2 * handshakeTimeout) // the others go on waiting
		<-l.slots
		served, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = served.Close()
		l.waiting.mu.Lock()
		n := len(l.waiting.all)
		l.waiting.mu.Unlock()
		if n != maxHandshakes-1 && n != maxHandshakes-2 { // the next one may have the place
			t.Errorf("%d wait, want %d or one less", n, maxHandshakes-1)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, c := range clients {
			_ = c.NetConn().Close()
		}
	})
}

// A stranger's handshakes, however many, do not end the wait of a client that has a certificate.
func TestStrangersDoNotEndTheWaitForAPlace(t *testing.T) {
	ca := newTestAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		s := testServer(t, "")
		defer s.Close()
		inner := &pipes{in: make(chan net.Conn)}
		inner.ctx, inner.end = context.WithCancel(t.Context())
		l := s.newTLSListener(inner, ca.server(), 1, handshakeTimeout)
		l.slots <- struct{}{}
		pipe, conn := net.Pipe()
		inner.in <- conn
		client := tls.Client(pipe, ca.client())
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 * maxHandshakes {
			stranger, conn := net.Pipe()
			defer stranger.Close()
			inner.in <- conn
		}
		synctest.Wait()
		<-l.slots
		served, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = client.Write([]byte{7}) }() // until it is read
		b := make([]byte, 1)
		if n, err := served.Read(b); n != 1 || err != nil || b[0] != 7 {
			t.Errorf("%d bytes, %v", n, err)
		}
		_ = served.Close()
		_ = pipe.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// testAuthority has certificates of both ends.
type testAuthority struct {
	cert tls.Certificate
	pool *x509.CertPool
}

func newTestAuthority(t *testing.T) *testAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(1000 * time.Hour),
		DNSNames: []string{"manager"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAuthority{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

func (a *testAuthority) server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.cert}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func (a *testAuthority) client() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.cert}, RootCAs: a.pool, ServerName: "manager"}
}
