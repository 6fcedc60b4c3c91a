package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// SocketMode is the mode of a manager's Unix socket: its user and its group may use it.
const SocketMode fs.FileMode = 0o660

// maxConns bounds the connections of each listener: two for each session, and as many again.
// Further ones wait to be accepted.
const maxConns = 4 * maxSessions

// Address is where a manager is to listen.
type Address struct {
	Network string // "unix" or "tcp"
	Address string // a path, or HOST:PORT
	// TLS, if not nil, is how connections are authenticated: see Server.Listen.
	TLS *tls.Config
	// ReadOnly has everybody who can connect read what is there, as Server.ListenReadOnly does. It
	// is for TCP without TLS.
	ReadOnly bool
}

// Listen serves requests on an address, network being "unix" or "tcp", until Close, and returns the
// address: a port of 0 stands for any free one.
//
// A Unix socket has SocketMode. A socket that a dead manager has left is removed. On TCP, any
// client that connects may change the routes: an address other than a loopback one needs a
// tlsConfig that demands client certificates (ClientAuth: tls.RequireAndVerifyClientCert, and
// ClientCAs), and is refused without. TLS is 1.3. A GetConfigForClient of tlsConfig, as for
// certificates that change, has to return such a configuration, too.
//
// A loopback address without TLS is open to all users of the machine.
func (s *Server) Listen(network, address string, tlsConfig *tls.Config) (net.Addr, error) {
	return s.listen(Address{Network: network, Address: address, TLS: tlsConfig})
}

// ListenReadOnly serves GET /metrics, /v1/health, /v1/paths and /v1/version on a TCP address, to
// everybody who can connect, and nothing else: for scrapers. Its connections are bounded apart;
// further ones have that of the host with the most of them closed which is there for longest.
func (s *Server) ListenReadOnly(address string) (net.Addr, error) {
	return s.listen(Address{Network: "tcp", Address: address, ReadOnly: true})
}

func (s *Server) listen(a Address) (net.Addr, error) {
	l, err := s.open(a)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return s.serve(l)
}

// listener is one that is open, and how it is served.
type listener struct {
	net.Listener
	at      Address
	server  *http.Server
	bounded func(net.Listener) net.Listener
}

// open opens a listener. Connections wait until it is served.
func (s *Server) open(a Address) (*listener, error) {
	made, err := newListener(a)
	if err != nil {
		return nil, listenError(a.Network, a.Address, err)
	}
	l := &listener{Listener: made, at: a, server: s.http}
	switch {
	case a.ReadOnly:
		l.server = s.readOnly
		l.bounded = func(l net.Listener) net.Listener { return newCrowdListener(l, maxScrapers) }
	case a.TLS != nil:
		l.bounded = func(l net.Listener) net.Listener { return s.newTLSListener(l, a.TLS, maxConns, handshakeTimeout) }
	default:
		l.bounded = func(l net.Listener) net.Listener { return newLimitedListener(l, maxConns) }
	}
	return l, nil
}

func listenError(network, address string, err error) error {
	cure := ""
	if network == "tcp" && errors.Is(err, syscall.EADDRINUSE) {
		cure = " (another process listens there: end that one, or give another address)"
	}
	if network == "tcp" && errors.Is(err, syscall.EACCES) {
		cure = " (ports below 1024 take CAP_NET_BIND_SERVICE: run as root, or " +
			"setcap cap_net_bind_service+ep PROGRAM, or give another port)"
	}
	if network == "tcp" && errors.Is(err, syscall.EADDRNOTAVAIL) {
		cure = " (no interface here has that address: ip addr lists those that there are)"
	}
	if network == "unix" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)) {
		cure = " (want a folder that is there and that this user may write to: --socket chooses)"
	}
	return fmt.Errorf("listen on %s %s: %w%s", network, address, err, cure)
}

// serve has an HTTP server serve a listener, with its bounds, until Close.
func (s *Server) serve(l *listener) (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(api.ErrClosed, l.Close())
	}
	addr := l.Addr()
	if l.at.Network == "tcp" && l.at.TLS == nil && !l.at.ReadOnly {
		s.log.Warn("every user of this machine can change the routes by this address (the Unix socket is for "+
			"one group alone; TLS is for certificates)", "address", addr.String())
	}
	s.served.Go(func() { // until Close closes the listener
		if err := l.server.Serve(l.bounded(l.Listener)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("a listener has failed", "address", addr.String(), "err", err)
		}
	})
	return addr, nil
}

func newListener(a Address) (net.Listener, error) {
	switch {
	case a.ReadOnly && (a.Network != "tcp" || a.TLS != nil):
		return nil, errors.New("read-only (that is for TCP without TLS)")
	case a.ReadOnly:
	case a.Network == "unix" && a.TLS != nil:
		return nil, errors.New("TLS is for TCP (a Unix socket has its file's mode)")
	case a.Network == "unix":
		return unixsocket.Listen("unix", a.Address, SocketMode)
	case a.Network != "tcp":
		return nil, fmt.Errorf("network %q (want unix or tcp)", a.Network)
	case a.TLS != nil:
		if err := demandsCertificates(a.TLS); err != nil {
			return nil, err
		}
	default:
		if err := loopbackOnly(a.Address); err != nil {
			return nil, err
		}
	}
	return net.Listen("tcp", a.Address)
}

// loopbackOnly refuses an address by which other machines could connect.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w (want HOST:PORT)", err)
	}
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return errors.New("not a loopback address, and no TLS: anybody could change the routes " +
			"(give a certificate, a key and the CA of the clients, or listen on 127.0.0.1)")
	}
	return nil
}
