package barrier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/incarnation"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
)

// memberSet is a set of nodes that have barriers together: a group's members, or those of one mask.
// The engine does the work; the set carries its messages, and wakes the goroutines that wait.
type memberSet struct {
	service   *Service
	group     *Group
	mask      Mask
	nodes     []mcd.NodeID // by rank, ascending
	rank      int          // of this node
	algorithm schedule.Algorithm
	multicast bool        // the schedule has multicasts
	multiAddr mcd.GroupID // the group that they go to

	// What follows is guarded by Service.mu; entries are read without it.
	identity engine.Identity
	engine   *engine.Engine
	entries  [Numbers]atomic.Pointer[entry]
	probed   monotime.Time // the instant of the last probes
	armed    bool          // the set is in Service.armed

	offloaded *offloaded // nil: the engine counts all arrivals; it is not changed
}

// newMemberSet makes the set of a mask's nodes and adds it to the group. The caller holds making.
func (g *Group) newMemberSet(mask Mask) (*memberSet, error) {
	s, nodes := g.service, mask.Nodes()
	rank, member := slices.BinarySearch(nodes, s.ep.Node())
	if !member {
		return nil, fmt.Errorf("node %d, members %v: %w", s.ep.Node(), mask, ErrNotMember)
	}
	c := &memberSet{
		service: s, group: g, mask: mask, nodes: nodes, rank: rank, algorithm: g.algorithmFor(nodes),
	}
	if err := c.checkSchedule(); err != nil {
		return nil, err
	}
	c.offloaded = c.offload(s.cfg.Unit)
	c.identity.Hash = g.base
	if g.all != nil {
		c.identity.Hash = hash(binary.BigEndian.AppendUint64(nil, g.base), nodes)
	}
	c.multiAddr = fold(c.identity.Hash)
	if c.multicast {
		if err := s.ep.Join(c.multiAddr); err != nil {
			return nil, err
		}
	}
	if err := c.add(); err != nil {
		c.leaveMulticast()
		return nil, err
	}
	return c, nil
}

// add makes the set known to the service, and gives it the messages that came before.
func (c *memberSet) add() error {
	s, g := c.service, c.group
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || g.closed {
		return ErrClosed
	}
	if g.all == nil {
		g.all = c
		s.made[g.base]++
		g.epoch = s.made[g.base]
		s.groups = append(s.groups, g)
	}
	c.identity.Epoch = g.epoch
	c.engine = engine.New(engine.Config{
		Rank: c.rank, Size: len(c.nodes), NICs: s.ep.NICs(), Algorithm: c.algorithm,
		Identity: c.identity, Incarnation: incarnation.New(), PeerTimeout: g.cfg.PeerTimeout,
		MaxMessage: s.ep.MaxPayload(),
	})
	g.sets = append(g.sets, c)
	s.sets[c.identity] = c
	s.takeConsent(c)
	s.takeEarly(c)
	return nil
}

// hash is FNV-1a of some bytes and the members.
func hash(b []byte, nodes []mcd.NodeID) uint64 {
	for _, n := range nodes {
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b) // never fails
	return sum.Sum64()
}

// fold returns the multicast group of a hash.
func fold(hash uint64) mcd.GroupID { return mcd.GroupID(hash>>48 ^ hash>>32 ^ hash>>16 ^ hash) }

// maxProof is the largest size for which a schedule is proved when a set is made: about a
// millisecond.
const maxProof = 128

// checkSchedule refuses algorithms that are wrong, and networks that the endpoint does not have. It
// notes whether the schedule has multicasts.
func (c *memberSet) checkSchedule() (err error) {
	defer func() { // of more labels than there are
		if why := recover(); why != nil {
			e, is := why.(error)
			if !is || !errors.Is(e, schedule.ErrWrong) {
				panic(why)
			}
			err = e
		}
	}()
	if len(c.nodes) <= maxProof {
		if err := c.algorithm.Check(len(c.nodes)); err != nil {
			return err
		}
	}
	c.multicast = c.algorithm.Multicasts(len(c.nodes))
	for _, s := range c.algorithm.Steps(c.rank, len(c.nodes)) {
		if err := c.checkStep(&s); err != nil {
			return err
		}
	}
	return nil
}

// checkStep refuses a step of this node with ranks that there are none of, which an algorithm of
// one's own may have where its schedule is not proved, or with such networks.
func (c *memberSet) checkStep(s *schedule.Step) error {
	isOther := func(rank int) bool { return rank >= 0 && rank < len(c.nodes) && rank != c.rank }
	for _, r := range s.Await {
		if !isOther(r.From) {
			return fmt.Errorf("%v for %d ranks: %w: rank %d awaits rank %d",
				c.algorithm, len(c.nodes), schedule.ErrWrong, c.rank, r.From)
		}
	}
	nics := c.service.ep.NICs()
	for _, n := range s.Notify {
		if n.To != schedule.All && !isOther(n.To) {
			return fmt.Errorf("%v for %d ranks: %w: rank %d notifies rank %d",
				c.algorithm, len(c.nodes), schedule.ErrWrong, c.rank, n.To)
		}
		if n.NIC < 0 || n.NIC >= nics {
			return fmt.Errorf("%v wants network %d: the endpoint has %d (counted from 0)", c.algorithm, n.NIC, nics)
		}
	}
	return nil
}

func (c *memberSet) leaveMulticast() {
	if c.multicast {
		_ = c.service.ep.Leave(c.multiAddr) // it was joined; a closed endpoint has left by itself
	}
}

// arrive enters the next generation of a number, or resumes one that was given up.
func (c *memberSet) arrive(number uint8) (Ticket, error) {
	now := clock.Now()
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.group.closed {
		return Ticket{}, ErrClosed
	}
	if c.offloaded != nil {
		c.offloaded.prepare(now, number)
	}
	e := c.entries[number].Load()
	state, generation := c.engine.State(number)
	switch {
	case e != nil && e.givenUp.Load():
		return Ticket{c, number, generation}, nil
	case state == engine.Waiting:
		return Ticket{}, fmt.Errorf("barrier %d, generation %d: %w", number, generation, ErrPending)
	case state == engine.Failed:
		return Ticket{}, c.explain(number)
	}
	e = c.renew(number, now)
	var err error
	if s.out, err = c.engine.Arrive(now, number, s.out[:0]); err != nil {
		return Ticket{}, c.explain(number)
	}
	_, generation = c.engine.State(number)
	e.generation.Store(int64(generation))
	c.flush()
	if c.offloaded != nil {
		c.offloaded.arrive(now, number, generation)
	}
	return Ticket{c, number, generation}, nil
}

// handle handles a message from a member. The caller holds Service.mu.
func (c *memberSet) handle(now monotime.Time, from mcd.NodeID, m *engine.Message) {
	rank, member := slices.BinarySearch(c.nodes, from)
	if !member {
		return
	}
	s := c.service
	if m.Kind == engine.NoSuchGroup && m.Lowest > c.identity.Epoch && c.engine.Fresh() && c.group.isFresh() {
		s.rejoin(now, c.group.base, m.Lowest)
		return
	}
	if m.Kind == engine.NoSuchGroup && m.Answers != engine.StatusRequest && !c.settled(now, from, rank, m.NIC) {
		return
	}
	if c.offloaded != nil && c.offloaded.handle(now, rank, m) {
		return
	}
	s.out = c.engine.Handle(now, rank, m, s.out[:0])
	c.flush()
	if c.offloaded != nil {
		c.offloaded.endFailed(now)
	}
}

// flush sends the engine's messages, wakes the goroutines whose barrier has ended, and sets the
// timer. It follows each call that gives the engine something to do. The caller holds Service.mu.
func (c *memberSet) flush() {
	for i := range c.service.out {
		if m := &c.service.out[i]; c.offloaded == nil || !c.offloaded.sends(m) {
			c.send(m)
		}
	}
	c.service.out = c.service.out[:0]
	for _, number := range c.engine.Ended() {
		c.entries[number].Load().complete(c.explain(number))
	}
	c.service.arm(c)
}

// advance does what is due. The caller holds Service.mu.
func (c *memberSet) advance(now monotime.Time) {
	if c.offloaded != nil {
		c.offloaded.collectAll(now)
	}
	if at, waits := c.engine.Deadline(); !waits || now.Before(at) {
		return
	}
	c.service.out = c.engine.Advance(now, c.service.out[:0])
	c.flush()
	if c.offloaded != nil {
		c.offloaded.endFailed(now)
	}
	c.probeDoubtful(now)
	c.reportLate(now)
}

func (c *memberSet) sendAll(messages []engine.Send) {
	for i := range messages {
		c.send(&messages[i])
	}
}

func (c *memberSet) send(m *engine.Send) {
	s := c.service
	s.buf = m.Message.Append(s.buf[:0])
	switch {
	case m.To != schedule.All:
		s.post(m.NIC, mcd.To(mcd.Addr{Node: c.nodes[m.To], Port: s.cfg.Port}))
	case c.multicast:
		s.post(m.NIC, mcd.ToGroup(c.multiAddr, s.cfg.Port))
	default:
		for rank, node := range c.nodes {
			if rank != c.rank {
				s.post(m.NIC, mcd.To(mcd.Addr{Node: node, Port: s.cfg.Port}))
			}
		}
	}
}

// explain returns why a number's barrier failed, or nil. The caller holds Service.mu.
func (c *memberSet) explain(number uint8) error {
	f := c.engine.Failure(number)
	if f == nil {
		return nil
	}
	_, generation := c.engine.State(number)
	nodes := c.nodesOf(f.Ranks)
	if f.Reasons[0] == engine.OtherAlgorithm {
		return &MismatchError{number, generation, nodes, c.algorithm}
	}
	down := &NodeDownError{
		Number: number, Generation: generation, Nodes: nodes, Timeout: c.group.cfg.PeerTimeout,
		Excluded: slices.Contains(f.Ranks, c.rank), Survivors: len(c.nodes) - len(nodes),
	}
	if c == c.group.all { // the quorum is the group's, and not that of a mask
		down.Quorum = c.group.cfg.Quorum
	}
	for i := range nodes {
		down.Reasons = append(down.Reasons, Reason(f.Reasons[i]))
	}
	for nic := 0; slices.Contains(down.Reasons, Silent) && nic < c.service.ep.NICs(); nic++ {
		if err := c.service.ep.LinkErr(nic); err != nil {
			down.LinkErrs = append(down.LinkErrs, err)
		}
	}
	return down
}

func (c *memberSet) nodesOf(ranks []int) (nodes []mcd.NodeID) {
	for _, r := range ranks {
		nodes = append(nodes, c.nodes[r])
	}
	return nodes
}
