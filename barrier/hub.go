package barrier

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// hub is what all groups of an endpoint share: the port, a lock and a timer.
type hub struct {
	ep   *mcd.Endpoint
	id   mcd.PortID
	port *mcd.Port

	mu        sync.Mutex // guards what follows and all engines; taken inside the endpoint's poll lock
	circles   map[uint64]*circle
	former    []former          // those that were closed last
	early     []early           // messages of circles that are not here yet
	made      map[uint64]uint32 // sets of members made so far, by hash
	message   engine.Message    // the one being handled
	out       []engine.Send
	buf       []byte
	timer     *time.Timer
	armed     bool
	next      monotime.Time // if armed: when the timer fires
	strangers uint64        // messages of nodes that are no members, or of no group, or malformed
}

// former is a circle that was closed, for those who have missed its goodbye.
type former struct {
	identity uint64
	bye      engine.Message
}

// formers bounds hub.former.
const formers = 64

// early is a message of a circle that is not here: it was not made yet, most likely, and without this would have to be
// asked for.
type early struct {
	from    mcd.NodeID
	message engine.Message
}

// earlyMax bounds hub.early. The oldest go first.
const earlyMax = 256

// hubs are those of all endpoints that have groups, or had some: a later group is to be told from a former one.
var hubs = struct {
	mu  sync.Mutex
	all map[hubKey]*registration
}{all: map[hubKey]*registration{}}

type hubKey struct {
	ep   weak.Pointer[mcd.Endpoint]
	port mcd.PortID
}

// registration is an endpoint's hub, which is there while it has groups, and what outlives it.
type registration struct {
	hub    *hub
	groups int
	made   map[uint64]uint32
}

// joinHub returns the endpoint's hub for one more group.
func joinHub(ep *mcd.Endpoint, id mcd.PortID) (*hub, error) {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	key := hubKey{weak.Make(ep), id}
	r := hubs.all[key]
	if r == nil {
		r = &registration{made: map[uint64]uint32{}}
		hubs.all[key] = r
		runtime.AddCleanup(ep, unregister, key)
	}
	if r.hub == nil {
		h, err := newHub(ep, id, r.made)
		if err != nil {
			return nil, err
		}
		r.hub = h
	}
	r.groups++
	return r.hub, nil
}

func unregister(key hubKey) {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	delete(hubs.all, key)
}

func newHub(ep *mcd.Endpoint, id mcd.PortID, made map[uint64]uint32) (*hub, error) {
	h := &hub{ep: ep, id: id, circles: map[uint64]*circle{}, made: made, buf: make([]byte, 0, engine.MaxLen)}
	h.timer = time.AfterFunc(time.Hour, h.tick) // until it is watched for something, an hour is never
	h.timer.Stop()
	h.mu.Lock() // a message may come before the port is known
	defer h.mu.Unlock()
	var err error
	h.port, err = ep.OpenPort(id, mcd.PortOptions{Receive: h.receive})
	return h, err
}

// leave is for one group less.
func (h *hub) leave() error {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	r := hubs.all[hubKey{weak.Make(h.ep), h.id}]
	if r.groups--; r.groups > 0 {
		return nil
	}
	r.hub = nil
	h.timer.Stop()
	return h.port.Close()
}

// forget takes a circle out, and keeps its goodbye. The caller holds mu.
func (h *hub) forget(c *circle) {
	delete(h.circles, c.identity)
	if len(h.former) == formers {
		h.former = slices.Delete(h.former, 0, 1)
	}
	h.former = append(h.former, former{c.identity, c.engine.Goodbye()})
}

// add makes a circle known, and gives it the messages that came before it.
func (h *hub) add(c *circle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.circles[c.identity] = c
	waiting := h.early
	h.early = nil
	for i := range waiting {
		if e := &waiting[i]; e.message.Identity == c.identity {
			c.handle(clock.Now(), e.from, &e.message)
		} else {
			h.early = append(h.early, *e)
		}
	}
}

// incarnation returns a number that no member before had, in all likelihood.
func (h *hub) incarnation() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:]) | 1
}

// receive takes a batch of messages, in the endpoint's progress.
func (h *hub) receive(batch []mcd.Message, _ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range batch {
		h.handle(&batch[i])
	}
}

// handle takes a message. The caller holds mu.
func (h *hub) handle(m *mcd.Message) {
	msg := &h.message
	if err := engine.Parse(m.Payload, msg); err != nil {
		h.strangers++
		return
	}
	msg.NIC = m.NIC
	c := h.circles[msg.Identity]
	if c == nil {
		h.absent(m.From.Node, msg)
		return
	}
	c.handle(clock.Now(), m.From.Node, msg)
}

// absent takes a message of a circle that is not here: it was not made yet, or was closed.
func (h *hub) absent(from mcd.NodeID, m *engine.Message) {
	answer := engine.Message{Kind: engine.Absent, Number: m.Number, Identity: m.Identity, Generation: m.Generation}
	switch m.Kind {
	case engine.Tell:
		if len(h.early) == earlyMax {
			h.early = slices.Delete(h.early, 0, 1)
			h.strangers++
		}
		h.early = append(h.early, early{from, *m})
		return
	case engine.Ask:
		answer.Elsewhere = h.waitsFor(from, nil, 0)
		for i := range h.former {
			if h.former[i].identity == m.Identity {
				answer = h.former[i].bye
			}
		}
	case engine.Roll:
	case engine.Bye:
		answer.Kind = engine.Bid
	default:
		h.strangers++
		return
	}
	h.buf = answer.Append(h.buf[:0])
	h.post(m.NIC, mcd.To(mcd.Addr{Node: from, Port: h.id}))
}

// elsewhere finds what the engine is to know besides a message: for one who asks, a barrier in which this node waits, and
// he should be; for one who waits elsewhere, whether this node is there. The caller holds mu.
func (h *hub) elsewhere(c *circle, from mcd.NodeID, m *engine.Message) engine.Elsewhere {
	switch m.Kind {
	case engine.Later, engine.Absent:
		if !c.slot(m.Number).blocked() {
			return m.Elsewhere // the program is at work, and may go there yet
		}
		there := h.circles[m.Elsewhere.Identity]
		if m.Elsewhere.Generation == 0 || there == nil {
			break
		}
		if there.engine.InOrBefore(m.Elsewhere.Number, m.Elsewhere.Generation) {
			return m.Elsewhere
		}
	case engine.Ask:
		return h.waitsFor(from, c, m.Number)
	}
	return engine.Elsewhere{}
}

// waitsFor finds a barrier, but for one, in which this node waits, and a node should be.
func (h *hub) waitsFor(node mcd.NodeID, but *circle, number uint8) engine.Elsewhere {
	for _, c := range h.circles {
		if _, member := slices.BinarySearch(c.nodes, node); !member {
			continue
		}
		waits := func(other uint8) bool { return (c != but || other != number) && c.slot(other).blocked() }
		if number, generation, ok := c.engine.WaitingIn(waits); ok {
			return engine.Elsewhere{Number: number, Identity: c.identity, Generation: generation}
		}
	}
	return engine.Elsewhere{}
}

// post sends buf. If the link has no room the message waits, in a copy. The caller holds mu.
func (h *hub) post(nic int, to mcd.Dest) {
	err := h.port.TrySend(nic, to, h.buf)
	if errors.Is(err, transport.ErrBusy) {
		// What cannot be posted either is lost, as frames are: it will be asked for.
		_ = h.port.PostSend(&mcd.SendDesc{To: to, Payload: slices.Clone(h.buf), NIC: nic})
	}
}

// watch sees to it that c's deadlines are kept. One timer does for all; in barriers that are quick it is set once for
// many of them. The caller holds mu.
func (h *hub) watch(c *circle) {
	at, ok := c.engine.Deadline()
	if !ok || h.armed && !at.Before(h.next) {
		return
	}
	h.armed, h.next = true, at
	h.timer.Reset(at.Sub(clock.Now()))
}

// tick is what the timer does, in a goroutine of its own.
func (h *hub) tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := clock.Now()
	h.armed = false
	for _, c := range h.circles {
		h.out = c.engine.Advance(now, h.out[:0])
		c.flush()
		c.checkLate(now)
		if at, ok := c.engine.Deadline(); ok && (!h.armed || at.Before(h.next)) {
			h.armed, h.next = true, at
		}
	}
	if h.armed {
		h.timer.Reset(h.next.Sub(now))
	}
}

// sayBye tells a circle's members that this one leaves it, until they have heard it.
func (h *hub) sayBye(c *circle) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLinger)
	defer cancel()
	for ctx.Err() == nil {
		h.mu.Lock()
		h.out = c.engine.Leave(h.out[:0])
		left := len(h.out)
		c.flush()
		h.mu.Unlock()
		if left == 0 || h.linger(ctx, c) != nil {
			return
		}
	}
}

// linger makes progress until all have answered a goodbye, or it is time to repeat it. ErrClosed: nobody can.
func (h *hub) linger(ctx context.Context, c *circle) error {
	ctx, cancel := context.WithTimeout(ctx, byeAgain)
	defer cancel()
	var never mcd.Completion
	for ctx.Err() == nil {
		slice, done := context.WithTimeout(ctx, 50*time.Microsecond)
		err := h.ep.Await(slice, &never) // it ends by its context, or with the endpoint
		done()
		if errors.Is(err, mcd.ErrClosed) {
			return err
		}
		h.mu.Lock()
		heard := c.engine.Heard()
		h.mu.Unlock()
		if heard {
			break
		}
	}
	return nil
}
