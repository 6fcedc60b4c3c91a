package rawnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// Config of a Net. The zero value works; all nodes need the same ports.
type Config struct {
	// Port of the connections on every node. Zero is DefaultPort.
	Port mcd.PortID
	// PacketPort is that of packets. Zero is DefaultPacketPort.
	PacketPort mcd.PortID
	// Names are names of nodes, for addresses such as "storage:http": no numbers, and no colons.
	Names map[string]mcd.NodeID
	// Window is how many bytes the other end of a connection may send before they are read: more of
	// them carry more over a long path, and are the memory that a connection takes whose reader is
	// slow (up to four times that). Zero is DefaultWindow.
	Window int
	// Backlog is how many connections to one listener wait for Accept; further ones are refused.
	// Zero is DefaultBacklog.
	Backlog int
	// MaxConns is how many connections there may be. Zero is DefaultMaxConns.
	MaxConns int
	// PeerTimeout is how long a node that owes an answer may be silent; then its connections are
	// reset. Zero is memfifo.DefaultPeerTimeout; less than a millisecond is refused. A node that
	// does not answer a dial is down after 0.65 s at the earliest: it is asked eight times.
	PeerTimeout time.Duration
}

func (c *Config) setDefaults() error {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.PacketPort = cmp.Or(c.PacketPort, DefaultPacketPort)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, memfifo.DefaultPeerTimeout)
	switch {
	case c.Port == c.PacketPort:
		return fmt.Errorf("Config.Port and Config.PacketPort are both %d: want two ports", c.Port)
	case c.Window < MinWindow:
		return fmt.Errorf("Config.Window %d: want %d bytes or more", c.Window, MinWindow)
	case c.Backlog < 0 || c.MaxConns < 0:
		return fmt.Errorf("Config.Backlog %d, Config.MaxConns %d: want 0 or more", c.Backlog, c.MaxConns)
	}
	for name := range c.Names {
		if _, err := strconv.ParseUint(name, 10, 64); err == nil || name == "" || strings.Contains(name, ":") {
			return fmt.Errorf("Config.Names has %q: want a name that is no number, and has no colon", name)
		}
	}
	return nil
}

// Net is a node's connections, listeners and packet connections. All its methods, and theirs, may
// be called from any goroutine.
type Net struct {
	ep    *mcd.Endpoint
	cfg   Config
	layer *activemsg.Layer[node] // mu guards its nodes
	chunk int                    // the most data of a record that fits a frame
	ended context.Context
	end   context.CancelFunc

	mu      sync.Mutex // guards all below, and what says so elsewhere; taken inside the domain's lock
	mux     *mux.Mux
	events  []mux.Event // of the record that is being handled
	control []byte      // likewise: memory for an answer
	spare   []*recordBuffer
	closed  bool
	over    chan struct{}  // closed when Close has done its work
	stopped bool           // none is added to running any more
	running sync.WaitGroup // the goroutines of controlLoop, and those in sendControl
	packets packets
}

// Open gives an endpoint net's interfaces. It opens Config.Port. Errors: mcd.ErrPortBusy.
func Open(ep *mcd.Endpoint, cfg Config) (*Net, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("rawnet: %w", err)
	}
	cfg.Names = maps.Clone(cfg.Names)
	n := &Net{ep: ep, cfg: cfg, over: make(chan struct{})}
	n.mux = mux.New(mux.Config{First: incarnation.New64(), Window: cfg.Window, MaxStreams: cfg.MaxConns})
	n.packets.conns, n.packets.life = map[string]*PacketConn{}, incarnation.New()
	n.ended, n.end = context.WithCancel(context.Background())
	if err := n.open(); err != nil {
		return nil, fmt.Errorf("rawnet: %w", err)
	}
	if n.chunk < mux.MaxControl {
		err := fmt.Errorf("rawnet: messages of %d bytes are too short", ep.MaxPayload())
		return nil, errors.Join(err, n.layer.Close())
	}
	return n, nil
}

func (n *Net) open() (err error) {
	n.mu.Lock() // a record may come before the layer is known
	defer n.mu.Unlock()
	n.layer, err = activemsg.Open(n.ep, memfifo.Config{Port: n.cfg.Port, PeerTimeout: n.cfg.PeerTimeout},
		memfifo.HandlerConfig{Record: n.handle, Down: n.down}, func(p activemsg.Node) *node { return &node{Node: p} })
	if err == nil {
		n.chunk = n.layer.Domain.MaxFrameRecord() - mux.HeaderLen
	}
	return err
}

// Counters of a Net: connections dialed, accepted and refused, and records that were dropped.
type Counters struct {
	mux.Counters
	Conns   int              `json:"conns"` // that there are: no number that only grows
	Packets PacketCounters   `json:"packets"`
	Frames  memfifo.Counters `json:"frames"` // of the connections' records
}

// Counters returns the counters.
func (n *Net) Counters() Counters {
	frames := n.layer.Domain.Counters() // before mu is taken
	n.mu.Lock()
	defer n.mu.Unlock()
	return Counters{n.mux.Counters(), n.mux.Len(), n.packets.stats, frames}
}

// Node returns this node's number.
func (n *Net) Node() mcd.NodeID { return n.ep.Node() }

// waiter is a wait of one goroutine at a time. Net.mu guards it, except for the completion.
type waiter struct {
	completion mcd.Completion
	waiting    bool
}

// wake ends the wait, if there is one.
func (w *waiter) wake() {
	if w.waiting {
		w.waiting = false
		w.completion.Complete(nil)
	}
}

// await waits until the waiter is woken. The caller holds mu, which is free meanwhile, and is held
// again also if what another port receives, which may be handled here, does not return. Errors: the
// context's, net.ErrClosed.
func (n *Net) await(ctx context.Context, w *waiter) error {
	w.completion.Reset()
	w.waiting = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		w.waiting = false
	}()
	if err := n.layer.Handler.Await(ctx, &w.completion); err != nil {
		return endOf(err)
	}
	return nil
}

// handle takes a record: a Handler's function, in the goroutine that polls.
func (n *Net) handle(from memfifo.Sender, rec []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peer := uint16(from.Node())
	streams := n.mux.Len()
	n.events = n.mux.Handle(peer, rec, n.events[:0])
	n.deliver()
	if n.mux.Owes(peer) || n.mux.Len() < streams { // one that nobody has accepted has nobody to close it
		n.answer(from)
	}
}

// down resets the connections with a node: a Handler's function.
func (n *Net) down(err *memfifo.PeerDownError) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = n.mux.Down(uint16(err.Node), err, n.events[:0])
	n.deliver()
	p := n.layer.Node(err.Node)
	p.Died()
	p.needsFlush = true
	n.startControl(p)
}

// deliver wakes those who wait for what has happened. The caller holds mu.
func (n *Net) deliver() {
	for i := range n.events {
		e := &n.events[i]
		if e.Kind == mux.Acceptable {
			if l, ok := e.Listener.Owner.(*Listener); ok {
				l.waiter.wake()
			}
			continue
		}
		c, ok := e.Stream.Owner.(*Conn)
		if !ok {
			continue // nobody has accepted it
		}
		switch e.Kind {
		case mux.Readable, mux.Answered:
			c.reader.wake()
		case mux.Writable:
			c.writer.wake()
		case mux.Failed:
			c.reader.wake()
			c.endWrites()
		}
	}
}

// Close closes the listeners and connections, says so to their other ends, and ends the Net. It
// waits for room for that, and until the other nodes have confirmed, for two peer timeouts each at
// most: the error names those that have not, and have not left either, without those that were
// down before, which their connections have told. When Close returns, also a second time, the port
// is free. Close it before its endpoint.
func (n *Net) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		<-n.over
		return nil
	}
	defer close(n.over)
	n.closed = true
	n.layer.Closing()
	listeners := n.mux.Listeners()
	n.mu.Unlock()
	for _, l := range listeners {
		if l, ok := l.Owner.(*Listener); ok {
			_ = l.Close()
		}
	}
	n.mu.Lock()
	streams := n.mux.All() // with those that were accepted meanwhile: no more are
	n.mu.Unlock()
	for _, s := range streams {
		if c, ok := s.Owner.(*Conn); ok && c.Close() != nil {
			c.closeStream() // its Close is under way in another goroutine
		}
	}
	packets := n.closePackets()
	n.mu.Lock()
	for _, p := range n.layer.Nodes { // of streams that have ended, where that is about to be sent
		if n.mux.Owes(uint16(p.ID)) {
			n.startControl(p)
		}
	}
	n.stopped = true
	n.mu.Unlock()
	n.waitRunning()
	err := n.layer.Close()
	n.end()
	return errors.Join(packets, err)
}

// waitRunning waits until what is owed to other nodes was sent. Those that give no room, or do not
// answer a flush, are waited for as long as the domain's own Close waits.
func (n *Net) waitRunning() {
	limit, cancel := standstill.ForClose(n.cfg.PeerTimeout)
	defer cancel()
	defer context.AfterFunc(limit, n.end)()
	n.running.Wait()
}
