package shm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// opened opens a link for as long as the test.
func opened(t *testing.T, dir string, n byte) *Link {
	t.Helper()
	l, err := Open("test", Config{Dir: dir, MTU: 64, MAC: transport.MAC{2, 0, 0, 0, 0, n}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A link has only so many others. One more is refused, which says why, on both sides, and leaves
// nothing; it is met as soon as there is room.
func TestMeet_TooManyLinks(t *testing.T) {
	dir := Folder(t)
	l := opened(t, dir, 1)
	var all []*half
	for range MaxStations {
		h, err := l.newHalf()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	other := opened(t, dir, 2)
	want := fmt.Sprintf("there are %d links on the segment already", MaxStations)
	if err := l.MeetErr(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the full one: %v, want %q", err, want)
	}
	if err := other.MeetErr(); err == nil || !strings.Contains(err.Error(), "refused this link") {
		t.Errorf("the one more: %v", err)
	}
	if len(l.Stations()) != 0 || len(other.Stations()) != 0 {
		t.Errorf("stations: %v, %v", l.Stations(), other.Stations())
	}
	for _, h := range all {
		l.undo(h)
	}
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	bits := 0
	l.mu.Lock()
	for _, used := range l.bits {
		if used {
			bits++
		}
	}
	l.mu.Unlock()
	if bits != 1 {
		t.Errorf("%d bits are taken for one station", bits)
	}
}

// A link that is refused by one that has all that it may asks seldom in the end: hundreds may do so.
// One that takes no connections just now is tried every other second.
func TestSeek_Pauses(t *testing.T) {
	for refused, want := range map[bool]time.Duration{true: time.Minute, false: 2 * time.Second} {
		pause, pauses := firstPause, 1
		for ; pause < want && pauses < 100; pauses++ {
			next := nextPause(pause, refused)
			if next != min(2*pause, want) {
				t.Fatalf("refused %v: %v behind %v", refused, next, pause)
			}
			pause = next
		}
		if next := nextPause(pause, refused); next != want {
			t.Errorf("refused %v: %v in the end, want %v", refused, next, want)
		}
	}
}

// A meeting for which there is no memory leaves nothing: no bit of the bell, and no descriptor.
func TestHalf_NoMemory(t *testing.T) {
	l := opened(t, Folder(t), 1)
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(open)
	}
	data, before := l.data, count()
	for size, want := range map[int]string{math.MinInt >> 23: "make memory of", math.MaxInt >> 3: "map "} {
		l.data = size
		if h, err := l.newHalf(); h != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d bytes: %v, %v; want %q", size, h, err, want)
		}
	}
	l.data = data
	if hasBits(l) {
		t.Error("a bit is taken")
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// A station whose socket takes no connections, though somebody listens there, is named with the
// reason, which is still known when it takes them.
func TestMeet_NoConnection(t *testing.T) {
	dir := Folder(t)
	path := filepath.Join(SegmentFolder(dir), "020000000042")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	ln, err := net.FileListener(file) // of a copy
	if _ = file.Close(); err != nil {
		t.Fatal(err)
	}
	next := ln.(*net.UnixListener)
	defer func() { _ = next.Close() }()
	full, err := connect(path) // its queue is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	l := opened(t, dir, 1)
	if err := l.MeetErr(); !errors.Is(err, unix.EAGAIN) || !strings.Contains(err.Error(), "02:00:00:00:00:42: ") {
		t.Errorf("%v, want who takes no connection, and why", err)
	}
	_ = next.SetDeadline(time.Now().Add(Patience))
	taken, err := next.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c, err := next.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(Patience))
	if _, err := c.Read(make([]byte, hello.Len)); err != nil { // now it takes them, and hears the link
		t.Fatal(err)
	}
	if err := l.MeetErr(); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v, and it has not refused since", err)
	}
}

// A link that cannot accept connections, as a process without descriptors cannot, accepts those that
// wait once it can.
func TestAccept_FailsForAWhile(t *testing.T) {
	dir := Folder(t)
	l := opened(t, dir, 1)
	if err := l.listener.SetDeadline(time.Unix(1, 0)); err != nil { // each attempt fails from now on
		t.Fatal(err)
	}
	c, err := connect(l.folder.socket(l.mac)) // one that had begun before may still accept this one
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	other := opened(t, dir, 2) // it waits for a second
	if n := len(l.Stations()) + len(other.Stations()); n != 0 {
		t.Errorf("%d have met, and nobody has accepted", n)
	}
	if err := l.listener.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
}

// A link that does not get the lock of its segment's folder says what to end.
func TestFolder_LockIsHeld(t *testing.T) {
	dir := Folder(t)
	f, unlock, err := openFolder(dir, folderName("test", kernel()), lockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	const wait = 20 * time.Millisecond
	begun := time.Now()
	_, _, err = openFolder(dir, folderName("test", kernel()), wait)
	if err == nil || !strings.Contains(err.Error(), "fuser "+f.path+"/lock") {
		t.Errorf("%v, want what to end", err)
	}
	if took := time.Since(begun); took < wait {
		t.Errorf("it has waited for %v, want %v", took, wait)
	}
	time.AfterFunc(wait, unlock)
	_, unlock, err = openFolder(dir, folderName("test", kernel()), Patience)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A link waits for its lock as long as others get on that open and close, each in its turn.
func TestFolder_LockGoesRound(t *testing.T) {
	dir := Folder(t)
	synctest.Test(t, func(t *testing.T) {
		f, unlock, err := openFolder(dir, folderName("test", kernel()), lockTimeout)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() {
			_, unlock, err := openFolder(dir, folderName("test", kernel()), lockTimeout)
			if err == nil {
				unlock()
			}
			waited <- err
		}()
		for i := range 10 {
			time.Sleep(lockTimeout / 2)
			at := time.Unix(int64(i), 0) // a socket has come or gone
			if err := os.Chtimes(f.path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		unlock()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

// What a Poll leaves because the caller's slice is full ends the next Wait.
func TestPoll_LeavesSome(t *testing.T) {
	dir := Folder(t)
	a, b, c := opened(t, dir, 1), opened(t, dir, 2), opened(t, dir, 3)
	frames := make([]transport.Frame, 1)
	for _, from := range []*Link{b, c} {
		eventually(t, "they do not meet", func() bool { return len(from.Stations()) == 2 })
		for range 3 {
			if n, err := from.Send([]transport.Frame{{Dst: a.MAC(), Payload: []byte("one")}}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for came := range 6 {
		if err := a.Wait(ctx); err != nil {
			t.Fatalf("%d of 6 frames came: %v", came, err)
		}
		if n, err := a.Poll(frames); n != 1 || err != nil {
			t.Fatalf("after %d of 6 frames: %d, %v", came, n, err)
		}
	}
	for range 2 { // finds that there are no more, and gives the last one back
		if n, err := a.Poll(frames); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if a.pending() {
		t.Error("nothing is left, and a Wait would end")
	}
	if a.rings != (records.Set{}) {
		t.Errorf("rings %x are to be looked at", a.rings)
	}
	if len(a.lent)+len(a.over) > 0 {
		t.Errorf("the next Poll gives back the memory of %d rings, and forgets %d", len(a.lent), len(a.over))
	}
}

// A bit of the bell that is no station's, as a stranger may set it, keeps no Wait from sleeping.
func TestPoll_RingOfNoStation(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	l.bell.Ring(7)
	if !l.pending() {
		t.Fatal("the bit is not seen")
	}
	if n, err := l.Poll(make([]transport.Frame, 1)); n != 0 || err != nil || l.pending() {
		t.Errorf("%d frames, %v, and a Wait would end: %v", n, err, l.pending())
	}
}

// A station may have sent, and rung, before it was admitted, and a Poll may have found no ring then:
// it is looked at once it is admitted.
func TestAdmit_LooksAtTheRing(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(l.Stations()) == 1 && len(other.Stations()) == 1 })
	s := l.stations.Load().all[0]
	l.sources[s.source.bit].Store(nil) // as it is while they meet
	if n, err := other.Send([]transport.Frame{{Dst: l.MAC(), Payload: []byte("early")}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	frames := make([]transport.Frame, 1)
	if n, err := l.Poll(frames); n != 0 || err != nil || l.pending() {
		t.Fatalf("%d frames, %v, and a Wait would end: %v", n, err, l.pending())
	}
	l.admit(s)
	if !l.pending() {
		t.Error("a Wait would go on")
	}
	if n, err := l.Poll(frames); n != 1 || err != nil || string(frames[0].Payload) != "early" {
		t.Errorf("%d frames, %v", n, err)
	}
}

// A station that closed, and of which the last frames were polled, ends the next Wait once more: so
// that it is forgotten.
func TestPoll_LastFramesOfAStation(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(other.Stations()) == 1 })
	for range 3 {
		if n, err := other.Send([]transport.Frame{{Dst: l.MAC(), Payload: []byte("last")}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	s := l.sources[0].Load()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end is not noticed", s.dead.Load)
	frames := make([]transport.Frame, 16)
	came := 0
	eventually(t, "its frames do not come", func() bool { // not while it is looked whether there are any
		n, err := l.Poll(frames)
		came += n
		return came == 3 || err != nil
	})
	if !l.pending() || !hasBits(l) {
		t.Error("a Wait would go on, and the views of the last frames are to be given back")
	}
	if len(l.lent) != 1 || len(l.over) != 1 {
		t.Errorf("the next Poll gives back the memory of %d rings, and forgets %d", len(l.lent), len(l.over))
	}
	if n, err := l.Poll(frames); n != 0 || err != nil || hasBits(l) {
		t.Errorf("%d frames, %v, and the station is forgotten: %v", n, err, !hasBits(l))
	}
}

// A socket that a link has left is removed, unless the folder's lock is held: then it stays for the
// next one.
func TestFolder_Sweep(t *testing.T) {
	f, unlock, err := openFolder(Folder(t), folderName("test", kernel()), lockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	mac := transport.MAC{2, 0, 0, 0, 0, 1}
	l, _, err := f.listen(mac)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // without removing it, as a process that is killed
	f.sweep(mac)
	if _, err := os.Lstat(f.socket(mac)); err != nil {
		t.Errorf("swept while the lock is held: %v", err)
	}
	unlock()
	f.sweep(mac)
	if _, err := os.Lstat(f.socket(mac)); !os.IsNotExist(err) {
		t.Errorf("it stays: %v", err)
	}
	f.sweep(mac) // there is nothing to be done
}

// A station that is gone, and has a successor by the time that it is looked for again, is met once:
// the successor seeks this link. By two ways through memory frames would overtake each other.
func TestSeek_LeavesSuccessors(t *testing.T) {
	dir := Folder(t)
	f, unlock, err := openFolder(dir, folderName("test", kernel()), Patience)
	if err != nil {
		t.Fatal(err)
	}
	mac := transport.MAC{2, 0, 0, 0, 0, 2}
	stopped, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: f.socket(mac), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	stopped.SetUnlinkOnClose(false) // as that of a process that is killed
	unlock()
	l := opened(t, dir, 1) // has connected, and waits for a hello
	_ = stopped.Close()
	successor := opened(t, dir, 2)
	met := func() (n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.met)
	}
	eventually(t, "they do not meet", func() bool { return met() > 0 })
	time.Sleep(5 * firstPause) // in which it would be looked for again
	if n := met(); n != 1 {
		t.Errorf("met %v %d times", successor.mac, n)
	}
}
