// Package unixsocket listens on Unix sockets that have a place in the file system.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxPath is the length of a sockaddr_un's path on Linux, less its end.
const maxPath = 107

// Listener removes its socket before it is closed: afterwards a successor may have put its own
// there.
type Listener struct {
	*net.UnixListener
	path string
}

// Listen makes a socket of a network, unix or unixpacket, with a mode. It makes it under another
// name and then moves it to its place, so that no client connects before it has its mode. A socket
// on which nobody listens any more is removed.
func Listen(network, path string, mode fs.FileMode) (*Listener, error) {
	if err := removeStale(network, path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	hidden := fmt.Sprintf("%s.%d", path, os.Getpid())
	if len(hidden) > maxPath {
		return nil, fmt.Errorf("the path is %d bytes too long for a socket", len(hidden)-maxPath)
	}
	// One may be left by a process of the same number that died: in a container all are number 1.
	if err := removeStale(network, hidden); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: hidden, Net: network})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(hidden, mode); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(hidden))
	}
	return &Listener{l, path}, nil
}

// removeStale removes a socket on which no process listens.
func removeStale(network, path string) error {
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
	c, err := new(net.Dialer).DialContext(ctx, network, path)
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return errors.New("another process listens there (end that one, or give another path)")
	}
	return os.Remove(path)
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr {
	return &net.UnixAddr{Name: l.path, Net: l.UnixListener.Addr().Network()}
}

// Close implements net.Listener.
func (l *Listener) Close() error { return errors.Join(os.Remove(l.path), l.UnixListener.Close()) }
