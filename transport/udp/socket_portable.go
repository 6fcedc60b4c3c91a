//go:build !linux || rawlane_portable

package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/rawlane/rawlane/transport"
)

// queueLen is how many datagrams wait for a poll at most: the system's buffer holds the others.
const queueLen = 64

// socket is a UDP socket of package net. A goroutine receives from it, a datagram at a time.
type socket struct {
	conn       *net.UDPConn
	over       chan struct{} // closed by close
	fragmented atomic.Uint64 // always 0: the system tells nothing of it

	wake chan struct{} // capacity 1: there is something to poll, and wake-ups are not masked
	room chan struct{} // capacity 1: there may be a buffer again
	done sync.WaitGroup

	mu     sync.Mutex // guards what follows
	came   []arrival
	masked bool
	spare  [][]byte // buffers: the last one used is taken first, as it is in the cache

	lent []arrival // those that next hands out
	at   int
	left atomic.Bool
}

// arrival is a datagram that was received.
type arrival struct {
	b    []byte
	from netip.AddrPort
}

// address is a socket address as package net takes it.
type address struct{ at netip.AddrPort }

func (*socket) address(at netip.AddrPort) address { return address{at} }

// onInterfaceAlone says that the socket of a group's member is reached by its interface alone.
const onInterfaceAlone = false

// openSocket makes a socket bound to an address or, for a multicast group, to its port: a socket
// bound to an address does not hear groups.
func openSocket(at netip.AddrPort, ifname string, group netip.Addr, receiveBuffer int) (*socket, error) {
	if group.IsValid() {
		at = netip.AddrPortFrom(unspecified(at.Addr()), at.Port())
	}
	conn, err := net.ListenUDP(network(at), net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	if group.IsValid() {
		if err := joinGroup(conn, ifname, group); err != nil {
			_ = conn.Close() // the first error is the one to report
			return nil, fmt.Errorf("join %v on interface %q: %w", group, ifname, err)
		}
	}
	_ = conn.SetReadBuffer(receiveBuffer) // as much as the system gives
	s := &socket{conn: conn, over: make(chan struct{}), wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	memory := make([]byte, queueLen*maxFrame)
	for i := range queueLen {
		s.spare = append(s.spare, memory[i*maxFrame:][:maxFrame:maxFrame])
	}
	s.came, s.lent = make([]arrival, 0, queueLen), make([]arrival, 0, queueLen)
	s.done.Go(s.read)
	return s, nil
}

// zoned returns an address as received ones are written: its zone is the interface's name.
func zoned(a netip.Addr) netip.Addr {
	if n, err := strconv.Atoi(a.Zone()); err == nil {
		if ifi, err := net.InterfaceByIndex(n); err == nil {
			return a.WithZone(ifi.Name)
		}
	}
	return a
}

func network(at netip.AddrPort) string {
	if at.Addr().Is4() {
		return "udp4"
	}
	return "udp6"
}

// port returns the port that the socket is bound to.
func (s *socket) port() (uint16, error) {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

// joinGroup has the socket send to a group and hear it on an interface: what other programs of this
// host send, too.
func joinGroup(conn *net.UDPConn, ifname string, group netip.Addr) error {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return err
	}
	to := &net.UDPAddr{IP: group.AsSlice()}
	if group.Is4() {
		p := ipv4.NewPacketConn(conn)
		return errors.Join(p.SetMulticastInterface(ifi), p.JoinGroup(ifi, to), p.SetMulticastLoopback(true))
	}
	p := ipv6.NewPacketConn(conn)
	return errors.Join(p.SetMulticastInterface(ifi), p.JoinGroup(ifi, to), p.SetMulticastLoopback(true))
}

// Errors of a socket are about single datagrams, as a rule: an ICMP message about one of ours.
// After maxFailures in a row it is read again now and then.
const (
	maxFailures  = 16
	failurePause = 10 * time.Millisecond
)

// read receives until the socket is closed.
func (s *socket) read() {
	for failures := 0; ; {
		b := s.buffer()
		if b == nil {
			return
		}
		n, from, err := s.conn.ReadFromUDPAddrPort(b)
		s.mu.Lock()
		if err == nil {
			failures = 0
			s.came = append(s.came, arrival{b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port())})
		} else {
			failures++
			s.spare = append(s.spare, b)
		}
		s.mu.Unlock()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.signal()
		if failures >= maxFailures {
			select {
			case <-time.After(failurePause):
			case <-s.over:
			}
		}
	}
}

// buffer returns one to receive into, once there is one, or nil when the socket is closed.
func (s *socket) buffer() []byte {
	for {
		s.mu.Lock()
		if last := len(s.spare) - 1; last >= 0 {
			b := s.spare[last]
			s.spare = s.spare[:last]
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-s.over:
			return nil
		}
	}
}

// signal ends a wait if there is something to poll.
func (s *socket) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.masked || len(s.came) == 0 && !s.left.Load() {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *socket) maskWakeups(on bool) {
	s.mu.Lock()
	s.masked = on
	if on {
		select {
		case <-s.wake:
		default:
		}
	}
	s.mu.Unlock()
	s.signal()
}

// wait blocks until there is something to poll.
func (s *socket) wait(ctx context.Context) error {
	s.signal()
	select {
	case <-s.wake:
		s.signal() // another goroutine may wait, too
		return nil
	case <-s.over:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pending reports whether there are datagrams that no poll has taken.
func (s *socket) pending() bool { return s.left.Load() }

// receive takes what is there.
func (s *socket) receive() error {
	s.mu.Lock()
	for _, a := range s.lent {
		s.spare = append(s.spare, a.b[:maxFrame])
	}
	s.lent, s.came = s.came, s.lent[:0]
	s.left.Store(len(s.lent) > 0) // with the lock: a wait that begins finds them here or there
	s.mu.Unlock()
	select {
	case s.room <- struct{}{}:
	default:
	}
	s.at = 0
	return nil
}

// next returns the next datagram, and who sent it. It is valid until the next receive.
func (s *socket) next() (b []byte, from netip.AddrPort, ok bool) {
	if s.at == len(s.lent) {
		return nil, from, false
	}
	a := s.lent[s.at]
	s.at++
	s.left.Store(s.at < len(s.lent))
	return a.b, a.from, true
}

// polled says that a Poll is over: a wait that had looked before has been told when each datagram
// came.
func (*socket) polled() {}

// sendPatience is how long a send waits for room: the system has no portable call that does not.
const sendPatience = time.Millisecond

// send sends datagrams in order and returns how many the system took. It errs with ErrBusy; then
// the next datagram was not taken. Where no route leads, they are lost, as on an unplugged cable.
func (s *socket) send(all []datagram) (n int, err error) {
	if err := s.patience(); err != nil {
		return 0, err
	}
	for i := range all {
		_, err := s.conn.WriteToUDPAddrPort(all[i].b, all[i].to.at)
		if errors.Is(err, os.ErrDeadlineExceeded) { // it may have passed before: a goroutine stands still now and then
			if err = s.patience(); err == nil {
				_, err = s.conn.WriteToUDPAddrPort(all[i].b, all[i].to.at)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ENOBUFS): // as BSDs say that there is none
			return i, transport.ErrBusy
		case errors.Is(err, net.ErrClosed):
			return i, err
		}
	}
	return len(all), nil
}

// patience has writes wait for room from now on.
func (s *socket) patience() error {
	return s.conn.SetWriteDeadline(time.Now().Add(sendPatience))
}

// drops returns 0: systems do not tell.
func (s *socket) drops() uint64 { return 0 }

func (s *socket) close() error {
	close(s.over)
	err := s.conn.Close()
	s.done.Wait()
	return err
}
