package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"

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
// ClientCAs), and is refused without. TLS is 1.3.
func (s *Server) Listen(network, address string, tlsConfig *tls.Config) (net.Addr, error) {
	l, err := listen(network, address, tlsConfig)
	if err != nil {
		return nil, fmt.Errorf("manager: listen on %s %s: %w", network, address, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(api.ErrClosed, l.Close())
	}
	addr := l.Addr()
	l = netutil.LimitListener(l, maxConns)
	if tlsConfig != nil {
		tlsConfig = tlsConfig.Clone()
		tlsConfig.MinVersion = tls.VersionTLS13
		l = tls.NewListener(l, tlsConfig)
	}
	s.served.Go(func() { // until Close closes the listener
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
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
		if tlsConfig != nil && (tlsConfig.ClientAuth != tls.RequireAndVerifyClientCert || tlsConfig.ClientCAs == nil) {
			return nil, errors.New("TLS without client certificates: anybody could change the routes " +
				"(want ClientAuth RequireAndVerifyClientCert, and ClientCAs)")
		}
		if tlsConfig == nil {
			if err := loopbackOnly(address); err != nil {
				return nil, err
			}
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
	hidden := fmt.Sprintf("%s.%d", path, os.Getpid())
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
	return &unixListener{u, path}, nil
}

// removeStale removes a socket on which no process listens.
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
	if err == nil {
		_ = c.Close()
		return errors.New("another manager answers there (end that one, or give another path)")
	}
	return os.Remove(path)
}

// unixListener removes its socket before it is closed: afterwards a successor may have put its own
// there.
type unixListener struct {
	*net.UnixListener
	path string
}

// Addr implements net.Listener.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

func (l *unixListener) Close() error {
	return errors.Join(os.Remove(l.path), l.UnixListener.Close())
}
