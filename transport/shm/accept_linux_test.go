package shm

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
)

// socketPair returns both ends of a connection between two links, for as long as the test.
func socketPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "")
		c, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = c.(*net.UnixConn)
		t.Cleanup(func() { _ = c.Close() })
	}
	return ends[0], ends[1]
}

// A process that connects and says nothing is given up.
func TestWelcome_SaysNothing(t *testing.T) {
	l := opened(t, Folder(t), 1)
	ours, theirs := socketPair(t)
	defer time.AfterFunc(Patience, func() { _ = theirs.Close() }).Stop() // if it is not
	l.welcome(ours, time.Millisecond)
	if err := l.MeetErr(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("MeetErr: %v", err)
	}
	_ = theirs.SetDeadline(time.Now().Add(Patience))
	if n, err := theirs.Read(make([]byte, hello.Len)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want the end of the connection", n, err)
	}
}

// What limits a meeting does not limit how long stations stay together.
func TestKeep_HasNoLimit(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, Folder(t), 2)
	ours, theirs := socketPair(t)
	kept := make(chan bool, 1)
	met := make(chan struct{})
	go other.welcome(theirs, Patience)
	go func() {
		kept <- l.keep(ours, true, func() {
			_ = ours.SetDeadline(time.Unix(1, 0))
			close(met)
		})
	}()
	<-met
	select {
	case <-kept:
		t.Fatal("the limit of the meeting has ended the connection")
	case <-time.After(20 * time.Millisecond):
	}
	_ = theirs.Close()
	if !<-kept {
		t.Error("they have not met")
	}
}

// A link that has no descriptors left for those of another one says what to do about it.
func TestHear_HasNoDescriptors(t *testing.T) {
	if !testbed.Alone(t) { // what the links of other tests had may be closed at any time
		return
	}
	l := opened(t, Folder(t), 1)
	for room := range hello.Descriptors {
		ours, theirs := socketPair(t)
		if err := l.say(theirs, &half{ringFD: l.bellFD}); err != nil {
			t.Fatal(err)
		}
		limit := leaveRoom(t, room)
		s, err := l.hear(ours)
		limit()
		if s != nil || err == nil || !strings.Contains(err.Error(), "raise ulimit -n") {
			t.Errorf("room for %d: %v", room, err)
		}
	}
}

// A link for which the process has no descriptors is not opened, and keeps none.
func TestOpen_HasNoDescriptors(t *testing.T) {
	if !testbed.Alone(t) { // what the links of other tests had may be closed at any time
		return
	}
	dir := Folder(t)
	opened(t, Folder(t), 1) // the runtime has what it needs
	before := testbed.Descriptors(t)
	for room := 0; ; room++ {
		limit := leaveRoom(t, room)
		l, err := Open("test", Config{Dir: dir})
		limit()
		if err == nil {
			if err := l.Close(); err != nil || room < 4 { // its eventfd, its bell, the lock, and its socket
				t.Errorf("a link has %d descriptors, %v", room, err)
			}
			return
		}
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("room for %d: %v", room, err)
		}
		if after := testbed.Descriptors(t); after != before {
			t.Errorf("room for %d: %d descriptors before, %d after", room, before, after)
		}
	}
}

// leaveRoom leaves the process room for so many descriptors, until undo is called.
func leaveRoom(t *testing.T, room int) (undo func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	after := before
	for range room + 1 { // these are the lowest that are free
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		after.Cur = uint64(fd)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &after, nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &before, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Close ends the search for a station that takes no connections.
func TestSeek_EndsWithTheLink(t *testing.T) {
	dir := Folder(t)
	if err := os.Mkdir(SegmentFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(SegmentFolder(dir), "020000000042")) // of another type
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	l := opened(t, dir, 1)
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(Patience):
		t.Error("Close waits for it")
	}
}

// Once a station that was there before has gone, it is not looked for any more: a successor of it
// has found this link.
func TestSeek_EndsWithTheStation(t *testing.T) {
	l, other := opened(t, Folder(t), 1), opened(t, Folder(t), 2)
	successor, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: l.folder.socket(other.mac), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = successor.Close() }()
	socket, err := os.Lstat(l.folder.socket(other.mac))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := socketPair(t)
	go other.welcome(theirs, Patience)
	sought, met := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sought)
		l.seek(neighbour{mac: other.mac, socket: socket, conn: ours}, sync.OnceFunc(func() { close(met) }))
	}()
	<-met
	_ = theirs.Close()
	select {
	case <-sought:
	case <-time.After(Patience):
		t.Error("it is")
	}
}
