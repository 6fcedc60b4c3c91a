//go:build linux

package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/filelock"
)

// A socket has its mode and its place, is removed by Close, and one that was left by a process that
// died is replaced.
func TestListen(t *testing.T) {
	for _, network := range []string{"unix", "unixpacket"} {
		path := filepath.Join(t.TempDir(), "folder", "socket")
		l, err := Listen(network, path, 0o604)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o604 {
			t.Errorf("%s: %v, %v", network, info.Mode(), err)
		}
		if l.Addr().String() != path || l.Addr().Network() != network {
			t.Errorf("listens on %v %v", l.Addr().Network(), l.Addr())
		}
		if _, err := Listen(network, path, 0o600); err == nil || !strings.Contains(err.Error(), "another process listens there") {
			t.Errorf("%s: a second listener: %v", network, err)
		}
		if err := l.UnixListener.Close(); err != nil { // as when its process dies
			t.Fatal(err)
		}
		next, err := Listen(network, path, 0o600)
		if err != nil {
			t.Fatalf("%s: after a process that died: %v", network, err)
		}
		if c, err := net.Dial(network, path); err != nil {
			t.Error(err)
		} else {
			_ = c.Close()
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", network, left, err)
		}
	}
}

// A process that died before its socket had its place keeps no later one of its number from it.
func TestListenAfterADeathAtStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("%s.%d", path, os.Getpid()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("unix", path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "is no socket",
		filepath.Join(dir, strings.Repeat("x", maxPath)): "bytes too long for a socket",
		filepath.Join(file, "socket"):                    "not a directory",
	} {
		if _, err := Listen("unix", path, 0o600); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// A listener that ends leaves the socket of another one alone that is in its place by now.
func TestASuccessorsSocketStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	first, err := Listen("unix", path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := Listen("unix", path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the successor's: %v", err)
	} else {
		_ = c.Close()
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// A socket that accepts no connection now may still be somebody's: only one that refuses them is
// removed.
func TestABusySocketIsNotRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
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
	if _, err := Listen("unix", path, 0o600); err == nil || !strings.Contains(err.Error(), "does another process listen there?") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
}

// Of many that listen at once in the place of one that has ended, one does, and the others say so.
func TestListen_ManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	for round := range 200 {
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		const many = 8
		var all sync.WaitGroup
		var listeners [many]*Listener
		for i := range many {
			all.Go(func() { listeners[i], _ = Listen("unix", path, 0o600) })
		}
		all.Wait()
		n := 0
		for _, l := range listeners {
			if l != nil {
				n++
				_ = l.Close()
			}
		}
		if n != 1 {
			t.Fatalf("round %d: %d listen there", round, n)
		}
	}
}

// Whoever may read the folder may lock it, and keeps nobody from listening there by that. A lock
// that a process has left which died is nobody's.
func TestListen_OthersLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("unix", path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// While another process is about to listen there, Listen waits for it, and not for ever.
func TestLockPlace_OneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	synctest.Test(t, func(t *testing.T) {
		unlock, err := lockPlace(path)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := lockPlace(path); !errors.Is(err, filelock.ErrHeld) {
			t.Errorf("while it is held: %v", err)
		}
		if took := time.Since(begun); took < lockTimeout || took > 2*lockTimeout {
			t.Errorf("it has waited for %v, want %v", took, lockTimeout)
		}
		time.AfterFunc(lockTimeout/2, unlock)
		unlock, err = lockPlace(path)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}
