package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate for 127.0.0.1, for both ends.
func (a *authority) issue(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSWithClientCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(t)}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert}
	addr, err := n.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(config *tls.Config) error {
		c := manager.NewClient(manager.Addr{Network: "tcp", Address: addr.String()}, config)
		defer c.Close()
		_, err := c.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(1), VID: 2}}, "", 0)
		return err
	}
	good := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue(t)}}
	for name, config := range map[string]*tls.Config{
		"without a certificate": {RootCAs: ca.pool}, "another CA's": {RootCAs: ca.pool, Certificates: []tls.Certificate{other.issue(t)}},
		"that trusts another CA": {RootCAs: other.pool, Certificates: []tls.Certificate{ca.issue(t)}},
	} {
		if err := ask(config); !errors.Is(err, api.ErrUnreachable) {
			t.Errorf("a client %s: %v", name, err)
		}
	}
	if err := ask(nil); err == nil { // HTTP to an HTTPS port
		t.Error("without TLS it was answered")
	}
	if r, _ := n.Routes(); r[0].Tag.VID != 1 {
		t.Fatalf("somebody has changed %v", r[0])
	}
	if err := ask(good); err != nil {
		t.Errorf("a good client: %v", err)
	}
	old := good.Clone()
	old.MaxVersion = tls.VersionTLS12
	if err := ask(old); !errors.Is(err, api.ErrUnreachable) {
		t.Errorf("a client of TLS 1.2: %v", err)
	}
	d := manager.Dialer{TLS: good}
	s, err := d.Dial(t.Context(), "tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 3); err != nil || managertest.VID(s.Table(), 1) != 3 {
		t.Errorf("a session: %v, VID %d", err, managertest.VID(s.Table(), 1))
	}
	if _, err := manager.Dial(t.Context(), "tcp", addr.String()); !errors.Is(err, api.ErrProtocol) {
		t.Errorf("a session without TLS: %v", err)
	}
}

// Where anybody could change the routes, the manager does not listen.
func TestListenRefuses(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	cert := newAuthority(t).issue(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		network, address string
		config           *tls.Config
		want             string
	}{
		{"tcp", "0.0.0.0:0", nil, "not a loopback address, and no TLS: anybody could change the routes"},
		{"tcp", ":0", nil, "not a loopback address"},
		{"tcp", "192.0.2.1:0", nil, "not a loopback address"},
		{"tcp", "node7.example:0", nil, "not a loopback address"},
		{"tcp", "127.0.0.1", nil, "want HOST:PORT"},
		{"tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}}, "TLS without client certificates"},
		{"tcp", "0.0.0.0:0", &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven}, "TLS without client certificates"},
		{"tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert}, "TLS without client certificates"},
		{"unix", filepath.Join(t.TempDir(), "s"), &tls.Config{}, "TLS is for TCP"},
		{"unix", n.Socket, nil, "another manager answers there"},
		{"unix", file, nil, "there is a file of that name that is no socket"},
		{"udp", "127.0.0.1:0", nil, `network "udp" (want unix or tcp)`},
	} {
		if addr, err := n.Listen(c.network, c.address, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, %v; want %q", c.network, c.address, addr, err, c.want)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file is %q, %v", b, err)
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		if _, err := n.Listen("tcp", address, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	info, err := os.Stat(n.Socket)
	if err != nil || info.Mode().Perm() != server.SocketMode {
		t.Errorf("mode %v, %v; want %v", info.Mode(), err, server.SocketMode)
	}
	n.Stop()
	if _, err := os.Stat(n.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	// One that a dead manager has left is in nobody's way.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: n.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	n = managertest.Start(t, 0, nil, dir)
	if _, err := n.Client.Health(t.Context()); err != nil {
		t.Error(err)
	}
}
