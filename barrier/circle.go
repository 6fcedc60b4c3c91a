package barrier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// circle is a set of members that have barriers together: a group's, or those of one mask. The engine does the work;
// the circle carries its messages, and wakes who waits.
type circle struct {
	hub       *hub
	cfg       *Config
	mask      Mask // zero for the group's own
	nodes     []mcd.NodeID
	rank      int
	identity  uint64
	algorithm schedule.Algorithm
	group     mcd.GroupID // that multicasts go to
	multicast bool        // the schedule has them

	// What follows is guarded by hub.mu.
	engine *engine.Engine
	slots  [Numbers]atomic.Pointer[slot] // read without
	closed bool
}

// slot is who waits for one number.
type slot struct {
	completion mcd.Completion
	generation atomic.Uint32
	waiters    atomic.Int32 // goroutines in Ticket.Wait
	late       lateness     // in this generation
}

// blocked reports whether somebody waits for the barrier, and does nothing else.
func (s *slot) blocked() bool { return s.waiters.Load() > 0 }

func (g *Group) newCircle(nodes []mcd.NodeID, mask Mask) (*circle, error) {
	rank, _ := slices.BinarySearch(nodes, g.hub.ep.Node())
	c := &circle{hub: g.hub, cfg: &g.cfg, mask: mask, nodes: nodes, rank: rank, algorithm: g.cfg.Algorithm.For(len(nodes))}
	if err := c.checkSchedule(); err != nil {
		return nil, err
	}
	c.multicast = c.algorithm.Multicasts(len(nodes))
	c.hub.mu.Lock()
	if mask.IsZero() {
		c.identity = c.hub.identify(c.cfg.ID, nodes)
	} else {
		c.identity = hash(binary.BigEndian.AppendUint64(nil, g.all.identity), nodes)
	}
	c.group = mcd.GroupID(c.identity>>48) ^ mcd.GroupID(c.identity>>32) ^ mcd.GroupID(c.identity>>16) ^ mcd.GroupID(c.identity)
	c.engine = engine.New(engine.Config{
		Rank: rank, Size: len(nodes), NICs: c.hub.ep.NICs(), Algorithm: c.algorithm,
		Identity: c.identity, Incarnation: c.hub.incarnation(), Limit: c.cfg.Limit,
	})
	c.hub.mu.Unlock()
	if c.multicast {
		if err := c.hub.ep.Join(c.group); err != nil {
			return nil, err
		}
	}
	c.hub.add(c)
	return c, nil
}

// checkSchedule refuses what this endpoint or the wire cannot carry, and algorithms of users' own that are wrong.
func (c *circle) checkSchedule() error {
	if len(c.nodes) <= proofSize {
		if err := c.algorithm.Check(len(c.nodes)); err != nil {
			return err
		}
	}
	for _, s := range c.algorithm.Steps(c.rank, len(c.nodes)) {
		for _, t := range s.Tell {
			if t.NIC >= c.hub.ep.NICs() {
				return fmt.Errorf("%v wants network %d: the endpoint has %d (counted from 0)", c.algorithm, t.NIC, c.hub.ep.NICs())
			}
		}
	}
	return nil
}

// proofSize is how large a group's schedule is proved when it is made: in a millisecond or so.
const proofSize = 128

// identify gives a set of members a number that others have too: a hash of the group's id, the members, and how many such
// sets were made here before, so that one that is made anew does not take the former one's messages. The caller
// holds hub.mu.
func (h *hub) identify(id uint32, nodes []mcd.NodeID) uint64 {
	base := hash(binary.BigEndian.AppendUint32(nil, id), nodes)
	h.made[base]++
	return hash(binary.BigEndian.AppendUint64(nil, base+uint64(h.made[base])), nil)
}

func hash(b []byte, nodes []mcd.NodeID) uint64 {
	for _, n := range nodes {
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b) // never fails
	return sum.Sum64()
}

func (c *circle) slot(number uint8) *slot {
	s := c.slots[number].Load()
	if s == nil {
		c.slots[number].CompareAndSwap(nil, new(slot))
		s = c.slots[number].Load()
	}
	return s
}

// arrive enters a barrier.
func (c *circle) arrive(number uint8) (Ticket, error) {
	s := c.slot(number)
	now := clock.Now()
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.closed {
		return Ticket{}, ErrClosed
	}
	if state, _ := c.engine.State(number); state == engine.Idle {
		s.completion.Reset()
		s.late = inTime
	}
	var err error
	h.out, err = c.engine.Arrive(now, number, h.out[:0])
	_, generation := c.engine.State(number)
	switch {
	case errors.Is(err, engine.ErrWaiting):
		return Ticket{}, fmt.Errorf("barrier %d, generation %d: %w", number, generation, ErrPending)
	case err != nil:
		return Ticket{}, c.explain(number)
	}
	s.generation.Store(generation)
	c.flush()
	h.watch(c)
	return Ticket{c, number, generation}, nil
}

// handle takes a message from a member. The caller holds hub.mu.
func (c *circle) handle(now monotime.Time, from mcd.NodeID, m *engine.Message) {
	rank, member := slices.BinarySearch(c.nodes, from)
	if !member {
		c.hub.strangers++
		return
	}
	c.hub.out = c.engine.Handle(now, rank, m, c.hub.elsewhere(c, from, m), c.hub.out[:0])
	c.flush()
}

// flush sends what the engine gave out, and wakes those whose barrier has ended. The caller holds hub.mu.
func (c *circle) flush() {
	for i := range c.hub.out {
		c.send(&c.hub.out[i])
	}
	for _, number := range c.engine.Ended() {
		c.slot(number).completion.Complete(c.explain(number))
	}
}

func (c *circle) send(s *engine.Send) {
	if s.Message.Identity != c.identity { // a barrier of another group fails too
		if there := c.hub.circles[s.Message.Identity]; there != nil {
			there.engine.Doom(s.Message.Number, s.Message.Generation)
		}
	}
	c.hub.buf = s.Message.Append(c.hub.buf[:0])
	switch {
	case s.To != schedule.All:
		c.hub.post(s.NIC, mcd.To(mcd.Addr{Node: c.nodes[s.To], Port: c.hub.id}))
	case c.multicast:
		c.hub.post(s.NIC, mcd.ToGroup(c.group, c.hub.id))
	default:
		for rank, node := range c.nodes {
			if rank != c.rank {
				c.hub.post(s.NIC, mcd.To(mcd.Addr{Node: node, Port: c.hub.id}))
			}
		}
	}
}

// explain returns why a number's barrier failed, or nil. The caller holds hub.mu.
func (c *circle) explain(number uint8) error {
	f := c.engine.Failure(number)
	if f == nil {
		return nil
	}
	_, generation := c.engine.State(number)
	var nodes []mcd.NodeID
	for _, r := range f.Ranks {
		nodes = append(nodes, c.nodes[r])
	}
	switch f.Reason {
	case engine.Algorithms:
		return &MismatchError{number, generation, nodes, fmt.Sprintf("another algorithm than %v at one of them", c.algorithm)}
	case engine.Elsewheres:
		what := "waiting for each other in different barriers (numbers or masks differ)"
		if f.Elsewhere.Generation > 0 {
			what = c.hub.describe(f.Elsewhere)
		}
		return &MismatchError{number, generation, nodes, what}
	}
	return &NodeDownError{number, generation, nodes, f.Others, f.Reason.String(), c.cfg.Limit}
}

// describe says in which barrier another node waits.
func (h *hub) describe(e engine.Elsewhere) string {
	where := "of a mask or group that does not exist here"
	if c := h.circles[e.Identity]; c != nil {
		where = "of members " + Of(c.nodes...).String()
	}
	return fmt.Sprintf("waits in barrier %d, generation %d, %s, and will not come here", e.Number, e.Generation, where)
}

func (c *circle) incomplete(t Ticket, err error) error {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	var missing []mcd.NodeID
	for _, r := range c.engine.Missing(t.number, nil) {
		missing = append(missing, c.nodes[r])
	}
	return &IncompleteError{t.number, t.generation, missing, err}
}

const (
	// closeLinger is how long Close waits to be heard, at most: some ten times what it takes where nothing is lost.
	closeLinger = 50 * time.Millisecond
	// byeAgain is when it says goodbye again.
	byeAgain = 3 * time.Millisecond
)

// close leaves. It returns false if that was done before.
func (c *circle) close() bool {
	h := c.hub
	h.mu.Lock()
	first := !c.closed
	c.closed = true
	h.mu.Unlock()
	if !first {
		return false
	}
	h.sayBye(c)
	h.mu.Lock()
	h.forget(c)
	for i := range c.slots {
		if s := c.slots[i].Load(); s != nil && !s.completion.Done() && s.generation.Load() > 0 {
			s.completion.Complete(ErrClosed)
		}
	}
	h.mu.Unlock()
	if c.multicast {
		_ = h.ep.Leave(c.group) // it was joined; an endpoint that is closed has left by itself
	}
	return true
}
