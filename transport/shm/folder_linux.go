package shm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/filelock"
	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/transport"
)

// dirVariable is the environment variable with the folder in which the links of a user meet.
const dirVariable = "RAWLANE_SHM_DIR"

const (
	// lockTimeout is how long a link waits for another one that opens or closes at the same moment.
	// Hundreds that start together take longer than that, one after the other.
	lockTimeout = 5 * time.Second
	// lockPause is the pause before the lock is tried again. It doubles up to maxLockPause, so that
	// hundreds that wait leave the processors to the one that has it.
	lockPause    = time.Millisecond
	maxLockPause = 32 * time.Millisecond
	// connectTimeout is how long a socket may take to accept a connection, which is not the process
	// behind it: its queue may be full.
	connectTimeout = time.Second

	lockName = "lock"
	// maxPath is the length of a sockaddr_un's path, less its end.
	maxPath = 107
)

// folder is where the links of a segment have their sockets, each named for its MAC: those of one
// kernel. The holder of the lock on the file called lock may add a socket, or remove one on which
// nobody listens.
type folder struct{ path string }

// userDir returns the folder in which the links of this user meet.
func userDir(dir string) string {
	if dir != "" {
		return dir
	}
	if dir = os.Getenv(dirVariable); dir != "" {
		return dir
	}
	// Of a login, which a launcher may pass on to other machines, and su to other users.
	dir = os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(dir); err == nil && info.IsDir() && isOwn(info) {
		return filepath.Join(dir, "rawlane")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("rawlane-%d", os.Geteuid()))
}

// kernel returns what tells the kernel from others, and from itself before it was started anew: 8
// hexadecimal digits. Containers of one host have the same. Without /proc all have.
func kernel() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // none if it cannot be read
	h := fnv.New32a()
	_, _ = h.Write(id) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// folderName names a segment's folder. Each kernel has its own, as a socket is its alone: where
// hosts share a file system, another one's looks as if nobody listened, and must stay all the same.
func folderName(segment, kernel string) string { return segment + "." + kernel }

// openFolder makes a segment's folder if it is not there, and takes its lock, for which it waits:
// so long for each link that opens or closes meanwhile.
func openFolder(dir, name string, wait time.Duration) (f folder, unlock func(), err error) {
	if dir, err = filepath.Abs(userDir(dir)); err != nil { // the program may go elsewhere
		return f, nil, err
	}
	f = folder{filepath.Join(dir, name)}
	deadline, seen := time.Now().Add(wait), f.changed()
	for pause := lockPause; ; pause = min(2*pause, maxLockPause) {
		for _, d := range []string{filepath.Dir(f.path), f.path} {
			if err := ownFolder(d); err != nil {
				return f, nil, err
			}
		}
		unlock, err := f.tryLock()
		switch {
		case err != nil:
			return f, nil, err
		case unlock != nil:
			return f, unlock, nil
		}
		switch now := f.changed(); {
		case !now.Equal(seen):
			deadline, seen = time.Now().Add(wait), now
		case time.Now().After(deadline):
			return f, nil, fmt.Errorf("%s: another link has opened the segment for %v and does not get on "+
				"(end the process that holds the lock: fuser %[1]s)", filepath.Join(f.path, lockName), wait)
		}
		time.Sleep(pause)
	}
}

// changed returns when a link has put its socket into the folder last, or has taken it away.
func (f folder) changed() time.Time {
	info, err := os.Stat(f.path)
	if err != nil {
		return time.Time{} // it is made, or removed, by others
	}
	return info.ModTime()
}

// ownFolder makes a folder unless it is there, and refuses one that others may read or write.
func ownFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w (set Config.Dir, or $%s, to a folder of your own)", err, dirVariable)
	}
	return checkFolder(path)
}

// checkFolder refuses what is no folder of this user alone. One that is not there may be made.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the last link of a segment has just closed: there is no lock then, either
	}
	if err != nil {
		return err
	}
	if !info.IsDir() || !isOwn(info) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: is not a folder of this user alone, with mode 0700 "+
			"(set Config.Dir, or $%s, to another one)", path, dirVariable)
	}
	return nil
}

// isOwn reports whether something belongs to this user.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// tryLock takes the lock if it is free, and the folder is not removed meanwhile; else unlock is
// nil.
func (f folder) tryLock() (unlock func(), err error) {
	lock, err := filelock.Try(filepath.Join(f.path, lockName))
	switch {
	case err == nil:
		return func() { _ = lock.Close() }, nil
	case errors.Is(err, filelock.ErrHeld), errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	return nil, err
}

// remove removes the folder if no link has a socket in it, unless the lock is held.
func (f folder) remove() {
	unlock, err := f.tryLock()
	if unlock == nil || err != nil {
		return
	}
	defer unlock()
	entries, err := os.ReadDir(f.path)
	if err == nil && len(entries) == 1 { // the lock
		_ = os.Remove(filepath.Join(f.path, lockName)) // what fails here leaves an empty folder
		_ = os.Remove(f.path)
	}
}

// sweep removes the socket of a link whose process has ended without doing so, unless the lock is
// held: then the next link that opens removes it.
func (f folder) sweep(mac transport.MAC) {
	if _, err := os.Lstat(f.socket(mac)); err != nil {
		return
	}
	unlock, err := f.tryLock()
	if unlock == nil || err != nil {
		return
	}
	defer unlock()
	if c, err := connect(f.socket(mac)); err == nil {
		_ = c.Close() // another one has the address by now
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(f.socket(mac)) // if it stays, the next one removes it
	}
}

// socket returns the path of a link's socket.
func (f folder) socket(mac transport.MAC) string {
	return filepath.Join(f.path, hex.EncodeToString(mac[:]))
}

// owner is the inverse of socket.
func owner(name string) (mac transport.MAC, ok bool) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != len(mac) || name != strings.ToLower(name) {
		return mac, false
	}
	return transport.MAC(b), true
}

// neighbour is a link that was there before: a connection to its socket, or why there is none yet.
type neighbour struct {
	mac    transport.MAC
	socket fs.FileInfo // its
	conn   *net.UnixConn
	err    error
}

// has reports whether a neighbour's socket is still there, and not a successor's of its address.
func (f folder) has(o neighbour) bool {
	now, err := os.Lstat(f.socket(o.mac))
	return err == nil && os.SameFile(o.socket, now) && now.ModTime().Equal(o.socket.ModTime())
}

// listen makes the socket of a link, and connects to those of all others. Sockets on which nobody
// listens any more are removed. The caller holds the lock.
func (f folder) listen(mac transport.MAC) (l *net.UnixListener, others []neighbour, err error) {
	defer func() {
		if err != nil {
			for _, o := range others {
				if o.conn != nil {
					_ = o.conn.Close() // the first error is the one to report
				}
			}
		}
	}()
	path := f.socket(mac)
	if len(path) > maxPath {
		return nil, nil, fmt.Errorf("%s: %d bytes too long for a socket (set Config.Dir, or $%s, to a shorter one)",
			path, len(path)-maxPath, dirVariable)
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		other, ok := owner(e.Name())
		if !ok {
			continue
		}
		socket, err := e.Info()
		if err != nil { // it has just been removed
			continue
		}
		c, err := connect(f.socket(other))
		switch {
		case err == nil && other == mac:
			defer func() { _ = c.Close() }()
			return nil, others, &takenError{mac, process(c)}
		case gone(err):
			_ = os.Remove(f.socket(other)) // listening fails if it is ours and stays
		case other != mac:
			others = append(others, neighbour{other, socket, c, err})
		}
	}
	l, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, others, err
	}
	l.SetUnlinkOnClose(false) // it is removed before it is closed
	return l, others, nil
}

// takenError is an address that another link of the segment has.
type takenError struct {
	mac   transport.MAC
	owner string
}

func (e *takenError) Error() string {
	return fmt.Sprintf("%v is the address of %s on this segment already "+
		"(end that one, or give another Config.MAC or segment)", e.mac, e.owner)
}

// Is makes it the error of a socket's address that is taken.
func (e *takenError) Is(target error) bool { return target == unix.EADDRINUSE }

// connect connects to a socket. One whose process has ended counts as one on which nobody listens:
// what that process has forked may have the socket still.
func connect(path string) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unixpacket", path)
	if err != nil {
		return nil, err
	}
	u := c.(*net.UnixConn)
	if hasNoOwner(u) {
		_ = u.Close() // nothing was said
		return nil, unix.ECONNREFUSED
	}
	return u, nil
}

// process names the process at the other end.
func process(c *net.UnixConn) string {
	cred, err := unixsocket.Peer(c)
	if err != nil || cred.Pid == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", cred.Pid)
}
