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
	l, err := listen(network, address, tlsConfig)
	if err != nil {
		return nil, listenError(network, address, err)
	}
	if network == "tcp" && tlsConfig == nil {
		s.log.Warn("every user of this machine can change the routes by this address (the Unix socket is for "+
			"one group alone; TLS is for certificates)", "address", l.Addr().String())
	}
	if tlsConfig != nil {
		return s.serve(s.http, l, func(l net.Listener) net.Listener {
			return s.newTLSListener(l, tlsConfig, maxConns, handshakeTimeout)
		})
	}
	return s.serve(s.http, l, func(l net.Listener) net.Listener { return newLimitedListener(l, maxConns) })
}

// ListenReadOnly serves GET /metrics, /v1/health, /v1/paths and /v1/version on a TCP address, to
// everybody who can connect, and nothing else: for scrapers. Its connections are bounded apart;
// further ones have that of the host with the most of them closed which is there for longest.
func (s *Server) ListenReadOnly(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError("tcp", address, err)
	}
	return s.serve(s.readOnly, l, func(l net.Listener) net.Listener { return newCrowdListener(l, maxScrapers) })
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
	return fmt.Errorf("manager: listen on %s %s: %w%s", network, address, err, cure)
}

// serve has an HTTP server serve a listener, with its bounds, until Close.
func (s *Server) serve(
	server *http.Server, l net.Listener, bounded func(net.Listener) net.Listener,
) (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(api.ErrClosed, l.Close())
	}
	addr := l.Addr()
	l = bounded(l)
	s.served.Go(func() { // until Close closes the listener
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("a listener has failed", "address", addr.String(), "err", err)
		}
	})
	return addr, nil
}

func listen(network, address string, tlsConfig *tls.Config) (net.Listener, error) {
	switch network {
	case "unix":
		if tlsConfig != nil {
			return nil, errors.New("TLS is for TCP (a Unix socket has its file's mode)")
		}
		return unixsocket.Listen("unix", address, SocketMode)
	case "tcp":
		err := loopbackOnly(address)
		if tlsConfig != nil {
			err = demandsCertificates(tlsConfig)
		}
		if err != nil {
			return nil, err
		}
		return net.Listen("tcp", address)
	}
	return nil, fmt.Errorf("network %q (want unix or tcp)", network)
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
