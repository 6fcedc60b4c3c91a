package rawnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
	"github.com/rawlane/rawlane/rawnet/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// PacketCounters count packets that came and were dropped.
type PacketCounters struct {
	Malformed uint64 `json:"malformed"`
	NoService uint64 `json:"no_service"` // nobody listens for it
	Full      uint64 `json:"full"`       // its PacketConn had packetBacklog that nobody has read
}

// packets is the packet connections of a Net. Net.mu guards it.
type packets struct {
	opens sync.Mutex // one goroutine at a time opens the port, or closes it; taken before Net.mu
	port  *mcd.Port  // nil: nobody has listened yet
	conns map[string]*PacketConn
	spare [][]byte // memory of packets that were read
	life  uint32   // what tells the names that this Net makes from those of a former life of its node
	named int      // how many got a name of their own
	stats PacketCounters
}

// PacketConn sends and receives packets, each of which arrives whole, or twice, or not at all, as
// over UDP. It is a net.PacketConn.
type PacketConn struct {
	n    *Net
	addr Addr

	reads  sync.Mutex // one ReadFrom at a time waits
	writes sync.Mutex // guards what follows; taken before Net.mu
	buf    []byte     // of the packet that is being sent

	// Net.mu guards what follows.
	reader                      waiter
	readDeadline, writeDeadline deadline
	stopWrite                   context.CancelCauseFunc // of the WriteTo that waits for room; nil: none has
	queue                       []packet                // that nobody has read
	posted                      []byte                  // of the ReadFrom that waits
	got                         packet                  // what has come for it; data is in posted
	from                        net.Addr                // of the last packet: most come from one sender
	closed                      bool
}

// packet is one that came.
type packet struct {
	data []byte // memory of packets.spare; in posted: a part of that
	from net.Addr
}

var _ net.PacketConn = (*PacketConn)(nil)

// ListenPacket opens a packet connection for a service of this node: "dns", ":dns" or "node:dns".
// "" gives it a name that nobody else has, for a client. It opens Config.PacketPort on first use.
// Errors, in a *net.OpError: syscall.EADDRINUSE, net.ErrClosed; mcd.ErrPortBusy.
func (n *Net) ListenPacket(service string) (*PacketConn, error) {
	var addr Addr
	client, err := service == "" || service == ":", error(nil)
	if !client {
		addr, err = n.resolveOwn(service)
	}
	if err == nil {
		err = n.openPacketPort()
	}
	if err != nil {
		return nil, opError("listen", nil, addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if client {
		addr = n.clientAddr()
	}
	switch {
	case n.closed:
		err = net.ErrClosed
	case n.packets.conns[addr.Service] != nil:
		err = fmt.Errorf("%w: %w", syscall.EADDRINUSE, mux.ErrInUse)
	}
	if err != nil {
		return nil, opError("listen", nil, addr, err)
	}
	p := &PacketConn{n: n, addr: addr}
	n.packets.conns[addr.Service] = p
	return p, nil
}

// clientAddr returns an address that nobody else has, nor had before this node began anew: an
// answer to a former life finds nobody. The caller holds mu.
func (n *Net) clientAddr() Addr {
	for {
		n.packets.named++
		service := fmt.Sprintf("client %08x %d", n.packets.life, n.packets.named)
		if n.packets.conns[service] == nil {
			return Addr{n.ep.Node(), service}
		}
	}
}

// openPacketPort opens the packets' port, unless it is open. Another process may have to grant it,
// for which the goroutine that polls, and takes mu, is not to wait.
func (n *Net) openPacketPort() error {
	n.packets.opens.Lock()
	defer n.packets.opens.Unlock()
	n.mu.Lock()
	done := n.closed || n.packets.port != nil
	n.mu.Unlock()
	if done {
		return nil
	}
	port, err := n.ep.OpenPort(n.cfg.PacketPort, mcd.PortOptions{Receive: n.receivePackets})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.packets.port = port
	n.mu.Unlock()
	return nil
}

// LocalAddr returns the connection's Addr.
func (p *PacketConn) LocalAddr() net.Addr { return p.addr }

// MaxData returns the longest data, in bytes, of a packet to a service: 0 also where the names of
// both leave no room for any.
func (p *PacketConn) MaxData(to Addr) int { return max(p.room(to), 0) }

// room returns what the names of both services leave of a packet, in bytes: less than 0 if there is
// not enough for them.
func (p *PacketConn) room(to Addr) int {
	return p.n.ep.MaxPayload() - wire.PacketHead - len(to.Service) - len(p.addr.Service)
}

// WriteTo sends a packet to an Addr. It waits while the link has no room. Errors, in a
// *net.OpError: syscall.EMSGSIZE (MaxData says how long it may be), mcd.ErrUnknownNode,
// os.ErrDeadlineExceeded, net.ErrClosed. Nobody says whether it arrives.
func (p *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	addr, ok := to.(Addr)
	if !ok {
		err := net.InvalidAddrError("want a rawnet.Addr, as ReadFrom and Resolve return")
		return 0, opError("write", p.addr, to, err)
	}
	p.writes.Lock()
	defer p.writes.Unlock()
	if err := p.writeTo(b, addr); err != nil {
		return 0, opError("write", p.addr, to, err)
	}
	return len(b), nil
}

// writeTo is WriteTo with p.writes held.
func (p *PacketConn) writeTo(b []byte, to Addr) error {
	if err := checkService(to.Service); err != nil {
		return err
	}
	switch most := p.room(to); {
	case most < 0:
		return fmt.Errorf("%w: the services' names have %d and %d bytes, and a packet %d", syscall.EMSGSIZE,
			len(p.addr.Service), len(to.Service), p.n.ep.MaxPayload()-wire.PacketHead)
	case len(b) > most:
		return fmt.Errorf("%w: %d bytes (at most %d)", syscall.EMSGSIZE, len(b), most)
	}
	p.buf = wire.AppendPacket(p.buf[:0], to.Service, p.addr.Service, b)
	p.n.mu.Lock()
	err := p.writeErr()
	if err == nil && to.Node == p.addr.Node {
		p.n.receivePacket(to.Node, p.buf)
	}
	p.n.mu.Unlock()
	if err != nil || to.Node == p.addr.Node {
		return err
	}
	err = p.port().TrySend(0, mcd.To(p.to(to)), p.buf)
	if errors.Is(err, transport.ErrBusy) {
		err = p.sendLater(to)
	}
	return endOf(err)
}

// writeErr returns what ends writes. The caller holds mu.
func (p *PacketConn) writeErr() error {
	switch {
	case p.closed:
		return net.ErrClosed
	case p.writeDeadline.passed:
		return errTimeout
	}
	return nil
}

// sendLater waits for room in the link, until the deadline or Close.
func (p *PacketConn) sendLater(to Addr) error {
	ctx, stop := context.WithCancelCause(p.n.ended)
	defer stop(nil)
	p.n.mu.Lock()
	p.stopWrite = stop
	err := p.writeErr()
	p.n.mu.Unlock()
	if err != nil {
		return err
	}
	err = p.port().Send(ctx, p.to(to), p.buf)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return err
}

// endWrite ends the WriteTo that waits for room, if one does. The caller holds mu.
func (p *PacketConn) endWrite(cause error) {
	if p.stopWrite != nil {
		p.stopWrite(cause)
	}
}

// port returns the packets' port, which is open as long as the Net.
func (p *PacketConn) port() *mcd.Port { return p.n.packets.port }

func (p *PacketConn) to(a Addr) mcd.Addr { return mcd.Addr{Node: a.Node, Port: p.n.cfg.PacketPort} }

// ReadFrom waits for a packet, and returns its data and the Addr of its sender. What does not fit b
// is lost. Errors, in a *net.OpError: net.ErrClosed, os.ErrDeadlineExceeded.
func (p *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	p.reads.Lock()
	defer p.reads.Unlock()
	n, from, err := p.readFrom(b)
	if err != nil {
		return 0, nil, opError("read", p.addr, nil, err)
	}
	return n, from, nil
}

func (p *PacketConn) readFrom(b []byte) (int, net.Addr, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, nil, net.ErrClosed
		case p.readDeadline.passed:
			return 0, nil, errTimeout
		case len(p.queue) > 0:
			return p.pop(b)
		}
		err := p.awaitPacket(b)
		if got := p.got; got.from != nil {
			return len(got.data), got.from, nil
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

// awaitPacket waits until the reader is woken: p.got is a packet then, in b, if one has come. Also
// if await does not return, b is the caller's again. The caller holds mu.
func (p *PacketConn) awaitPacket(b []byte) error {
	p.posted, p.got = b, packet{}
	defer func() { p.posted = nil }()
	return p.n.await(context.Background(), &p.reader)
}

// pop takes the oldest packet out of the queue.
func (p *PacketConn) pop(b []byte) (int, net.Addr, error) {
	first := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	n := copy(b, first.data)
	if len(p.n.packets.spare) < sparePackets {
		p.n.packets.spare = append(p.n.packets.spare, first.data)
	}
	return n, first.from, nil
}

// receivePackets takes messages of the packets' port.
func (n *Net) receivePackets(batch []mcd.Message, _ bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range batch {
		n.receivePacket(batch[i].From.Node, batch[i].Payload)
	}
}

// receivePacket hands a packet to the service that it is for, or drops and counts it. The caller
// holds mu.
func (n *Net) receivePacket(from mcd.NodeID, b []byte) {
	to, sender, data, ok := wire.ParsePacket(b)
	if !ok {
		n.packets.stats.Malformed++
		return
	}
	p := n.packets.conns[string(to)]
	switch {
	case p == nil:
		n.packets.stats.NoService++
	case len(p.queue) >= packetBacklog:
		n.packets.stats.Full++
	default:
		p.deliver(p.sender(from, sender), data)
	}
}

// sender returns the address of a packet's sender.
func (p *PacketConn) sender(node mcd.NodeID, service []byte) net.Addr {
	if a, ok := p.from.(Addr); ok && a.Node == node && a.Service == string(service) {
		return p.from
	}
	p.from = Addr{node, string(service)}
	return p.from
}

// deliver gives a packet to the ReadFrom that waits, or queues it.
func (p *PacketConn) deliver(from net.Addr, data []byte) {
	if p.reader.waiting {
		p.got = packet{p.posted[:copy(p.posted, data)], from}
		p.reader.wake()
		return
	}
	var memory []byte
	if last := len(p.n.packets.spare) - 1; last >= 0 {
		memory = p.n.packets.spare[last]
		p.n.packets.spare = p.n.packets.spare[:last]
	} else {
		memory = make([]byte, 0, p.n.ep.MaxPayload())
	}
	p.queue = append(p.queue, packet{append(memory[:0], data...), from})
}

// Close ends the connection. Waits end with net.ErrClosed, and the service's name is free.
func (p *PacketConn) Close() error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.closed {
		return opError("close", p.addr, nil, net.ErrClosed)
	}
	p.closed = true
	delete(p.n.packets.conns, p.addr.Service)
	p.readDeadline.stop()
	p.writeDeadline.stop()
	p.queue = nil
	p.reader.wake()
	p.endWrite(net.ErrClosed)
	return nil
}

// SetDeadline sets both deadlines.
func (p *PacketConn) SetDeadline(t time.Time) error { return p.setDeadlines(t, true, true) }

// SetReadDeadline sets when ReadFrom ends with os.ErrDeadlineExceeded, now and later. Zero is
// never.
func (p *PacketConn) SetReadDeadline(t time.Time) error { return p.setDeadlines(t, true, false) }

// SetWriteDeadline sets when WriteTo ends with os.ErrDeadlineExceeded, now and later. Zero is
// never.
func (p *PacketConn) SetWriteDeadline(t time.Time) error { return p.setDeadlines(t, false, true) }

func (p *PacketConn) setDeadlines(t time.Time, read, write bool) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.closed {
		return opError("set", p.addr, nil, net.ErrClosed)
	}
	if read {
		p.readDeadline.set(p.n, t, &p.reader)
	}
	if write {
		p.writeDeadline.set(p.n, t, (*packetWriter)(p))
	}
	return nil
}

// packetWriter is a PacketConn to the deadline of its writes.
type packetWriter PacketConn

// expire ends the WriteTo that waits.
func (w *packetWriter) expire() { (*PacketConn)(w).endWrite(errTimeout) }

// Resolve reads "node:service", for WriteTo.
func (n *Net) Resolve(address string) (Addr, error) {
	a, err := n.resolve(address)
	if err != nil {
		return a, opError("resolve", nil, nil, err)
	}
	return a, nil
}

// closePackets closes what is left of packet connections.
func (n *Net) closePackets() error {
	n.packets.opens.Lock()
	defer n.packets.opens.Unlock()
	n.mu.Lock()
	all := make([]*PacketConn, 0, len(n.packets.conns))
	for _, p := range n.packets.conns {
		all = append(all, p)
	}
	port := n.packets.port
	n.mu.Unlock()
	for _, p := range all {
		_ = p.Close() // another goroutine may have done so
	}
	if port == nil {
		return nil
	}
	return port.Close()
}
