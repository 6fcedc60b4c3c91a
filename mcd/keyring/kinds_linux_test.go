//go:build linux

package keyring_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// talk is one kind of use of a network: what goes from node 0 to node 1 is recorded and sent again.
type talk interface {
	// open opens on node k, whose endpoint was opened just now, what the kind needs.
	open(s *segment, k int) error
	// renew makes anew what node 0 has, where that does not outlive node 1's end.
	renew(s *segment) error
	// talk has node 0 send something to node 1, and returns an error unless it does there what it
	// should, once.
	talk(ctx context.Context, s *segment) error
	// tempt has node 1 ready to be fooled: it waits for what the frames would bring.
	tempt(s *segment) error
	// fooled says what node 1 has believed since.
	fooled(s *segment) error
}

// simple is the part of a talk that has nothing to renew, and no way to tempt.
type simple struct{}

func (simple) renew(*segment) error { return nil }
func (simple) tempt(*segment) error { return nil }

// kinds are all kinds of frames that endpoints and the layers above them send.
var kinds = []struct {
	name string
	make func() talk
}{
	{"unicast", func() talk { return &messages{to: mcd.To(mcd.Addr{Node: 1, Port: messagePort})} }},
	{"multicast", func() talk { return &messages{to: mcd.ToGroup(messageGroup, messagePort)} }},
	{"broadcast", func() talk { return &messages{to: mcd.ToAll(messagePort)} }},
	{"probe", func() talk { return &probes{from: 0} }},
	{"reply to a probe", func() talk { return &probes{from: 1} }},
	{"discovery", func() talk { return &discovery{} }},
	{"exchange", func() talk { return &exchange{} }},
	{"barrier", func() talk { return &barriers{} }},
	{"put", func() talk { return &memory{} }},
	{"fetch and add", func() talk { return &counter{} }},
	{"fifo", func() talk { return &fifo{} }},
}

const (
	messagePort  mcd.PortID  = 5
	messageGroup mcd.GroupID = 9
)

// messages are those of package mcd.
type messages struct {
	simple
	to       mcd.Dest
	port     *mcd.Port // node 0's
	sent     uint64
	received atomic.Uint64 // by node 1
}

func (m *messages) open(s *segment, k int) (err error) {
	opts := mcd.PortOptions{Receive: func([]mcd.Message, bool) {}}
	if k == 1 {
		opts.Receive = func(batch []mcd.Message, _ bool) { m.received.Add(uint64(len(batch))) }
	}
	p, err := s.es[k].OpenPort(messagePort, opts)
	if k == 0 {
		m.port = p
	}
	return errors.Join(err, s.es[k].Join(messageGroup))
}

func (m *messages) talk(ctx context.Context, _ *segment) error {
	m.sent++
	if err := m.port.SendVia(ctx, 0, m.to, fmt.Append(nil, "message ", m.sent)); err != nil {
		return err
	}
	return until(ctx, func() bool { return m.received.Load() == m.sent })
}

func (m *messages) fooled(*segment) error {
	if n := m.received.Load() - m.sent; n != 0 {
		return fmt.Errorf("%d messages were delivered again", n)
	}
	return nil
}

// probes are pings of one node.
type probes struct {
	simple
	from  int
	pings uint64 // of that node, since node 1 was opened
}

func (p *probes) open(_ *segment, k int) error {
	if k == 1 {
		p.pings = 0 // its counters begin anew
	}
	return nil
}

func (p *probes) talk(ctx context.Context, s *segment) error {
	_, err := s.es[p.from].Ping(ctx, mcd.Path{Node: mcd.NodeID(1 - p.from)}, mcd.ProbeOptions{})
	p.pings++
	return err
}

func (p *probes) fooled(s *segment) error {
	c := s.es[1].Counters()
	if got := c.RxProbes + c.RxReplies; got != p.pings {
		return fmt.Errorf("%d probes and replies were believed, of %d", got, p.pings)
	}
	return nil
}

// discovery has the nodes find each other.
type discovery struct {
	joined [2]*cluster.Membership
	found  chan error // node 1's Join, while it is under way
	cancel context.CancelFunc
}

func (d *discovery) open(*segment, int) error { return nil }

// renew has node 0 leave. It has sent nothing for long: what it is asked, it has answered.
func (d *discovery) renew(*segment) error {
	err := d.joined[0].Close()
	d.joined = [2]*cluster.Membership{}
	return err
}

func (d *discovery) talk(ctx context.Context, s *segment) (err error) {
	if d.joined[0] != nil {
		return nil // they have found each other
	}
	if d.found == nil {
		if err := d.begin(s); err != nil {
			return err
		}
	}
	if d.joined[0], err = cluster.Join(ctx, s.es[0], cluster.Config{Nodes: 2}); err != nil {
		return err
	}
	err = <-d.found
	d.cancel()
	d.found = nil
	return err
}

// begin has node 1 look for node 0, which is silent.
func (d *discovery) begin(s *segment) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	found := make(chan error, 1)
	d.found, d.cancel = found, cancel
	before := s.es[1].Counters().TxMessages
	go func() {
		var err error
		d.joined[1], err = cluster.Join(ctx, s.es[1], cluster.Config{Nodes: 2})
		found <- err
	}()
	return until(ctx, func() bool { return s.es[1].Counters().TxMessages > before }) // it listens
}

func (d *discovery) tempt(s *segment) error {
	if d.joined[0] != nil {
		return nil
	}
	return d.begin(s)
}

func (d *discovery) fooled(*segment) error {
	select {
	case err := <-d.found:
		d.found <- err
		return fmt.Errorf("node 1 has found a node that is silent (error: %s)", fmt.Sprint(err))
	default: // it looks, or does not look at all
		return nil
	}
}

// exchange has node 0 ask node 1.
type exchange struct {
	simple
	asking *cluster.Exchanger // node 0's
	number uint64             // of the last request
	lowest atomic.Uint64      // number that node 1 was asked since tempt; the last one may be repeated
}

func (x *exchange) open(s *segment, k int) error {
	opened, err := cluster.OpenExchanger(s.es[k], cluster.ExchangerConfig{
		Answer: func(_ mcd.NodeID, request []byte) ([]byte, bool) {
			if n := binary.BigEndian.Uint64(request); n < x.lowest.Load() {
				x.lowest.Store(n)
			}
			return request, true
		},
	})
	if k == 0 {
		x.asking = opened
	}
	return err
}

func (x *exchange) talk(ctx context.Context, _ *segment) error {
	x.number++
	want := binary.BigEndian.AppendUint64(nil, x.number)
	got, err := x.asking.Ask(ctx, 1, want)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("the answer is %x, want %x", got, want)
	}
	return err
}

func (x *exchange) tempt(*segment) error {
	x.lowest.Store(x.number)
	return nil
}

func (x *exchange) fooled(*segment) error {
	if n := x.lowest.Load(); n < x.number {
		return fmt.Errorf("request %d was answered again, after %d", n, x.number)
	}
	return nil
}

// barriers are of both nodes.
type barriers struct {
	services [2]*barrier.Service
	groups   [2]*barrier.Group
	ticket   *barrier.Ticket // node 1's, of the barrier that node 0 has not entered
}

func (b *barriers) open(s *segment, k int) (err error) {
	if b.services[k], err = barrier.Open(s.es[k], barrier.Config{}); err == nil {
		b.groups[k], err = b.services[k].Group(barrier.GroupConfig{PeerTimeout: patience})
	}
	return err
}

func (b *barriers) renew(s *segment) error {
	return errors.Join(b.services[0].Close(), b.open(s, 0))
}

func (b *barriers) talk(ctx context.Context, s *segment) error {
	if b.ticket == nil {
		if err := b.tempt(s); err != nil {
			return err
		}
	}
	err := errors.Join(b.groups[0].Barrier(ctx), b.ticket.Wait(ctx))
	b.ticket = nil
	return err
}

func (b *barriers) tempt(*segment) error {
	t, err := b.groups[1].Arrive()
	b.ticket = &t
	return err
}

func (b *barriers) fooled(*segment) error {
	if done, err := b.ticket.Done(); done || err != nil {
		return fmt.Errorf("node 1 has left a barrier that node 0 has not entered: %t (error: %s)", done, fmt.Sprint(err))
	}
	return nil
}

// memory is a window of node 1.
type memory struct {
	domains [2]*memfifo.Domain
	key     memfifo.Key
	value   byte
}

func (m *memory) open(s *segment, k int) (err error) {
	if m.domains[k], err = memfifo.Open(s.es[k], memfifo.Config{}); err != nil || k == 0 {
		return err
	}
	w, err := m.domains[1].Register(1, make([]byte, 16), memfifo.Read|memfifo.Write|memfifo.Atomic)
	if err == nil {
		m.key = w.Key()
	}
	return err
}

func (m *memory) renew(s *segment) error { return errors.Join(m.domains[0].Close(), m.open(s, 0)) }

func (m *memory) talk(ctx context.Context, _ *segment) error {
	m.value++
	if err := m.domains[0].Remote(m.key).Put(ctx, 8, []byte{m.value}); err != nil {
		return err
	}
	if err := m.domains[0].Flush(ctx); err != nil {
		return err
	}
	return m.expect(ctx, m.value)
}

// expect reads the window as node 1 does.
func (m *memory) expect(ctx context.Context, want byte) error {
	var got [1]byte
	err := m.domains[1].Remote(m.key).Get(ctx, 8, got[:])
	if err == nil && got[0] != want {
		err = fmt.Errorf("the window holds %d, want %d", got[0], want)
	}
	return err
}

func (m *memory) tempt(s *segment) error {
	return m.domains[1].Remote(m.key).Put(s.t.Context(), 8, []byte{0})
}

func (m *memory) fooled(s *segment) error { return m.expect(s.t.Context(), 0) }

// counter is a word of node 1 to which node 0 adds.
type counter struct {
	memory
	added uint64
}

func (c *counter) open(s *segment, k int) error {
	if k == 1 {
		c.added = 0
	}
	return c.memory.open(s, k)
}

func (c *counter) talk(ctx context.Context, s *segment) error {
	c.added++
	old, err := c.domains[0].Remote(c.key).FetchAdd(ctx, 0, 1)
	if err == nil && old != c.added-1 {
		err = fmt.Errorf("the counter was %d, want %d", old, c.added-1)
	}
	return errors.Join(err, c.fooled(s))
}

func (c *counter) tempt(*segment) error { return nil }

func (c *counter) fooled(s *segment) error {
	got, err := c.domains[1].Remote(c.key).FetchAdd(s.t.Context(), 0, 0)
	if err == nil && got != c.added {
		err = fmt.Errorf("the counter is %d, want %d", got, c.added)
	}
	return err
}

// fifo is one of node 1.
type fifo struct {
	domains [2]*memfifo.Domain
	queue   *memfifo.FIFO
	pushed  int
}

func (q *fifo) open(s *segment, k int) (err error) {
	if q.domains[k], err = memfifo.Open(s.es[k], memfifo.Config{}); err == nil && k == 1 {
		q.queue, err = q.domains[1].NewFIFO(1, make([]byte, 1<<12))
	}
	return err
}

func (q *fifo) renew(s *segment) error { return errors.Join(q.domains[0].Close(), q.open(s, 0)) }

func (q *fifo) talk(ctx context.Context, _ *segment) error {
	q.pushed++
	want := fmt.Append(nil, "record ", q.pushed)
	if err := q.domains[0].Remote(q.queue.Key()).Push(ctx, want); err != nil {
		return err
	}
	buf := make([]byte, 100)
	n, err := q.queue.Pop(ctx, buf)
	if err == nil && !slices.Equal(buf[:n], want) {
		err = fmt.Errorf("popped %q, want %q", buf[:n], want)
	}
	return errors.Join(err, q.domains[0].Flush(ctx))
}

func (q *fifo) tempt(*segment) error { return nil }

func (q *fifo) fooled(*segment) error {
	if n := q.queue.Len(); n != 0 {
		return fmt.Errorf("%d bytes of records came again", n)
	}
	return nil
}

// until waits for what other goroutines bring about.
func until(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// patience is how long what must happen may take.
const patience = 20 * time.Second

// Frames of every kind that a third station has recorded and sends again, alters, forges, or sends
// without a key are refused, and have no effect; and all goes on. Without a key the same frames are
// believed: the test would see it.
func TestEveryKindOfFrameIsProtected(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel() // they wait, more than they compute
			for _, protection := range []protection{plain, authenticated, encrypted} {
				t.Run(string(protection), func(t *testing.T) { newSegment(t, protection, k.make()).run() })
			}
		})
	}
}
