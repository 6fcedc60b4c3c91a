package shm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/hello"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

const (
	// meetTimeout is how long a process that has connected may take to say what it has to. One that
	// was there before has no limit: it may be stopped, and is met when it goes on.
	meetTimeout = 10 * time.Second
	// openTimeout is how long Open waits for those that are there already. One that takes longer,
	// as its process is stopped, is met when it goes on.
	openTimeout = time.Second
)

// meetAll meets the stations that were there before, and returns when it has met them, or after
// openTimeout.
func (l *Link) meetAll(others []neighbour) {
	var meeting sync.WaitGroup
	for _, o := range others {
		meeting.Add(1)
		l.running.Go(func() { l.seek(o, sync.OnceFunc(meeting.Done)) }) // until the connection ends
	}
	met := make(chan struct{})
	go func() { // ends with the last of seek
		meeting.Wait()
		close(met)
	}()
	timeout := time.NewTimer(openTimeout)
	defer timeout.Stop()
	select {
	case <-met:
	case <-timeout.C:
	}
}

// Pauses between attempts to meet a station.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 2 * time.Second
	// lastRefused is the last pause where one of the two has refused the other: most likely it has
	// as many as it may, and hundreds would ask again and again.
	lastRefused = time.Minute
)

// nextPause returns the pause behind one.
func nextPause(pause time.Duration, refused bool) time.Duration {
	if refused {
		return min(2*pause, lastRefused)
	}
	return min(2*pause, lastPause)
}

// seek meets a station that was there before, however often that fails, as long as there is its
// socket. It calls met when they have met, or will not. A successor of the station has found this
// link's socket, and seeks it: the two would meet twice, and frames overtake each other.
func (l *Link) seek(o neighbour, met func()) {
	defer met()
	for pause := firstPause; ; {
		refused := o.conn != nil
		if !refused {
			err := fmt.Errorf("%v: %w", o.mac, o.err)
			l.refused.Store(&err)
		} else if l.keep(o.conn, true, met) {
			return
		}
		select {
		case <-time.After(pause):
		case <-l.open.Done():
			return
		}
		pause = nextPause(pause, refused)
		if o.conn, o.err = connect(l.folder.socket(o.mac)); gone(o.err) || !l.folder.has(o) {
			if o.conn != nil {
				_ = o.conn.Close() // nothing was said
			}
			return
		}
	}
}

// gone reports whether nobody listens on a socket.
func gone(err error) bool { return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) }

// accept meets the stations that come later.
func (l *Link) accept() {
	for {
		c, err := l.listener.AcceptUnix()
		switch {
		case l.closed.Load():
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil: // no descriptors, or no memory, at this moment
			select {
			case <-time.After(acceptPause):
			case <-l.open.Done():
			}
			continue
		}
		l.running.Go(func() { l.welcome(c, meetTimeout) }) // until the connection ends
	}
}

// welcome meets a station that comes later, and has so long for its hello.
func (l *Link) welcome(c *net.UnixConn, timeout time.Duration) {
	_ = c.SetDeadline(time.Now().Add(timeout)) // fails if it is closed, as what follows does
	l.keep(c, false, func() {})
}

// acceptPause is the pause after a connection could not be accepted.
const acceptPause = 10 * time.Millisecond

// keep meets the station at the other end of a connection, calls met, and loses the station when
// the connection ends, or the process does. It returns false if they have not met.
func (l *Link) keep(c *net.UnixConn, first bool, met func()) bool {
	closed := make(chan struct{})
	goesOn := context.AfterFunc(l.open, func() { _ = c.Close(); close(closed) })
	defer func() {
		l.apart(func() { // what was passed, and not received, is closed with it
			if !goesOn() {
				<-closed // the descriptor is given back before Close returns
			}
			_ = c.Close()
		})()
	}()
	owner := watchOwner(c)
	defer owner.stop()
	s, err := l.meet(c, first)
	eof := errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
	switch {
	case err == nil:
	case l.closed.Load(), owner.ended.Load():
		return false
	case eof && !first: // one that says nothing has looked who is there
		return false
	case eof:
		err = fmt.Errorf("%s refused this link (its MeetErr says why)", process(c))
		fallthrough
	default:
		l.refused.Store(&err)
		return false
	}
	met()
	_ = c.SetDeadline(time.Time{}) // fails if it is closed: then there is nothing to read
	awaitEnd(c)
	gone := !l.closed.Load() // before others see that it is, and close this link
	l.lose(s)
	if gone {
		l.folder.sweep(s.mac)
	}
	return true
}

// awaitEnd returns when a connection ends, by its owner's end, too, or something is said: there is
// nothing to be said any more. It stays there: a descriptor that was passed with it might take long
// to close.
func awaitEnd(c *net.UnixConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Read(func(fd uintptr) bool { // whatever ends it ends the meeting
		var b [1]byte
		for {
			_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
}

// MeetErr returns why the last attempt failed to meet a station, or nil if none has. It stays,
// though the two have met since: Stations lists those that are reached.
func (l *Link) MeetErr() error {
	if err := l.refused.Load(); err != nil {
		return fmt.Errorf("%s: meet another link: %w", l.Name(), *err)
	}
	return nil
}

// half is what this link brings to a meeting.
type half struct {
	bit    int // of its bell, for the other one's ring
	ringFD int
	ring   []byte // that it writes
}

// newHalf makes a ring for a station, and chooses the bit for the one that it brings.
func (l *Link) newHalf() (*half, error) {
	bit := l.freeBit()
	if bit < 0 {
		return nil, fmt.Errorf("there are %d links on the segment already", MaxStations)
	}
	fd, err := newMemory(records.Bytes(l.data))
	if err != nil {
		l.giveBit(bit)
		return nil, err
	}
	ring, err := l.memories.mapShared(fd, records.Bytes(l.data))
	if err != nil {
		_ = unix.Close(fd) // the first error is the one to report
		l.giveBit(bit)
		return nil, err
	}
	return &half{bit, fd, ring}, nil
}

// undo takes back what newHalf did.
func (l *Link) undo(h *half) {
	if h != nil {
		_ = unix.Close(h.ringFD) // nothing is written by closing it
		l.memories.retire(h.ring)
		l.giveBit(h.bit)
	}
}

// meet exchanges the memory with the process at the other end, and admits its station. Who connects
// speaks first.
func (l *Link) meet(c *net.UnixConn, first bool) (*station, error) {
	cred, err := unixsocket.Peer(c)
	if err != nil {
		return nil, err
	}
	if int(cred.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("process %d is of user %d (only links of one user meet)", cred.Pid, cred.Uid)
	}
	var h *half
	if first {
		if h, err = l.newHalf(); err == nil {
			err = l.say(c, h)
		}
	}
	var s *station
	if err == nil {
		s, err = l.hear(c)
	}
	if err == nil && !first {
		if h, err = l.newHalf(); err != nil {
			l.drop(s)
		}
	}
	if err != nil {
		l.undo(h)
		return nil, err
	}
	s.pid, s.conn, s.source.station = int(cred.Pid), c, s
	s.ringMemory, s.writer, s.source.bit = h.ring, records.NewWriter(h.ring), h.bit
	l.admit(s)
	if !first { // now that the other one's frames will be found
		err = l.say(c, h)
	}
	_ = unix.Close(h.ringFD) // the memory stays as long as it is mapped
	if err != nil {
		l.lose(s)
		return nil, err
	}
	return s, nil
}

// say sends this link's hello, unless Close has closed the eventfd: its number may be another
// file's then.
func (l *Link) say(c *net.UnixConn, h *half) (err error) {
	own := hello.Hello{MAC: l.mac, MTU: l.mtu, Data: l.data, Bit: h.bit}
	closed := l.event.conn.Control(func(event uintptr) {
		_, _, err = c.WriteMsgUnix(own.AppendTo(nil), unix.UnixRights(h.ringFD, l.bellFD, int(event)), nil)
	})
	return errors.Join(closed, err)
}

// hear receives the other one's hello and makes a station of it, which lacks what this link brings.
func (l *Link) hear(c *net.UnixConn) (*station, error) {
	type packet struct {
		b   []byte
		fds []int
		err error
	}
	received := make(chan packet, 1)
	receiving := l.apart(func() { // more descriptors than there may be are closed as they are received
		b, fds, err := receive(c)
		received <- packet{b, fds, err}
	})
	if !receiving() {
		go func() { closeAll((<-received).fds) }() // ends when receive does
		return nil, transport.ErrClosed
	}
	p := <-received
	s, err := l.admissible(p.b, p.fds, p.err)
	if err != nil { // they may be anything, and take as long to close as their process likes
		l.apart(func() { closeAll(p.fds) })()
		return nil, err
	}
	closeAll(p.fds[:2]) // memory stays as long as it is mapped
	return s, nil
}

// closeAll closes descriptors by which nothing is written.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// admissible makes a station of a hello and its descriptors: of the third one, which it has then.
// The others, and with an error all, are the caller's.
func (l *Link) admissible(b []byte, fds []int, err error) (*station, error) {
	if err != nil {
		return nil, err
	}
	o, err := hello.Parse(b)
	switch {
	case err != nil:
		return nil, err
	case len(fds) != hello.Descriptors:
		return nil, fmt.Errorf("%w: with %d descriptors (want %d)", hello.ErrMalformed, len(fds), hello.Descriptors)
	case o.MAC == l.mac:
		return nil, fmt.Errorf("%v is this link's address, too", o.MAC)
	}
	if err := checkEventfd(fds[2]); err != nil {
		return nil, err
	}
	s := &station{mac: o.MAC, bit: o.Bit, source: new(source), wakeFD: fds[2]}
	if s.source.memory, err = l.take(fds[0], records.Bytes(o.Data)); err != nil {
		return nil, err
	}
	if s.bellMemory, err = l.take(fds[1], os.Getpagesize()); err != nil {
		l.memories.retire(s.source.memory)
		return nil, err
	}
	s.source.reader, s.bell = records.NewReader(s.source.memory), records.NewBell(s.bellMemory)
	return s, nil
}

// drop gives back what hear has made.
func (l *Link) drop(s *station) {
	l.memories.retire(s.source.memory)
	l.memories.retire(s.bellMemory)
	_ = unix.Close(s.wakeFD) // nothing is written by closing it
}

// take maps memory that another process has made.
func (l *Link) take(fd, size int) ([]byte, error) {
	if err := checkMemory(fd, size); err != nil {
		return nil, err
	}
	return l.memories.mapShared(fd, size)
}

// receive receives a packet and the descriptors that came with it, which the caller closes, also
// with an error: a packet without bytes reads like the end, and may bring some.
func receive(c *net.UnixConn) (b []byte, fds []int, err error) {
	const most = 2 * hello.Descriptors // another version may have more
	b, rights := make([]byte, hello.Len+1), make([]byte, unix.CmsgSpace(4*most))
	n, nr, flags, _, err := c.ReadMsgUnix(b, rights) // the descriptors are closed on exec
	messages, bad := unix.ParseSocketControlMessage(rights[:nr])
	for i := range messages {
		if some, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, some...)
		}
	}
	if err = cmp.Or(err, bad); err != nil {
		return nil, fds, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return nil, fds, errors.New("descriptors were lost: this process has as many as it may (raise ulimit -n)")
	}
	return b[:n], fds, nil
}
