package grant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// Grant is sockets that the service has opened for one link.
type Grant struct {
	Interface string              // its name
	MAC       transport.MAC       // its address
	MTU       int                 // in bytes
	EtherType transport.EtherType // of the frames that are received

	sockets *afpacket.Granted
}

// Open asks the service that listens on a Unix socket. The grant is for one ring.Open, packet.Open
// or xdp.Open, whose link closes it.
// Errors: transport.ErrPermission (no rule allows it, or a limit is reached; the text names the
// line to add), ErrNoInterface, ErrInterfaceDown, ErrNotSupported; xdp.OccupiedError; the
// context's; net.Error if nobody listens.
func Open(ctx context.Context, socket string, r Request) (*Grant, error) {
	g, err := open(ctx, socket, r)
	if err != nil {
		return nil, fmt.Errorf("grant of %s by %s: %w", r.Interface, socket, err)
	}
	return g, nil
}

func open(ctx context.Context, socket string, r Request) (*Grant, error) {
	s := newSession(socket, protocol.Request{
		Do: protocol.Open, Interface: r.Interface, EtherType: r.EtherType, Cluster: r.Cluster,
		Ring: r.Ring, Slots: r.Slots, XDP: r.XDP, Mode: r.Mode, NoVLANs: r.NoVLANs,
	})
	if err := s.dial(ctx); err != nil {
		return nil, err
	}
	reply, fds, err := s.exchange(ctx, &s.request)
	if err == nil {
		err = checkOpened(reply, fds, r.XDP)
	}
	if err != nil {
		closeAll(fds)
		if ctx.Err() != nil { // close may wait for the service, which is left to undo what it has done
			return nil, errors.Join(err, s.conn.Close())
		}
		return nil, errors.Join(err, s.close())
	}
	o := reply.Open
	s.request.Interface, s.request.EtherType = o.Interface, o.EtherType
	granted := &afpacket.Granted{
		Interface: &afpacket.Interface{
			Name: o.Interface, Index: o.Index, MTU: o.MTU, MAC: o.MAC, Namespace: o.Namespace,
			Driver: afpacket.Driver{FiltersVLANs: o.FiltersVLANs, TxQueues: o.TxQueues},
		},
		EtherType: o.EtherType, Layout: afpacket.RingLayout{SlotSize: o.SlotSize, Slots: o.Slots}, LockPort: s.lockPort,
	}
	send, more := fds[1], fds[2:]
	if x := o.XDP; x != nil {
		granted.XDP = &afpacket.GrantedXDP{Mode: x.Mode, Fallback: x.Fallback, Chunk: x.Chunk, Slots: x.Slots}
		send, more = -1, fds[1:]
	}
	sockets := afpacket.NewGranted(granted, fds[0], send, more, s.close)
	return &Grant{Interface: o.Interface, MAC: o.MAC, MTU: o.MTU, EtherType: o.EtherType, sockets: sockets}, nil
}

// Close gives a grant back that no link has taken. After that of a link it does nothing: the link's
// own Close gives it back.
func (g *Grant) Close() error { return g.sockets.GiveBack() }

// Link opens the link that r is for, with the sockets of the grant g, which it takes in any case.
// Nil is no grant: it opens the link without one and, where the system refuses that, asks the
// service of this process, if there is one. It is for packages ring, packet and xdp, whose open it
// is given.
func Link[T any](g *Grant, r Request, open func(name string, sockets *afpacket.Granted) (*T, error)) (*T, error) {
	if g == nil {
		l, err := open(r.Interface, nil)
		if !errors.Is(err, transport.ErrPermission) {
			return l, err
		}
		if g, err = instead(err, r); err != nil {
			return nil, err
		}
	}
	has := Request{Ring: g.sockets.Layout.Slots != 0, XDP: g.sockets.XDP != nil}
	if has.kind() != r.kind() {
		return nil, errors.Join(fmt.Errorf("%s %s: open: the grant is for link %s (Ring and XDP of its Request say "+
			"for which)", r.kind(), g.Interface, has.kind()), g.Close())
	}
	l, err := open(g.Interface, g.sockets)
	if err != nil {
		return nil, errors.Join(err, g.Close()) // if it was not taken
	}
	return l, nil
}

// kind returns the name of the link that the request is for.
func (r *Request) kind() string {
	switch {
	case r.XDP:
		return "xdp"
	case r.Ring:
		return "ring"
	}
	return "packet"
}

// fallbackTimeout bounds how long Link waits for a grant. The service answers in a millisecond; for
// XDP many NICs start anew, twice, and a queue that was closed just before takes its time.
const (
	fallbackTimeout    = 5 * time.Second
	fallbackTimeoutXDP = 20 * time.Second
)

// instead asks the service of this process for the sockets of a link that the system has refused to
// open: refusal is its error, which it returns as it is where there is no service.
func instead(refusal error, r Request) (*Grant, error) {
	socket := Socket()
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) && os.Getenv(EnvSocket) == "" {
		return nil, refusal
	}
	timeout, lacks := fallbackTimeout, "CAP_NET_RAW"
	if r.XDP {
		timeout, lacks = fallbackTimeoutXDP, "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	g, err := Open(ctx, socket, r)
	var occupied *xsk.OccupiedError
	switch {
	case errors.Is(err, transport.ErrPermission), errors.As(err, &occupied):
		return nil, fmt.Errorf("%s %s: open: no %s here; %w", r.kind(), r.Interface, lacks, err)
	case err != nil:
		return nil, fmt.Errorf("%w; %w", refusal, err)
	}
	return g, nil
}

// session is a connection to the service. The service holds the grant's ring in place, and its
// locks, as long as the connection is open.
type session struct {
	socket  string
	request protocol.Request // what was asked for at first

	mu     sync.Mutex // guards what follows; serialises exchanges
	conn   *net.UnixConn
	late   int // replies to come by conn: to requests whose contexts have ended, and the one under way
	closed bool
}

func newSession(socket string, r protocol.Request) *session {
	return &session{socket: unixsocket.Place(socket), request: r}
}

func (s *session) dial(ctx context.Context) error {
	c, err := new(net.Dialer).DialContext(ctx, "unixpacket", s.socket)
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return fmt.Errorf("nobody listens there: %w (start the service: systemctl start rawlane-grant)", err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w (this user may not reach the socket: the service's user sets its folder's mode)", err)
	case err != nil:
		return err
	}
	s.conn, s.late = c.(*net.UnixConn), 0
	return nil
}

// exchange sends a request and returns the reply with its descriptors.
func (s *session) exchange(ctx context.Context, r *protocol.Request) (reply *protocol.Reply, fds []int, err error) {
	err = s.within(ctx, func() (err error) { reply, fds, err = s.converse(r); return err })
	return reply, fds, err
}

// within calls f, which uses the connection. The context's end ends it by a deadline, which an f
// that was done all the same does not leave on the connection.
func (s *session) within(ctx context.Context, f func() error) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)); close(ended) })
	err := f()
	if !stop() {
		<-ended
		_ = s.conn.SetDeadline(time.Time{}) // the next exchange tells whether the connection is there
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the service does not answer: %w", ctx.Err())
	}
	return err
}

// converse asks once all is answered that was asked before: a late reply may bring the name of the
// very port that is asked for, which would seem to be another program's.
func (s *session) converse(r *protocol.Request) (*protocol.Reply, []int, error) {
	if err := s.settle(); err != nil {
		return nil, nil, err
	}
	if err := s.post(r); err != nil && !hungUp(err) {
		return nil, nil, err
	}
	b, fds, lost, err := s.receive()
	if err != nil {
		return nil, fds, errEnded(err)
	}
	reply, err := protocol.ParseReply(b)
	switch {
	case err != nil:
	case reply.Error != nil:
		err = refused(reply.Error, s.request.Interface)
	case lost:
		err = errDescriptorsLost
	}
	return reply, fds, err
}

// settle takes the replies that come late.
func (s *session) settle() error {
	for s.late > 0 {
		_, fds, _, err := s.receive()
		closeAll(fds)
		if err != nil {
			return errEnded(err)
		}
	}
	return nil
}

// post sends a request. A service that has hung up may have left a reply all the same.
func (s *session) post(r *protocol.Request) error {
	_, err := s.conn.Write(protocol.Append(nil, r))
	if err == nil || hungUp(err) {
		s.late++
	}
	return err
}

// receive returns a packet, and the descriptors that came with it, also with an error. lost says
// that there were more. A service that refuses the connection replies and hangs up, and a read may
// tell the end before the reply: once that it was reset, as the service has not read the request;
// and once as if it were empty, where reply and end both come between its looks for either.
func (s *session) receive() (b []byte, fds []int, lost bool, err error) {
	for range 1 + 2 {
		closeAll(fds)
		if b, fds, lost, err = s.read(); !hungUp(err) {
			break
		}
	}
	return b, fds, lost, err
}

// read is one read of receive.
func (s *session) read() (b []byte, fds []int, lost bool, err error) {
	b, oob := make([]byte, protocol.MaxMessage), make([]byte, unix.CmsgSpace(4*maxDescriptors))
	n, oobn, flags, _, err := s.conn.ReadMsgUnix(b, oob)
	fds, bad := descriptors(oob[:oobn]) // a packet without bytes reads like the end, and may bring some
	if err == nil {
		s.late--
		err = bad
	}
	return b[:max(n, 0)], fds, flags&unix.MSG_CTRUNC != 0, err
}

// errDescriptorsLost: the service has granted what was asked for, and not all of it arrived.
var errDescriptorsLost = errors.New("descriptors were lost: this process has as many as it may (raise ulimit -n)")

// maxDescriptors is how many a reply may bring.
const maxDescriptors = 2 + 2*protocol.MaxQueues

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

func errEnded(err error) error {
	if hungUp(err) {
		return fmt.Errorf("the service hung up: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// descriptors returns those in control messages. They are the caller's, also with an error.
func descriptors(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control messages: %w", err)
	}
	for i := range messages {
		rights, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return fds, fmt.Errorf("control messages: %w", err)
		}
		fds = append(fds, rights...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nobody uses them
	}
}

// refused turns the service's refusal into an error of package transport.
func refused(r *protocol.RefusalError, ifname string) error {
	switch r.Cause {
	case protocol.Denied, protocol.Limited:
		return fmt.Errorf("%w: %s", transport.ErrPermission, r.Text)
	case protocol.NoInterface:
		return fmt.Errorf("%w: %s", transport.ErrNoInterface, r.Text)
	case protocol.InterfaceDown:
		return fmt.Errorf("%w: %s", transport.ErrInterfaceDown, r.Text)
	case protocol.NotSupported:
		return &notSupportedError{r.Text}
	case protocol.PortLocked:
		return &transport.LockedError{PID: r.PID}
	case protocol.Occupied:
		return &xsk.OccupiedError{Program: r.Program, PID: r.PID, Interface: ifname}
	}
	return errors.New(r.Text)
}

// notSupportedError is a transport.ErrNotSupported of the service, in whose text that stands.
type notSupportedError struct{ text string }

func (e *notSupportedError) Error() string { return e.text }

// Unwrap makes errors.Is(err, transport.ErrNotSupported) hold.
func (e *notSupportedError) Unwrap() error { return transport.ErrNotSupported }

// lockTimeout bounds how long a lock is waited for.
const lockTimeout = 5 * time.Second

// portLock is a lock on a port: the service remembers it as long as the connection is open, and the
// descriptor holds the port's name, so that it outlives the service.
type portLock struct {
	session *session
	request protocol.Request
	fds     []int
	once    sync.Once
}

func (s *session) lockPort(cluster uint32, port uint8) (io.Closer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	return s.lock(ctx, cluster, port)
}

func (s *session) lock(ctx context.Context, cluster uint32, port uint8) (io.Closer, error) {
	l := &portLock{session: s}
	l.request = protocol.Request{
		Do: protocol.Lock, Interface: s.request.Interface, EtherType: s.request.EtherType,
		Cluster: &cluster, Port: port,
	}
	fds, err := s.ask(ctx, &l.request)
	l.fds = fds
	if err != nil && (errors.Is(err, errDescriptorsLost) || ctx.Err() != nil) {
		// The port is locked, or will be: without its name, or for nobody.
		return nil, errors.Join(err, l.Close())
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return l, nil
}

// ask is exchange by any goroutine. A service that was started anew is dialled again.
func (s *session) ask(ctx context.Context, r *protocol.Request) (fds []int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, transport.ErrClosed
	}
	fds, err = s.askOnce(ctx, r)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		fds, err = s.askOnce(ctx, r)
	}
	return fds, err
}

// askOnce is exchange; a connection that has failed it closes, and dials anew at the next call. One
// whose reply is known, or late, is well: with it the link's ring and other ports would go, and a
// link xdp. The caller holds mu.
func (s *session) askOnce(ctx context.Context, r *protocol.Request) ([]int, error) {
	if s.conn == nil {
		if err := s.dial(ctx); err != nil {
			return nil, err
		}
	}
	reply, fds, err := s.exchange(ctx, r)
	if err != nil && (reply == nil || reply.Error == nil) && !errors.Is(err, errDescriptorsLost) && ctx.Err() == nil {
		closeAll(fds)
		s.hangUp()
		fds = nil
	}
	return fds, err
}

// hangUp closes the connection. The caller holds mu.
func (s *session) hangUp() {
	_ = s.conn.Close() // it has failed
	s.conn = nil
}

// forget unlocks a port, unless the service has done so by itself: when the connection ended. Where
// the service was late before, it does not wait until that is done.
func (s *session) forget(r *protocol.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.conn == nil {
		return
	}
	posted, wait := false, s.late == 0
	err := s.within(ctx, func() error {
		err := s.post(r)
		if posted = err == nil; posted && wait {
			err = s.settle()
		}
		return err
	})
	if err != nil && (!posted || ctx.Err() == nil) {
		s.hangUp() // which unlocks it, too
	}
}

// Close unlocks the port.
func (l *portLock) Close() error {
	l.once.Do(func() {
		closeAll(l.fds)
		r := l.request
		r.Do = protocol.Unlock
		l.session.forget(&r)
	})
	return nil
}

// endTimeout bounds how long close waits for the service to undo what it has done to a NIC.
const endTimeout = 10 * time.Second

// close ends the connection. With XDP the service hangs up once it has taken the program off the
// interface and given the NIC its settings back: then others can have them.
func (s *session) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.conn == nil {
		return nil
	}
	if s.request.XDP && s.conn.CloseWrite() == nil && s.conn.SetReadDeadline(time.Now().Add(endTimeout)) == nil {
		for err := error(nil); err == nil; { // its end; or the deadline: the service does it then
			_, err = s.conn.Read(make([]byte, 1))
		}
	}
	return s.conn.Close()
}
