package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
	return s.serve(s.http, l, maxConns, tlsConfig)
}

// ListenReadOnly serves GET /metrics, /v1/health, /v1/paths and /v1/version on a TCP address, to
// everybody who can connect, and nothing else: for scrapers. Its connections are bounded apart.
func (s *Server) ListenReadOnly(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError("tcp", address, err)
	}
	return s.serve(s.readOnly, l, maxScrapers, nil)
}

func listenError(network, address string, err error) error {
	return fmt.Errorf("manager: listen on %s %s: %w", network, address, err)
}

// serve has an HTTP server serve a listener until Close.
func (s *Server) serve(server *http.Server, l net.Listener, most int, config *tls.Config) (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(api.ErrClosed, l.Close())
	}
	addr := l.Addr()
	if config != nil {
		l = s.newTLSListener(l, config, most)
	} else {
		l = newLimitedListener(l, most)
	}
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
		return listenUnix(address)
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

// maxSocketPath is the length of a sockaddr_un's path on Linux, less its end.
const maxSocketPath = 107

// listenUnix makes the socket under another name, gives it its mode, and then moves it to its
// place, so that no client connects before.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	hidden := path + "." + rand.Text()[:8] // containers that share the folder have one process number
	if len(hidden) > maxSocketPath {
		return nil, fmt.Errorf("the path is %d bytes too long for a socket", len(hidden)-maxSocketPath)
	}
	l, err := net.Listen("unix", hidden)
	if err != nil {
		return nil, err
	}
	u := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false)
	err = os.Chmod(hidden, SocketMode)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(hidden))
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &unixListener{u, path, own}, nil
}

// removeStale removes a socket on which no process listens: one that refuses connections. Whatever
// else keeps this process from connecting, such as a socket of another user, is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file of that name that is no socket (give another path)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return errors.New("another manager answers there (end that one, or give another path)")
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("is another manager there? %w (end that one, or give another path)", err)
	}
	return os.Remove(path)
}

// unixListener removes its socket before it is closed, unless another one is in its place:
// somebody may have removed it and started another manager.
type unixListener struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
}

// Addr implements net.Listener.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

func (l *unixListener) Close() error {
	var err error
	if now, gone := os.Lstat(l.path); gone == nil && os.SameFile(now, l.own) {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.UnixListener.Close())
}
