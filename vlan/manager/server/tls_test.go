package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
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
	return a.issueTo(t, "")
}

// issueTo makes a certificate for 127.0.0.1 with a name.
func (a *authority) issueTo(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
	if err := ask(nil); !errors.Is(err, api.ErrTLSOnly) || !errors.Is(err, api.ErrProtocol) || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("HTTP to an HTTPS port: %v", err)
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

// serveTLS has a manager listen, and returns its address and a client's configuration.
func serveTLS(t *testing.T, n *managertest.Node, name string) (addr string, client *tls.Config) {
	t.Helper()
	ca := newAuthority(t)
	a, err := n.Listen("tcp", "127.0.0.1:0", ca.server(t))
	if err != nil {
		t.Fatal(err)
	}
	return a.String(), &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issueTo(t, name)}}
}

// server is a server's configuration.
func (a *authority) server(t testing.TB) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t)}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// patience is far longer than an answer takes.
const patience = 20 * time.Second

// health asks a manager by TLS.
func health(t *testing.T, addr string, config *tls.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := manager.NewClient(manager.Addr{Network: "tcp", Address: addr}, config)
	defer c.Close()
	_, err := c.Health(ctx)
	return err
}

// Connections that show no certificate do not keep those that do from being served, however many
// they are: the oldest of them are closed.
func TestConnectionsWithoutACertificateHoldNobodyUp(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	ca := newAuthority(t)
	a, err := n.ListenPatiently("127.0.0.1:0", ca.server(t)) // no handshake ends by itself
	if err != nil {
		t.Fatal(err)
	}
	addr, client := a.String(), &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue(t)}}
	const idle, kept = 1100, 64 // more than a listener serves at once; the server's maxHandshakes
	var conns []net.Conn
	for range idle {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	if err := health(t, addr, client); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	for _, c := range conns[:idle-kept] {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("one of the oldest connections without a certificate: %v, want it closed", err)
		}
	}
	if _, text, _ := n.Ask(t, "GET", "/metrics", ""); strings.Contains(text, "rawlane_manager_handshakes_failed_total 0\n") {
		t.Error("failed handshakes are not counted")
	}
}

// The certificates and the CA may be other ones from the next connection on; what is not safe is
// refused then, too.
func TestCertificatesMayChange(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	first, second := newAuthority(t), newAuthority(t)
	var latest atomic.Pointer[tls.Config]
	latest.Store(first.server(t))
	config := latest.Load().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return latest.Load(), nil }
	addr, err := n.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	of := func(a *authority) *tls.Config {
		return &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t)}}
	}
	expect := func(when string, a *authority, good bool) {
		t.Helper()
		if err := health(t, addr.String(), of(a)); (err == nil) != good {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("before", first, true)
	expect("before, the other CA's", second, false)
	latest.Store(second.server(t))
	expect("after", second, true)
	expect("after, the old CA's", first, false)
	open := second.server(t)
	open.ClientAuth = tls.NoClientCert
	latest.Store(open)
	expect("a configuration that demands no certificate", second, false)
	old := second.server(t)
	old.MaxVersion = tls.VersionTLS12
	latest.Store(old)
	expect("a configuration of TLS 1.2", second, false)
}

// The log says who has asked for a change.
func TestLogNamesTheCaller(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	addr, client := serveTLS(t, n, "ops \x1b[2J")
	plain, err := n.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	change := func(c *manager.Client) string {
		t.Helper()
		defer c.Close()
		if _, err := c.Reset(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		l, err := n.Client.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l.Entries[len(l.Entries)-1].From
	}
	tcp := func(addr string) manager.Addr { return manager.Addr{Network: "tcp", Address: addr} }
	if got := change(manager.NewClient(tcp(addr), client)); !strings.HasPrefix(got, `certificate "ops \x1b[2J" serial 2 at 127.0.0.1:`) {
		t.Errorf("by TLS: %q", got)
	}
	if got := change(manager.NewClient(tcp(plain.String()), nil)); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("by TCP: %q", got)
	}
	want := ""
	if runtime.GOOS == "linux" {
		want = fmt.Sprintf("uid %d gid %d pid %d", os.Getuid(), os.Getgid(), os.Getpid())
	}
	if got := change(manager.NewClient(manager.Addr{Network: "unix", Address: n.Socket}, nil)); got != want {
		t.Errorf("by a Unix socket: %q, want %q", got, want)
	}
	table, err := n.Client.Table(t.Context())
	if err != nil || table.PlanFrom != want {
		t.Errorf("the table: %q, %v", table.PlanFrom, err)
	}
	h, err := n.Client.History(t.Context())
	if err != nil || len(h.Past) < 2 || !strings.HasPrefix(h.Past[len(h.Past)-1].From, "127.0.0.1:") {
		t.Errorf("the history: %+v, %v", h, err)
	}
}

// A read-only address answers scrapers, and nothing that could change or tell the routes.
func TestReadOnlyAddress(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	addr, err := n.ListenReadOnly("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr.String()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Close = true
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		return w.StatusCode
	}
	for _, path := range []string{"/metrics", "/v1/health", "/v1/paths", "/v1/version"} {
		if got := ask("GET", path); got != 200 {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	for _, c := range [][2]string{{"GET", "/v1/table"}, {"PUT", "/v1/table"}, {"PATCH", "/v1/pairs"}, {"POST", "/v1/reset"}, {"POST", "/v1/rollback"},
		{"POST", "/v1/prepare"}, {"POST", "/v1/commit"}, {"POST", "/v1/abort"}, {"POST", "/v1/sessions"}, {"GET", "/v1/history"}, {"GET", "/v1/log"},
		{"GET", "/v1/counters"}, {"POST", "/metrics"}, {"DELETE", "/v1/sessions/x/pairs"}} {
		if got := ask(c[0], c[1]); got != 404 && got != 405 {
			t.Errorf("%s %s: %d", c[0], c[1], got)
		}
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
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		network, address string
		config           *tls.Config
		want             string
	}{
		{"tcp", taken.Addr().String(), nil, "(another process listens there: end that one, or give another address)"},
		{"tcp", "0.0.0.0:0", nil, "not a loopback address, and no TLS: anybody could change the routes"},
		{"tcp", ":0", nil, "not a loopback address"},
		{"tcp", "192.0.2.1:0", nil, "not a loopback address"},
		{"tcp", "node7.example:0", nil, "not a loopback address"},
		{"tcp", "127.0.0.1", nil, "want HOST:PORT"},
		{"tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}}, "TLS without client certificates"},
		{"tcp", "0.0.0.0:0", &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven}, "TLS without client certificates"},
		{"tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert}, "TLS without client certificates"},
		{"unix", filepath.Join(t.TempDir(), "s"), &tls.Config{}, "TLS is for TCP"},
		{"unix", n.Socket, nil, "another process listens there"},
		{"unix", file, nil, "there is a file of that name that is no socket"},
		{"udp", "127.0.0.1:0", nil, `network "udp" (want unix or tcp)`},
	} {
		if addr, err := n.Listen(c.network, c.address, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, %v; want %q", c.network, c.address, addr, err, c.want)
		}
	}
	if _, err := n.ListenReadOnly("198.51.100.1:0"); err == nil || !strings.Contains(err.Error(), "(no interface here has that address:") {
		t.Errorf("another host's address: %v", err)
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

// A manager that ends leaves the socket of another one alone that is in its place by now.
func TestASuccessorsSocketStays(t *testing.T) {
	first := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	if err := os.Remove(first.Socket); err != nil {
		t.Fatal(err)
	}
	second, err := server.New(server.Config{MAC: managertest.MAC(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Listen("unix", first.Socket, nil); err != nil {
		t.Fatal(err)
	}
	first.Stop()
	if a, err := manager.NewClient(manager.Addr{Network: "unix", Address: first.Socket}, nil).About(t.Context()); err != nil || a.MAC != managertest.MAC(1) {
		t.Errorf("%+v, %v", a, err)
	}
}

// A socket that accepts no connection now may still be a manager's: only one that refuses them is
// removed.
func TestABusySocketIsNotRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // fill its queue: nobody accepts
		c, err := net.DialTimeout("unix", path, 100*time.Millisecond)
		if err != nil {
			break
		}
		defer c.Close()
	}
	n := managertest.Start(t, 0, nil, t.TempDir())
	if _, err := n.Listen("unix", path, nil); err == nil || !strings.Contains(err.Error(), "does another process listen there?") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	info, err := os.Stat(n.Socket)
	if err != nil || info.Mode().Perm() != 0o660 { // documented: its user and its group
		t.Errorf("mode %v, %v; want 0660", info.Mode(), err)
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
