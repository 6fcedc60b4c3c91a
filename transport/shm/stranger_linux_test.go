package shm_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// stranger is a process of the same user that speaks to a link as it likes.
type stranger struct {
	t      *testing.T
	conn   *net.UnixConn
	hello  hello.Hello
	ring   []byte // that it writes
	bell   []byte // its own
	theirs []byte // the link's bell
	input  []byte // the ring that the link writes
	bit    int    // of the link's bell
	event  int    // the eventfd that wakes it
	wakes  int    // the link's
}

// meet connects to a link. say changes what the stranger says, and the descriptors that go with it.
func meet(t *testing.T, dir string, l *shm.Link, say func(b []byte, fds []int) ([]byte, []int)) *stranger {
	t.Helper()
	m := l.MAC()
	path := filepath.Join(shm.SegmentFolder(dir), hex.EncodeToString(m[:]))
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	return newStranger(t, c, say)
}

// newStranger says hello on a connection.
func newStranger(t *testing.T, c *net.UnixConn, say func(b []byte, fds []int) ([]byte, []int)) *stranger {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience)) // a link that says nothing ends the test
	s := &stranger{t: t, conn: c, hello: hello.Hello{MAC: mac(66), MTU: 1500, Data: records.DataFor(1500)}}
	ringFD := s.memory(records.Bytes(s.hello.Data), unix.F_SEAL_SHRINK)
	bellFD := s.memory(4096, unix.F_SEAL_SHRINK)
	s.ring, s.bell = s.mapped(ringFD, records.Bytes(s.hello.Data)), s.mapped(bellFD, 4096)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(event) })
	s.event = event
	b, fds := s.hello.AppendTo(nil), []int{ringFD, bellFD, event}
	if say != nil {
		b, fds = say(b, fds)
	}
	if _, _, err := c.WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stranger) memory(size, seals int) int {
	s.t.Helper()
	fd, err := unix.MemfdCreate("stranger", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, int64(size))
	}
	if err == nil && seals != 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func (s *stranger) mapped(fd, size int) []byte {
	s.t.Helper()
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// hear receives the link's hello, after which the two have met.
func (s *stranger) hear() {
	s.t.Helper()
	b, rights := make([]byte, 64), make([]byte, 256)
	n, nr, _, _, err := s.conn.ReadMsgUnix(b, rights)
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := hello.Parse(b[:n])
	if err != nil {
		s.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		s.t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.input, s.theirs, s.bit = s.mapped(fds[0], records.Bytes(h.Data)), s.mapped(fds[1], 4096), h.Bit
	s.wakes = fds[2]
	s.t.Cleanup(func() { _ = unix.Close(s.wakes) })
	for _, fd := range fds[:2] {
		_ = unix.Close(fd)
	}
}

// ended waits until the link ends the connection.
func (s *stranger) ended() {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(patience))
	var b [64]byte
	n, err := s.conn.Read(b[:])
	if n != 0 {
		s.t.Errorf("the link says %x", b[:n])
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Error("the link keeps the connection")
	}
}

// Whatever a stranger says, it is not let in, the link says why, and works on.
func TestStranger_SaysWhatCannotBe(t *testing.T) {
	var unsealed, small int
	cut := func(b []byte, fds []int) ([]byte, []int) { return b, fds[:2] }
	for name, c := range map[string]struct {
		say  func(b []byte, fds []int) ([]byte, []int)
		want string
	}{
		"another protocol":       {func(_ []byte, fds []int) ([]byte, []int) { return []byte("GET / HTTP/1.1"), fds }, "not the hello"},
		"no descriptors":         {func(b []byte, _ []int) ([]byte, []int) { return b, nil }, "0 descriptors"},
		"two descriptors":        {cut, "2 descriptors"},
		"six descriptors":        {func(b []byte, fds []int) ([]byte, []int) { return b, append(fds, fds...) }, "6 descriptors"},
		"more descriptors":       {func(b []byte, fds []int) ([]byte, []int) { return b, append(append(fds, fds...), fds...) }, "descriptors were lost"},
		"memory not sealed":      {func(b []byte, fds []int) ([]byte, []int) { return b, []int{unsealed, fds[1], fds[2]} }, "not sealed"},
		"a bell not sealed":      {func(b []byte, fds []int) ([]byte, []int) { return b, []int{fds[0], unsealed, fds[2]} }, "not sealed"},
		"memory too small":       {func(b []byte, fds []int) ([]byte, []int) { return b, []int{small, fds[1], fds[2]} }, "has 100 bytes"},
		"a bell too small":       {func(b []byte, fds []int) ([]byte, []int) { return b, []int{fds[0], small, fds[2]} }, "has 100 bytes"},
		"a pipe, and no eventfd": {func(b []byte, fds []int) ([]byte, []int) { return b, []int{fds[0], fds[1], fds[0]} }, "is no eventfd"},
		"no memory at all":       {func(b []byte, fds []int) ([]byte, []int) { return b, []int{fds[2], fds[2], fds[2]} }, "not sealed"},
		"the link's own address": {func(b []byte, fds []int) ([]byte, []int) {
			return (&hello.Hello{MAC: mac(1), MTU: 1500, Data: 128 << 10}).AppendTo(nil), fds
		}, "this link's address"},
		"a ring that is too much": {func(b []byte, fds []int) ([]byte, []int) { binary.LittleEndian.PutUint32(b[20:], 1<<31); return b, fds }, "a ring of"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shm.Folder(t)
			s := &stranger{t: t}
			unsealed, small = s.memory(1<<20, 0), s.memory(100, unix.F_SEAL_SHRINK)
			l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
			other := open(t, shm.Config{Dir: dir, MAC: mac(2)})
			meet(t, dir, l, c.say).ended()
			if err := l.MeetErr(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("MeetErr: %v, want %q in it", err, c.want)
			}
			if n := l.Stations(); len(n) != 1 || n[0].MAC != mac(2) {
				t.Errorf("stations: %v", n)
			}
			exchange(t, other, l)
		})
	}
}

// exchange sends a frame, which has to arrive.
func exchange(t *testing.T, from, to *shm.Link) {
	t.Helper()
	if n, err := from.Send([]transport.Frame{{Dst: to.MAC(), Payload: []byte("works on")}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	came := false
	until(t, to, func(f *transport.Frame) { came = came || string(f.Payload) == "works on" }, func() bool { return came })
}

// A stranger that writes what cannot be is cut off, is counted, and stops nobody.
func TestStranger_WritesWhatCannotBe(t *testing.T) {
	for name, write := range map[string]func(s *stranger){
		"a record": func(s *stranger) { binary.NativeEndian.PutUint64(s.ring[256:], ^uint64(0)) },
		"what it has read": func(s *stranger) { // it shows when the link writes more
			binary.NativeEndian.PutUint64(s.input, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shm.Folder(t)
			l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
			other := open(t, shm.Config{Dir: dir, MAC: mac(2)})
			s := meet(t, dir, l, nil)
			s.hear()
			write(s)
			records.NewBell(s.theirs).Ring(s.bit)
			frames := make([]transport.Frame, 100) // to it, while it is there
			for i := range frames {
				frames[i] = transport.Frame{Dst: mac(66), Payload: make([]byte, 1000)}
			}
			if n, err := l.Send(frames); n != len(frames) || err != nil {
				t.Fatal(n, err)
			}
			until(t, l, none, func() bool { return len(l.Stations()) == 1 })
			s.ended()
			if c := l.Counters(); c.RxMalformed != 1 {
				t.Errorf("%+v, want one malformed", c)
			}
			exchange(t, other, l)
			exchange(t, l, other)
		})
	}
}

// A stranger that speaks when there is nothing to be said, or rings without end, does no more than
// that.
func TestStranger_RingsAndTalks(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	other := open(t, shm.Config{Dir: dir, MAC: mac(2)})
	s := meet(t, dir, l, nil)
	s.hear()
	for i := range s.theirs[:56] { // bits of rings that there are, and of those that there are not
		s.theirs[i] = 0xff
	}
	exchange(t, other, l)
	if _, err := s.conn.Write([]byte("hello?")); err != nil {
		t.Fatal(err)
	}
	s.ended()
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	exchange(t, other, l)
}

// A process of another user is not let in, even if the folder has been opened to all.
func TestStranger_IsAnotherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	m := l.MAC()
	path := filepath.Join(shm.SegmentFolder(dir), hex.EncodeToString(m[:]))
	for _, p := range []string{dir, shm.SegmentFolder(dir), path} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	connected := make(chan int)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		defer close(connected)
		const other = 12345
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, other, other, other); e != 0 {
			t.Error(e)
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		if err != nil {
			t.Error(err)
			return
		}
		connected <- fd
	}()
	fd, ok := <-connected
	if !ok {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	var b [1]byte
	if n, err := unix.Read(fd, b[:]); n != 0 || err != nil { // until the link ends it
		t.Errorf("the link says %d bytes, %v", n, err)
	}
	if err := l.MeetErr(); err == nil || !strings.Contains(err.Error(), "is of user 12345 (only links of one user meet)") {
		t.Errorf("MeetErr: %v", err)
	}
}

// Open waits a second for a link that is there and says nothing, as its process is stopped. It is
// met when it goes on; one that answers what cannot be is not.
func TestStranger_AnswersLate(t *testing.T) {
	dir := shm.Folder(t)
	if err := os.Mkdir(shm.SegmentFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	var listeners []*net.UnixListener
	for _, name := range []string{"020000000042", "020000000043"} { // 66, and 67
		ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(shm.SegmentFolder(dir), name), Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		_ = ln.SetDeadline(time.Now().Add(patience))
		listeners = append(listeners, ln)
	}
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	if s := l.Stations(); len(s) != 0 {
		t.Errorf("stations that have said nothing: %v", s)
	}
	for i, ln := range listeners {
		c, err := ln.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		s := newStranger(t, c, func(b []byte, fds []int) ([]byte, []int) {
			if i == 1 {
				b[0]++
			}
			return b, fds
		})
		s.hear()
		if i == 1 {
			s.ended()
			continue
		}
		until(t, l, none, func() bool { return len(l.Stations()) == 1 })
		if n, err := l.Send([]transport.Frame{{Dst: mac(66), Payload: []byte("late")}}); n != 1 || err != nil || s.input[256] == 0 {
			t.Errorf("%d, %v, and the record's length is %d", n, err, s.input[256])
		}
	}
	if err := l.MeetErr(); !errors.Is(err, hello.ErrMalformed) {
		t.Errorf("MeetErr: %v", err)
	}
}

// A stranger that writes into the bell what is not its own, as if nobody slept or rang, keeps others
// from being heard only as long as it is there.
func TestStranger_WritesIntoTheBell(t *testing.T) {
	for _, state := range []uint64{0, 2, 77, ^uint64(0)} {
		dir := shm.Folder(t)
		l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
		other := open(t, shm.Config{Dir: dir, MAC: mac(2)})
		s := meet(t, dir, l, nil)
		s.hear()
		until(t, other, none, func() bool { return len(other.Stations()) == 1 })
		came := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			frames := make([]transport.Frame, 4)
			for {
				if err := l.Wait(ctx); err != nil {
					came <- err
					return
				}
				if n, err := l.Poll(frames); n > 0 || err != nil {
					came <- err
					return
				}
			}
		}()
		bell := records.NewBell(s.theirs)
		for deadline := time.Now().Add(patience); bell.Asleep() == 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the link does not sleep")
			}
		}
		binary.NativeEndian.PutUint64(s.theirs[56:], state)
		if n, err := other.Send([]transport.Frame{{Dst: mac(1), Payload: []byte("heard")}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		clear(s.theirs[:56])
		_ = s.conn.Close()
		if err := <-came; err != nil {
			t.Errorf("after %d was written to the bell: %v", state, err)
		}
		for range 200 { // it is not taken for closed
			if n, err := other.Send([]transport.Frame{{Dst: mac(1), Payload: make([]byte, 9000)}}); err != nil {
				if !errors.Is(err, transport.ErrBusy) || n != 0 {
					t.Error(n, err)
				}
				break
			}
		}
		if other.Counters().TxBusy == 0 {
			t.Error("frames for a link that nobody polls are lost")
		}
	}
}

// A frame that is longer than the link's MTU, from a station of another one, is malformed.
func TestStranger_HasAnotherMTU(t *testing.T) {
	dir := shm.Folder(t)
	small, large := open(t, shm.Config{Dir: dir, MTU: 100}), open(t, shm.Config{Dir: dir, MTU: 200})
	for _, size := range []int{200, 101, 100} {
		if n, err := large.Send([]transport.Frame{{Dst: small.MAC(), Payload: make([]byte, size)}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	var sizes []int
	until(t, small, func(f *transport.Frame) { sizes = append(sizes, len(f.Payload)) }, func() bool { return len(sizes) > 0 })
	if c := small.Counters(); len(sizes) != 1 || sizes[0] != 100 || c.RxMalformed != 2 || c.RxFrames != 1 {
		t.Errorf("frames of %d bytes came, and %+v", sizes, c)
	}
}
