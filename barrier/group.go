package barrier

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// DefaultPeerTimeout of groups.
	DefaultPeerTimeout = engine.DefaultPeerTimeout
	// minTime is the least PeerTimeout, and Late: what a busy machine takes to wake a process.
	minTime = time.Millisecond
	// Numbers is how many barriers of one group can be in progress at one time.
	Numbers = engine.Numbers
)

// GroupConfig of a group. The zero value is all nodes of the endpoint's table, and the algorithm
// that is best where they run. All members must give the same, Late excepted.
type GroupConfig struct {
	// ID tells groups of the same members apart: those of two libraries, or of two goroutines. If
	// processes may begin anew, groups that are there at the same time need IDs of their own: a
	// newcomer cannot tell several groups of one ID apart.
	ID uint32
	// Members are nodes, this one among them. Empty is all nodes of the endpoint's table.
	Members Mask
	// Algorithm of the barriers. Zero is the one that Config.Table has; else the one that the model
	// finds best where the members run, by the places in the endpoint's node table
	// (schedule.Shape); if that of a member is not known, the one that schedule.Auto chooses. One
	// in levels, such as schedule.Hierarchical, groups the members by their ranks in this group,
	// also under masks and in what Without makes of it.
	Algorithm schedule.Algorithm
	// PeerTimeout is how long a member may be silent before it counts as down: a millisecond at
	// least. Zero is DefaultPeerTimeout. Members answer in the background: it does not limit how
	// late they may enter.
	PeerTimeout time.Duration
	// Quorum is the least number of members that may go on without the others: with fewer, Without
	// returns ErrNoQuorum. Zero is no limit: if a network falls into two parts, the members in each
	// go on without those in the other. More than half of the members is at most one part. A
	// quorum that is larger than the group is refused.
	Quorum int
	// Late is how long a barrier may take before the service's Logger is told which members have
	// not entered: with the nack after it, up to a tenth of PeerTimeout later. A millisecond at
	// least; zero is never.
	Late time.Duration
}

// Options of one barrier. The zero Options are number 0 and all members.
type Options struct {
	// Number tells barriers of one group apart that are in progress at one time.
	Number uint8
	// Members are the nodes that take part, this one among them. Empty is all. Each mask counts its
	// own generations, and so is kept until the group is closed: some kilobytes. Of a group whose
	// Algorithm is in levels, such as schedule.Hierarchical, those that share a chassis still do
	// (schedule.Algorithm.Subset).
	Members Mask
}

// Group is a set of nodes that have barriers together. All methods may be called from any
// goroutine; one number of one mask is for one goroutine at a time.
type Group struct {
	service *Service
	cfg     GroupConfig
	origin  uint64       // hash of the first group in which members have died, if these are survivors (Without)
	base    uint64       // hash of ID, origin and members
	nodes   []mcd.NodeID // the members, ascending
	places  []mcd.Place  // of them, by which algorithms are chosen: those of when the group was made
	ranked  []mcd.NodeID // whose ranks put the members into an algorithm's levels: the first group's (Without)
	all     *memberSet   // of all members: the first of sets

	// What follows is guarded by Service.mu.
	predecessor *memberSet   // whose survivors these members are (Without), also once closed; nil: none
	epoch       uint32       // how many groups of that hash were made
	sets        []*memberSet // of all members, and of the masks that were used
	closed      bool
}

// Group makes a group. It sends nothing: other members may make theirs later. They must make groups
// of the same ID and members in the same order; a process that began anew may begin anew with that.
//
// Errors: ErrNotMember if this node is not a member; mcd.ErrUnknownNode for a member that the table
// does not have; schedule.ErrWrong for an algorithm of one's own that is not right, or has too many
// levels: of more than 128 members only this node's steps are looked at, each by itself, and
// Algorithm.Check proves the whole; ErrClosed.
func (s *Service) Group(cfg GroupConfig) (*Group, error) { return s.newGroup(cfg, ancestry{}) }

// ancestry is what a group has of the one that it was made of (Without). That of others is zero.
type ancestry struct {
	ranked      []mcd.NodeID
	origin      uint64
	predecessor *memberSet // nil, if no members had died
}

func (s *Service) newGroup(cfg GroupConfig, of ancestry) (*Group, error) {
	cfg.PeerTimeout = cmp.Or(cfg.PeerTimeout, DefaultPeerTimeout)
	if cfg.PeerTimeout < minTime || cfg.Late != 0 && cfg.Late < minTime || cfg.Quorum < 0 {
		return nil, fmt.Errorf("barrier: PeerTimeout %v, Late %v, Quorum %d (want 0 or more, and "+
			"times of %v at least; a number without a unit is in nanoseconds)",
			cfg.PeerTimeout, cfg.Late, cfg.Quorum, minTime)
	}
	known, table := MaskOf(s.ep.Node()), s.ep.Nodes()
	for _, n := range table {
		known.add(n.ID)
	}
	if cfg.Members.IsZero() {
		cfg.Members = known
	}
	if other, is := cfg.Members.outside(known); is {
		return nil, fmt.Errorf("barrier: member %d: %w (the table has %v)", other, mcd.ErrUnknownNode, known)
	}
	g := &Group{service: s, cfg: cfg, origin: of.origin, predecessor: of.predecessor, nodes: cfg.Members.Nodes()}
	if cfg.Quorum > len(g.nodes) {
		return nil, fmt.Errorf("barrier: Quorum %d of %d members (want as many at most)", cfg.Quorum, len(g.nodes))
	}
	if g.ranked = of.ranked; g.ranked == nil {
		g.ranked = g.nodes
	}
	if of.predecessor != nil { // the survivors agreed on its places; a newcomer may have changed the table
		g.places = of.predecessor.group.placesOf(g.nodes)
	} else {
		g.places = placesIn(table, g.nodes)
	}
	name := binary.BigEndian.AppendUint32(nil, cfg.ID)
	if of.origin != 0 {
		name = binary.BigEndian.AppendUint64(name, of.origin)
	}
	g.base = hash(name, g.nodes)
	s.making.Lock()
	defer s.making.Unlock()
	if _, err := g.newMemberSet(cfg.Members); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	if of.predecessor != nil {
		s.mu.Lock()
		of.predecessor.engine.Survive()
		s.mu.Unlock()
	}
	return g, nil
}

// Members returns the group's nodes: the one of rank r is the r-th.
func (g *Group) Members() []mcd.NodeID { return slices.Clone(g.all.nodes) }

// Size returns the number of members.
func (g *Group) Size() int { return len(g.all.nodes) }

// Rank returns this node's rank: how many members have a lower number.
func (g *Group) Rank() int { return g.all.rank }

// Algorithm returns the algorithm that the group uses: if none was given, or Auto, the one that was
// chosen.
func (g *Group) Algorithm() schedule.Algorithm { return g.all.algorithm }

// Shape returns where the members run, by which the algorithm was chosen if none was given. It is
// unknown if the place of one of them was not in the node table when the group was made.
func (g *Group) Shape() schedule.Shape { return shapeAt(g.places) }

// placesOf returns those of some of the members, in their order.
func (g *Group) placesOf(nodes []mcd.NodeID) []mcd.Place {
	all := make([]mcd.Place, len(nodes))
	for i, n := range nodes {
		rank, _ := slices.BinarySearch(g.nodes, n)
		all[i] = g.places[rank]
	}
	return all
}

// algorithmFor returns the algorithm for some of the members.
func (g *Group) algorithmFor(nodes []mcd.NodeID) schedule.Algorithm {
	if g.cfg.Algorithm.IsZero() {
		return g.service.cfg.Table.Choose(shapeAt(g.placesOf(nodes)), len(nodes))
	}
	ranks := make([]int, len(nodes))
	for i, n := range nodes {
		ranks[i], _ = slices.BinarySearch(g.ranked, n)
	}
	return g.cfg.Algorithm.Subset(len(g.ranked), ranks)
}

// Barrier enters barrier number 0 of all members, and returns when all have entered. It is Arrive
// and Wait. A Barrier whose context ended is resumed by the next one.
//
// Errors: ErrNodeDown and ErrMismatch, for good; ErrIncomplete, which is the context's error too,
// after which the barrier is still entered; ErrPending if a ticket of it is out; ErrClosed.
func (g *Group) Barrier(ctx context.Context) error { return g.BarrierWith(ctx, Options{}) }

// BarrierWith is Barrier with options.
func (g *Group) BarrierWith(ctx context.Context, o Options) error {
	t, err := g.ArriveWith(o)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Arrive enters barrier number 0 of all members, and does not wait: the first phase of a fuzzy
// barrier. The ticket's Wait is the second one. If the last wait for that number has ended with
// ErrIncomplete, Arrive returns the same barrier's ticket again. Errors as for Barrier.
//
// Source: SCMD §3.2 (fuzzy barrier).
func (g *Group) Arrive() (Ticket, error) { return g.ArriveWith(Options{}) }

// ArriveWith is Arrive with options.
func (g *Group) ArriveWith(o Options) (Ticket, error) {
	c, err := g.memberSet(o.Members)
	if err != nil {
		return Ticket{}, fmt.Errorf("barrier: %w", err)
	}
	return c.arrive(o.Number)
}

// memberSet returns that of a mask, made on first use.
func (g *Group) memberSet(mask Mask) (*memberSet, error) {
	if mask.IsZero() {
		return g.all, nil
	}
	if c := g.find(mask); c != nil {
		return c, nil
	}
	if other, is := mask.outside(g.cfg.Members); is {
		return nil, fmt.Errorf("mask %v: node %d is not in the group %v", mask, other, g.cfg.Members)
	}
	g.service.making.Lock()
	defer g.service.making.Unlock()
	if c := g.find(mask); c != nil { // another goroutine has made it
		return c, nil
	}
	return g.newMemberSet(mask)
}

func (g *Group) find(mask Mask) *memberSet {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	for _, c := range g.sets {
		if c.mask.equal(mask) {
			return c
		}
	}
	return nil
}

// Without makes a group of the members but for those that are down, as a barrier of all members has
// said (NodeDownError), and for others that are given. All survivors agree on those that are down,
// so Without gives them the same group; what else is given must be the same. The old group is still
// to be closed, and not before: who closes it, and has made no group of survivors, is gone for
// them, too. An Algorithm in levels keeps the old group's levels, as under masks: if some members
// make the same group by Service.Group, whose levels are by its own ranks, theirs is another
// algorithm (ErrMismatch).
//
// Errors: ErrNoQuorum; ErrExcluded if this node is down, to the others; ErrClosed if the group is
// closed; and as for Service.Group.
//
// Source: ULFM, MPI_Comm_shrink.
func (g *Group) Without(nodes ...mcd.NodeID) (*Group, error) {
	cfg := g.cfg
	cfg.Members = Mask{}
	down, of, closed := g.down()
	nodes = append(down, nodes...)
	for _, n := range g.all.nodes {
		if !slices.Contains(nodes, n) {
			cfg.Members.add(n)
		}
	}
	switch left := cfg.Members.Len(); {
	case slices.Contains(nodes, g.service.ep.Node()):
		return nil, fmt.Errorf("barrier: without nodes %v: node %d: %w", nodes, g.service.ep.Node(), ErrExcluded)
	case left < cfg.Quorum:
		return nil, fmt.Errorf("barrier: without nodes %v: %d members are left, want %d: %w",
			nodes, left, cfg.Quorum, ErrNoQuorum)
	case closed:
		return nil, fmt.Errorf("barrier: without nodes %v: %w", nodes, ErrClosed)
	}
	return g.service.newGroup(cfg, of)
}

// down returns the nodes that are agreed to be down, what the survivors' group has of this one, and
// whether this one is closed. The survivors' group has an identity of its own: it is not one that
// nodes make anew which were down to some.
func (g *Group) down() (nodes []mcd.NodeID, of ancestry, closed bool) {
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	e := g.all.engine
	of = ancestry{g.ranked, g.origin, g.predecessor}
	if f := e.Agreed(); f != nil {
		nodes, of.predecessor = g.all.nodesOf(f.Ranks), g.all
		if of.origin == 0 {
			of.origin = hash(binary.BigEndian.AppendUint64(nil, g.base+uint64(g.epoch)), nil)
		}
	}
	if who, _, is := e.Outside(g.all.rank); is && !slices.Contains(nodes, g.all.nodes[who]) {
		nodes = append(nodes, g.all.nodes[who])
	}
	return nodes, of, g.closed
}

// Close leaves the group: it says goodbye to members that may still wait for messages of this
// one, and answers them until they have heard it, 50 ms at most. Waits end with ErrClosed.
// Further calls do nothing.
func (g *Group) Close() error {
	g.service.leave(g)
	return nil
}
