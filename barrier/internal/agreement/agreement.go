// Package agreement has the members of a group agree on which of them are gone, over frames that
// may be lost, doubled, late or out of order. It does no I/O: time and reports come in as
// arguments, and reports to send are appended to the caller's slice.
//
// Each member has a set of members that are gone, with the reason for each. The set only grows: by
// what the member itself sees (Accuse, or a member that does not answer), and by the sets that
// others report. A member decides on its set once every member outside of it has reported the very
// same set.
//
//	state    event                                   next     sends
//	Quiet    Begin: a member is silent               Querying report, to all; to the silent again
//	Quiet    Accuse, or a report of a set            Querying report, to all, until they agree
//	Quiet    query with the empty set                Quiet    report
//	Querying all are heard, the set is empty         Quiet    -
//	Querying Accuse, or a report of more             Querying report of the union, to all
//	Querying a member is silent too long             Querying as if it was accused
//	Querying all others report the same set          Decided  report, decided, to all
//	Querying decided report, from outside of the set Decided  -
//	Querying this member is in the set               Excluded report, to all
//	Decided  query                                   Decided  report, decided
//	Decided  decided report, this member is in it    Decided  -
//	any      query of a member in the set            same     report
//
// # What is promised
//
// If two members decide on different sets, one of them is in the other's. So members that do not
// take each other for gone decide alike, however many die, and when. The sets of one member form a
// chain; all members outside of a set that was decided have reported it; and who has decided
// reports nothing else. Of two sets that were decided, the members outside of the larger one would
// have reported the smaller one first, and its decider, if it is among them, never the larger one.
//
// As long as some members live and hear each other, those decide. A member that was taken for gone
// and still lives learns that as soon as it is heard (Excluded; Outside, if it has decided before).
//
// A member that does not have the group yet says so, and that counts as its report of the set that
// it was asked about (Consent): it says so of sets alone that contain the last one. Once it has the
// group, each set that it reports contains that, but the empty one, on which nobody decides. All
// that it reports later, nobody who has decided consents to. For this, a report names the
// incarnation of its receiver as its sender knows it, and counts for no other one. What it has
// consented to is void once the member that has asked has begun anew: that one has decided nothing,
// and those that have heard its former life decide tell.
//
// Source: MPI 5.0 and ULFM, MPI_Comm_agree and MPI_Comm_shrink; lattice agreement.
package agreement

import (
	"cmp"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Reason is why a member is gone. Of several, the highest stands: what is sure outranks what was
// concluded.
type Reason uint8

// The reasons.
const (
	Silent      Reason = iota + 1 // it does not answer
	Unreachable                   // it answers by other paths than its own alone
	Left                          // it has said goodbye
	Restarted                     // it has begun anew, or is not at the same generation
	reasons
)

// Valid reports whether r is one of the reasons.
func (r Reason) Valid() bool { return r > 0 && r < reasons }

// Gone is a member that is gone.
type Gone struct {
	Rank   int
	Reason Reason
}

// MaxGone is the most members that a report names: they fit a frame of Ethernet's length. If more
// are gone, members decide without the others.
const MaxGone = 400

// Report is what one member tells another one.
type Report struct {
	Gone    []Gone // by rank, ascending; not to be changed
	Version uint32 // how often the sender's set has grown
	Echo    uint32 // the receiver's incarnation, as the sender knows it; 0: not known
	Decided bool
	Query   bool // an answer is wanted
}

// Send is a report to send.
type Send struct {
	To, NIC int
	Report  Report
}

// Config of an agreement.
type Config struct {
	Rank, Size  int
	NICs        int // networks that questions take in turn
	Incarnation uint32
	PeerTimeout time.Duration
	FirstQuery  time.Duration // until a question is repeated first
	MaxGone     int           // that this member's reports name, where frames are shorter; zero: MaxGone
}

// State of a member.
type State uint8

// The states.
const (
	Quiet    State = iota // nobody is gone
	Querying              // members are asked
	Decided               // for good
	Excluded              // for good: this member is gone itself, to others
)

// Agreement is one member's part.
type Agreement struct {
	cfg      Config
	state    State
	gone     []Gone  // by rank; replaced, and never changed
	held     Consent // of before it had the group: in each set but the empty one
	version  uint32
	peers    []peer // by rank; nil as long as nothing has happened
	announce bool   // the decision is to be told to all
	differs  bool   // another one has decided otherwise, though neither is gone to the other
	expelled Reason // why others have decided that this member is gone, which has decided, too; 0: none has
	interval time.Duration
	next     monotime.Time // of Advance
}

type peer struct {
	incarnation uint32 // 0: not heard yet
	agrees      bool   // it has reported this member's set
	decided     bool
	excluded    Reason // it has said that it is gone, to others; 0: it has not
	silence     Silence
}

// New makes an agreement.
func New(cfg Config) Agreement {
	cfg.MaxGone = min(cmp.Or(cfg.MaxGone, MaxGone), MaxGone)
	return Agreement{cfg: cfg}
}

// State returns the state.
func (a *Agreement) State() State { return a.state }

// Gone returns the set. It is agreed on in state Decided, and contains this member in state
// Excluded.
func (a *Agreement) Gone() []Gone { return a.gone }

// Has reports whether a member is in the set.
func (a *Agreement) Has(rank int) bool { return has(a.gone, rank) }

func has(gone []Gone, rank int) bool { return reasonOf(gone, rank) != 0 }

// reasonOf returns why a member is gone; 0 if it is not.
func reasonOf(gone []Gone, rank int) Reason {
	i, is := slices.BinarySearchFunc(gone, rank, func(g Gone, rank int) int { return cmp.Compare(g.Rank, rank) })
	if !is {
		return 0
	}
	return gone[i].Reason
}

// KnowsDecision reports whether a member is known to have decided.
func (a *Agreement) KnowsDecision(rank int) bool { return a.peers != nil && a.peers[rank].decided }

// MayDiffer reports whether others may have decided on another set: one has said so, or this set is
// all that a report names, or more.
func (a *Agreement) MayDiffer() bool {
	return a.state == Decided && (a.differs || len(a.gone) >= a.cfg.MaxGone)
}

// named is the part of the set that a report names.
func (a *Agreement) named() []Gone { return a.gone[:min(len(a.gone), a.cfg.MaxGone)] }

// Outside returns who of this member and another one is known to be gone, to others, though the
// set that was decided on has neither: they do not go on together.
func (a *Agreement) Outside(rank int) (who int, why Reason, is bool) {
	switch {
	case a.expelled != 0:
		return a.cfg.Rank, a.expelled, true
	case a.peers != nil && a.peers[rank].excluded != 0:
		return rank, a.peers[rank].excluded, true
	}
	return 0, 0, false
}

// ended reports whether nothing changes any more.
func (a *Agreement) ended() bool { return a.state >= Decided }

// Begin asks all members for an answer, as one of them is silent.
func (a *Agreement) Begin(now monotime.Time) {
	if a.state != Quiet {
		return
	}
	a.state = Querying
	if a.peers == nil {
		a.peers = make([]peer, a.cfg.Size)
	}
	for i := range a.peers {
		a.peers[i].agrees = false
	}
	a.interval, a.next = 0, now
}

// Accuse says that a member is gone.
func (a *Agreement) Accuse(now monotime.Time, rank int, why Reason) {
	if !a.ended() {
		a.Begin(now)
		a.merge(now, []Gone{{rank, why}})
		a.conclude(now)
	}
}

// merge adds to the set. If it grows, nobody is known to agree with it.
func (a *Agreement) merge(now monotime.Time, more []Gone) {
	union := slices.Clone(a.gone)
	more = append(slices.Clone(more), a.heldBy(more)...)
	for _, g := range more {
		i, is := slices.BinarySearchFunc(union, g, func(a, b Gone) int { return cmp.Compare(a.Rank, b.Rank) })
		if !is {
			union = slices.Insert(union, i, g)
		}
		union[i].Reason = max(union[i].Reason, g.Reason)
	}
	if slices.Equal(union, a.gone) {
		return
	}
	a.gone = union
	a.version++
	for i := range a.peers {
		a.peers[i].agrees = false
	}
	a.interval, a.next = 0, now
}

// conclude ends the agreement if all is said.
func (a *Agreement) conclude(now monotime.Time) {
	switch {
	case a.ended():
	case a.Has(a.cfg.Rank):
		a.end(now, Excluded)
	case !a.unanimous():
	case len(a.gone) == 0:
		a.state = Quiet
	default:
		a.end(now, Decided)
	}
}

func (a *Agreement) unanimous() bool {
	if len(a.gone) > a.cfg.MaxGone {
		return true
	}
	for rank := range a.peers {
		if rank != a.cfg.Rank && !a.peers[rank].agrees && !a.Has(rank) {
			return false
		}
	}
	return true
}

func (a *Agreement) end(now monotime.Time, s State) {
	a.state, a.announce, a.next = s, true, now
}

// Handle handles a member's report.
func (a *Agreement) Handle(now monotime.Time, from int, incarnation uint32, r *Report, out []Send) []Send {
	if a.peers == nil {
		a.peers = make([]peer, a.cfg.Size)
	}
	p := &a.peers[from]
	p.incarnation = incarnation
	p.silence.Heard()
	p.decided = p.decided || r.Decided
	p.excluded = max(p.excluded, reasonOf(r.Gone, from))
	if held := a.heldBy(r.Gone); len(held) > 0 && !a.ended() {
		a.Begin(now)
		a.merge(now, held)
	}
	switch {
	case a.Has(from):
	case a.ended():
		if r.Decided {
			a.differs = a.differs || !slices.Equal(r.Gone, a.named())
			a.expelled = max(a.expelled, reasonOf(r.Gone, a.cfg.Rank))
		}
	case r.Decided && !has(r.Gone, a.cfg.Rank):
		a.gone, a.state = r.Gone, Decided
	default:
		if len(r.Gone) > 0 {
			a.Begin(now)
		}
		a.merge(now, r.Gone)
		if r.Echo == a.cfg.Incarnation && slices.Equal(r.Gone, a.gone) {
			p.agrees = true
		}
		if a.state == Querying {
			a.conclude(now)
		}
	}
	if r.Query {
		return append(out, a.ReportTo(from, 0, false))
	}
	return out
}

// Consent is what a member that does not have the group yet has consented to. It is replaced, and
// never changed.
type Consent []Assent

// Assent is to the set of one member.
type Assent struct {
	Asker       int    // whose it is
	Incarnation uint32 // of that one
	Gone        []Gone
}

// To reports whether the member consents to a set that it is asked about: to none that lacks
// somebody of those before, as it has let others decide on that.
func (c *Consent) To(asker int, incarnation uint32, gone []Gone) bool {
	*c = c.without(func(a *Assent) bool { return a.Asker == asker && a.Incarnation != incarnation })
	for _, a := range *c {
		for _, g := range a.Gone {
			if !has(gone, g.Rank) {
				return len(gone) == 0 // on which nobody decides
			}
		}
	}
	if len(gone) > 0 {
		others := c.without(func(a *Assent) bool { return a.Asker == asker })
		*c = append(others, Assent{asker, incarnation, slices.Clone(gone)})
	}
	return true
}

func (c Consent) without(is func(a *Assent) bool) (others Consent) {
	for i := range c {
		if !is(&c[i]) {
			others = append(others, c[i])
		}
	}
	return others
}

// Uphold has a member that makes its group keep to what it has consented to before. Askers are
// ranks.
func (a *Agreement) Uphold(c Consent) { a.held = c }

// Hear notes a member's incarnation: what another one of it has asked counts no more.
func (a *Agreement) Hear(rank int, incarnation uint32) {
	if a.held != nil {
		a.held = a.held.without(func(g *Assent) bool { return g.Asker == rank && g.Incarnation != incarnation })
	}
}

// heldBy returns who is gone by what this member has consented to, once, as soon as somebody is.
func (a *Agreement) heldBy(others []Gone) (gone []Gone) {
	if len(others) == 0 {
		return nil
	}
	for _, given := range a.held {
		for _, g := range given.Gone {
			if g.Rank != a.cfg.Rank && g.Rank < a.cfg.Size { // whose rank is which was not known
				gone = append(gone, g)
			}
		}
	}
	a.held = nil
	return gone
}

// HandleNoGroup handles a member's answer that it does not have the group. ok is false if it had
// the group before.
func (a *Agreement) HandleNoGroup(now monotime.Time, from int, version uint32) (ok bool) {
	if a.peers == nil || a.peers[from].incarnation != 0 {
		return false
	}
	p := &a.peers[from]
	p.silence.Heard()
	if a.state == Querying && version == a.version {
		p.agrees = true
		a.conclude(now)
	}
	return true
}

// Alive notes that a member lives, though it has reported nothing.
func (a *Agreement) Alive(rank int) {
	if a.peers != nil {
		a.peers[rank].silence.Heard()
	}
}

// Announce appends the decision for the members that are not known to have decided, and asks them
// to confirm.
func (a *Agreement) Announce(out []Send) []Send {
	for _, rank := range a.Untold() {
		out = a.Confirm(rank, out)
	}
	return out
}

// Confirm appends the report of a decision to a member, which is to confirm it.
func (a *Agreement) Confirm(rank int, out []Send) []Send {
	out = append(out, a.ReportTo(rank, a.nic(rank), true))
	a.peers[rank].silence.asks++ // the next question takes another network
	return out
}

// Untold returns the members that are not known to have decided as this one has.
func (a *Agreement) Untold() (ranks []int) {
	for rank := range a.peers {
		if a.state == Decided && rank != a.cfg.Rank && !a.peers[rank].decided && !a.Has(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func (a *Agreement) nic(rank int) int { return a.peers[rank].silence.asks % max(a.cfg.NICs, 1) }

// ReportTo returns the report for a member, which answers it if it is a query.
func (a *Agreement) ReportTo(to, nic int, query bool) Send {
	r := Report{Gone: a.named(), Version: a.version, Decided: a.state == Decided, Query: query}
	if a.peers != nil {
		r.Echo = a.peers[to].incarnation
	}
	return Send{to, nic, r}
}

// Deadline returns the instant at which Advance is due; ok is false if nobody is asked.
func (a *Agreement) Deadline() (at monotime.Time, ok bool) {
	return a.next, a.state == Querying || a.announce
}

// Advance asks the members that do not agree yet, and accuses those that are silent for too long:
// then the others are asked about them at once.
func (a *Agreement) Advance(now monotime.Time, out []Send) []Send {
	for at, ok := a.Deadline(); ok && !now.Before(at); at, ok = a.Deadline() {
		out = a.query(now, out)
	}
	return out
}

func (a *Agreement) query(now monotime.Time, out []Send) []Send {
	if a.ended() {
		a.announce = false
		return a.toAll(out)
	}
	a.interval = min(max(2*a.interval, a.cfg.FirstQuery), a.cfg.PeerTimeout/Queries)
	a.next = now.Add(a.interval)
	var silent []Gone
	for rank := range a.peers {
		p := &a.peers[rank]
		if rank == a.cfg.Rank || p.agrees || a.Has(rank) {
			continue
		}
		p.silence.Query(now, a.cfg.PeerTimeout)
		if why, over := p.silence.Over(a.cfg.PeerTimeout); over {
			silent = append(silent, Gone{rank, why})
			continue
		}
		out = append(out, a.ReportTo(rank, a.nic(rank), true))
	}
	a.merge(now, silent)
	a.conclude(now)
	return out
}

// toAll appends the outcome for all members that may need it.
func (a *Agreement) toAll(out []Send) []Send {
	for rank := range a.peers {
		if rank != a.cfg.Rank && !a.peers[rank].decided && (a.state == Excluded || !a.Has(rank)) {
			out = append(out, a.ReportTo(rank, 0, false))
		}
	}
	return out
}

// Doubtful appends the members that are silent for half of the timeout.
func (a *Agreement) Doubtful(ranks []int) []int {
	for rank := range a.peers {
		p := &a.peers[rank]
		if a.state == Querying && !p.agrees && p.silence.Doubtful(a.cfg.PeerTimeout) && !a.Has(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Excuse notes that a member has answered by another path.
func (a *Agreement) Excuse(rank int) {
	if a.peers != nil {
		a.peers[rank].silence.Excuse(a.cfg.PeerTimeout)
	}
}
