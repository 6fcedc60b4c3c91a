package barrier

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Unit counts arrivals in the path of a NIC: an *offload.Unit.
type Unit interface {
	// MAC returns the NIC's address.
	MAC() transport.MAC
	// Interface returns the index of its interface, and the network namespace that this is in.
	Interface() (index int, namespace string)
	// Add takes a slot.
	Add(c *slot.Config) (*slot.Slot, error)
	// Remove gives back a slot that is closed.
	Remove(s *slot.Slot)
}

// checkUnit refuses a unit that would see none of the endpoint's frames, or could not tell a forged
// one.
func checkUnit(ep *mcd.Endpoint, u Unit) error {
	switch {
	case ep.HeaderLen() != mcd.HeaderLen:
		return fmt.Errorf("barrier: %w: it cannot check frames that are authenticated (mcd.Config.KeyFile)", ErrUnit)
	case ep.Checksum(0) != mcd.ChecksumPayload:
		return fmt.Errorf("barrier: %w: it checks arrivals by a checksum of their payloads, which this endpoint "+
			"leaves out (mcd.Config.Checksum)", ErrUnit)
	case ep.NICs() != 1:
		return fmt.Errorf("barrier: %w: it is for one network, and the endpoint has %d", ErrUnit, ep.NICs())
	case ep.MAC(0) != u.MAC():
		return fmt.Errorf("barrier: %w: it is on %v, and the endpoint's link on %v", ErrUnit, u.MAC(), ep.MAC(0))
	}
	return checkInterface(ep, u)
}

// checkInterface refuses a unit on another interface with the link's address, as the port of a
// bridge has: its releases would not go where the link's frames go.
func checkInterface(ep *mcd.Endpoint, u Unit) error {
	index, namespace, attached := ep.Interface(0)
	if !attached {
		return nil
	}
	other, elsewhere := u.Interface()
	switch {
	case other != index:
		return fmt.Errorf("barrier: %w: it is on interface %d, and the endpoint's link on interface %d, with the same "+
			"address (open it on the link's interface)", ErrUnit, other, index)
	case namespace != "" && elsewhere != "" && elsewhere != namespace:
		return fmt.Errorf("barrier: %w: it is in another network namespace than the endpoint's link", ErrUnit)
	}
	return nil
}

// offloaded is the numbers of a member set that a unit counts, on the Center. A number is counted
// from the release on that the engine sends, until something happens that the unit does not know:
// then the engine goes on, and with its next release the unit does.
//
// The engine handles what was counted before anything else. While a number is counted
// it is the slot that decides who sends the release, and the engine's own is not sent.
//
// All methods are called with Service.mu held.
type offloaded struct {
	set     *memberSet
	unit    Unit
	numbers [Numbers]*counted
	all     []*counted
}

// counted is a number that the unit counts.
type counted struct {
	number     uint8
	label      uint8 // of the arrivals
	slot       *slot.Slot
	release    engine.Message
	frame      []byte   // of the first release
	generation uint32   // that is counted, as the engine knows it
	known      []uint32 // by word: the ranks that it has handled in that generation
	passed     uint32   // the generation whose last frame the unit passed on, and may still come; 0: none
}

// offload returns what counts for a member set; nil without a unit, and if this node is not the
// Center.
func (c *memberSet) offload(u Unit) *offloaded {
	if u == nil || c.rank != 0 || c.algorithm.String() != schedule.Offload().String() || len(c.nodes) > slot.MaxRanks {
		return nil
	}
	return &offloaded{set: c, unit: u}
}

// sends reports whether a message is the slot's to send, and not the engine's. It begins to count
// with the first release of the engine: before that is sent, so that no arrival is missed.
func (o *offloaded) sends(m *engine.Send) bool {
	if m.To != schedule.All || m.Message.Kind != engine.Notify {
		return false
	}
	if o.numbers[m.Message.Number] != nil {
		return true
	}
	o.begin(m.Message)
	return false
}

// begin begins to count the generation after that of a release. If that is not possible, the next
// release is another chance; a group that is being closed, whose slots are given back, has none.
func (o *offloaded) begin(release engine.Message) {
	c := o.set
	if c.group.closed || !c.engine.Intact() {
		return
	}
	release.Generation++
	release.Known = nil
	frame := o.frame(&release)
	cfg := &slot.Config{
		Number: release.Number, Generation: release.Generation, Ranks: len(c.nodes), Members: o.members(),
		Release: frame,
	}
	label, ok := c.engine.Awaited(1)
	if !ok || cfg.Generation == 0 || cfg.Members == nil || !slot.CanRelease(frame) {
		return
	}
	cfg.Label = label
	cfg.Identity = [12]byte(engine.IdentityOf(release.Append(nil)))
	s, err := o.unit.Add(cfg)
	if err != nil {
		return // all slots are taken, or the unit is closed
	}
	n := &counted{
		number: release.Number, label: label, slot: s, release: release, frame: frame,
		generation: release.Generation, known: make([]uint32, s.Words()),
	}
	o.numbers[n.number] = n
	o.all = append(o.all, n)
}

// frame returns the frame of a release by the present route, or nil.
func (o *offloaded) frame(release *engine.Message) []byte {
	s := o.set.service
	frame, _ := s.port.AppendFrame(nil, 0, mcd.ToGroup(o.set.multiAddr, s.cfg.Port), release.Append(nil))
	return frame
}

// members returns what frames of the other members carry, or nil if one of them is not in the node
// table.
func (o *offloaded) members() (all []slot.MemberInfo) {
	c := o.set
	table := c.service.ep.Nodes()
	for rank, node := range c.nodes {
		if rank == c.rank {
			continue
		}
		i := slices.IndexFunc(table, func(n mcd.Node) bool { return n.ID == node })
		if i < 0 {
			return nil
		}
		all = append(all, slot.MemberInfo{
			Node: uint16(node), Rank: rank, Incarnation: c.engine.Incarnation(rank), MAC: table[i].MACs[0],
		})
	}
	return all
}

// collect has the engine handle what was counted of a number. If the last arrival has left the
// release to the Center, it is sent.
func (o *offloaded) collect(now monotime.Time, n *counted) {
	if n == nil {
		return
	}
	for {
		generation, phase := n.slot.State()
		switch phase {
		case slot.Ours:
			n.passed = generation
			o.win(n, generation)
		case slot.Closed:
			return
		}
		if generation != n.generation {
			o.handleAll(now, n)
			continue
		}
		if o.handleArrived(now, n) {
			return
		}
		runtime.Gosched() // the last one has not been counted yet, or the generation ends, or has ended
	}
}

func (o *offloaded) collectAll(now monotime.Time) {
	for _, n := range slices.Clone(o.all) {
		o.collect(now, n)
	}
}

// win begins the next generation, and sends the release of a full one.
func (o *offloaded) win(n *counted, generation uint32) {
	n.slot.Next(generation)
	release := n.release
	release.Generation = generation
	o.set.send(&engine.Send{To: schedule.All, Message: release})
}

// handleAll has the engine handle all arrivals of a generation, and follows to the next generation.
func (o *offloaded) handleAll(now monotime.Time, n *counted) {
	for rank := 1; rank < len(o.set.nodes); rank++ {
		o.handleRank(now, n, rank)
	}
	n.generation++
	clear(n.known)
}

// handleArrived has the engine handle who has arrived. It returns false if all have, or if the slot
// has moved on.
func (o *offloaded) handleArrived(now monotime.Time, n *counted) bool {
	var words [slot.MaxRanks / 32]uint32
	count := 0
	for i := range n.known {
		generation, word := n.slot.Arrived(i)
		if generation != n.generation {
			return false
		}
		words[i] = word
		count += bits.OnesCount32(word)
	}
	if count == len(o.set.nodes) {
		return false
	}
	o.handleWords(now, n, words[:len(n.known)])
	return true
}

func (o *offloaded) handleWords(now monotime.Time, n *counted, words []uint32) {
	for i, word := range words {
		for fresh := word &^ n.known[i]; fresh != 0; fresh &= fresh - 1 {
			if rank := 32*i + bits.TrailingZeros32(fresh); rank != o.set.rank {
				o.handleRank(now, n, rank)
			}
		}
	}
}

func (o *offloaded) handleRank(now monotime.Time, n *counted, rank int) {
	word, bit := &n.known[rank/32], uint32(1)<<(rank%32)
	if *word&bit != 0 {
		return
	}
	*word |= bit
	s := o.set.service
	s.out = o.set.engine.HandleCounted(now, rank, n.number, n.label, n.generation, s.out[:0])
	o.set.flush()
}

// prepare collects before the Center arrives. Where releases go by another route than when counting
// began, that ends, and so it does before the generation 0, which a slot does not have: generations
// begin anew after 2^32, and a slot gets there by the Center's arrival alone.
func (o *offloaded) prepare(now monotime.Time, number uint8) {
	n := o.numbers[number]
	if n == nil {
		return
	}
	o.collect(now, n)
	if n.generation == math.MaxUint32 || !bytes.Equal(o.frame(&n.release), n.frame) {
		o.end(now, n)
	}
}

// arrive has the Center arrive. Where it is the last to, and the engine has sent the release,
// counting has just begun with the next generation.
func (o *offloaded) arrive(now monotime.Time, number uint8, generation uint32) {
	n := o.numbers[number]
	if n == nil || n.generation > generation {
		return
	}
	switch n.slot.Arrive(o.set.rank, generation) {
	case slot.Last:
		o.win(n, generation)
	case slot.Stale, slot.Double: // the engine has gone another way
		o.end(now, n)
	}
}

// await says that the Center waits: the last frame of the generation is to wake it.
func (o *offloaded) await(number uint8, generation uint32) {
	for n := o.numbers[number]; n != nil; n = o.numbers[number] {
		o.collect(clock.Now(), n)
		if n.generation != generation || n.slot.Await(generation) {
			return
		}
	}
}

// unawait says that the Center waits no more: the last frame of the generation is to release the
// others without it.
func (o *offloaded) unawait(number uint8, generation uint32) {
	for n := o.numbers[number]; n != nil; n = o.numbers[number] {
		if n.generation != generation || n.slot.Unawait(generation) {
			return
		}
		o.collect(clock.Now(), n)
	}
}

// handle handles a message before the engine does. It returns true if it has counted it.
func (o *offloaded) handle(now monotime.Time, rank int, m *engine.Message) bool {
	switch m.Kind {
	case engine.Bye, engine.Fail, engine.Report, engine.NoSuchGroup:
		o.endAll(now)
		return false
	}
	n := o.numbers[m.Number]
	if n == nil {
		return false
	}
	o.collect(now, n)
	if !o.set.engine.Counts(rank, m) {
		return false
	}
	if m.Generation == n.passed {
		n.passed = 0
		return true
	}
	switch n.slot.Arrive(rank, m.Generation) {
	case slot.Stale, slot.Double:
		return false
	case slot.Last:
		o.win(n, m.Generation)
	}
	o.collect(now, n)
	return true
}

// end ends the counting of a number: the engine goes on with what has arrived.
func (o *offloaded) end(now monotime.Time, n *counted) {
	for !n.slot.Close(n.generation) {
		o.collect(now, n)
	}
	words := make([]uint32, len(n.known))
	for i := range words {
		words[i] = n.slot.Drain(i)
	}
	o.numbers[n.number] = nil
	o.all = slices.DeleteFunc(o.all, func(other *counted) bool { return other == n })
	o.unit.Remove(n.slot)
	o.handleWords(now, n, words)
}

func (o *offloaded) endAll(now monotime.Time) {
	for len(o.all) > 0 {
		o.end(now, o.all[0])
	}
}

// endFailed ends the counting of numbers that have failed: others may still arrive. Once it is
// agreed who is down, those that nobody has entered fail, too.
func (o *offloaded) endFailed(now monotime.Time) {
	if o.set.engine.Agreed() != nil {
		o.endAll(now)
	}
	for _, n := range slices.Clone(o.all) {
		if o.set.engine.Failure(n.number) != nil {
			o.end(now, n)
		}
	}
}
