// Package unixsocket listens on Unix sockets that have a place in the file system, and tells who
// has connected to one.
package unixsocket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/internal/filelock"
)

// maxPath is the length of a sockaddr_un's path on Linux, less its end.
const maxPath = 107

// Place returns where a socket is for a program that may go to another folder. It is the path as it
// was given if that has no folder, being an abstract name, or if the whole path is too long.
func Place(path string) string {
	if path == "" || path[0] == '@' || path[0] == 0 {
		return path
	}
	whole, err := filepath.Abs(path)
	if err != nil || len(whole) > maxPath {
		return path
	}
	return whole
}

// Listener removes its socket before it is closed, unless another one is in its place: somebody may
// have removed it and started a successor.
type Listener struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
}

// Listen makes a socket of a network, unix or unixpacket, with a mode. It makes it under another
// name and then moves it to its place, so that no client connects before it has its mode. A socket
// on which nobody listens any more is removed. Of several calls at once, in any processes, one
// listens, and the others fail. Where the kernel can (Linux 6.16), clients cannot send descriptors.
func Listen(network, path string, mode fs.FileMode) (*Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	unlock, err := lockPlace(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(network, path); err != nil {
		return nil, err
	}
	hidden := path + "." + rand.Text()[:8] // containers that share the folder have one process number
	if len(hidden) > maxPath {
		return nil, fmt.Errorf("the path is %d bytes too long for a socket", len(hidden)-maxPath)
	}
	made, err := (&net.ListenConfig{Control: refuseDescriptors}).Listen(context.Background(), network, hidden)
	if err != nil {
		return nil, err
	}
	l := made.(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(hidden, mode); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(hidden))
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{l, Place(path), own}, nil
}

// lockTimeout is how long the lock may take: who has it waits a second at most.
const lockTimeout = 5 * time.Second

// lockPlace takes the lock of a socket's place, if there are locks: of those that listen there at
// once each sees what the one before has done. It ends with unlock, or the process.
func lockPlace(path string) (unlock func(), err error) {
	path += ".lock"
	lock, err := filelock.Take(path, lockTimeout)
	switch {
	case err == nil:
		return func() { _ = lock.Remove() }, nil // one that stays is the next one's
	case errors.Is(err, errors.ErrUnsupported): // by some network file systems
		return func() { _ = os.Remove(path) }, nil
	}
	return nil, err
}

// removeStale removes a socket on which no process listens: one that refuses connections. Whatever
// else keeps this process from connecting, such as a socket of another user, is an error.
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
	switch {
	case err == nil:
		_ = c.Close()
		return errors.New("another process listens there (end that one, or give another path)")
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("does another process listen there? %w (end that one, or give another path)", err)
	}
	return os.Remove(path)
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr {
	return &net.UnixAddr{Name: l.path, Net: l.UnixListener.Addr().Network()}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	var err error
	if now, gone := os.Lstat(l.path); gone == nil && os.SameFile(now, l.own) {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.UnixListener.Close())
}
