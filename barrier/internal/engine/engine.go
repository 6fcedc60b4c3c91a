// Package engine runs barriers of any schedule on one member of a group, over frames that may be
// lost, doubled, late or out of order. It does no I/O: time and messages come in as arguments, and
// messages to send are appended to the caller's slice.
//
// A member is in one of three states for each of 256 barrier numbers:
//
//	state    event                              next     sends
//	Idle     Arrive                             Waiting  notify of each step whose awaits are here
//	Idle     Arrive, who is gone is agreed      Failed   -
//	Idle     Arrive, a member has left          Waiting  report, to all
//	Waiting  awaited notify, step done          Waiting  notify of the next steps
//	Waiting  last step done                     Idle     -
//	Waiting  deadline                           Waiting  nack to each member awaited, again later
//	Waiting  deadline, a member silent too long Waiting  report, to all
//	Waiting  who is gone is agreed              Failed   report, to all
//	Waiting  fail                               Failed   -
//	Waiting  bye, this generation completed     Waiting  as if all of its messages had come
//	Waiting  bye, this generation not entered   Waiting  report, to all
//	any      stale notify or bye                same     bye ack, of a bye
//	Waiting  another algorithm                  Failed   fail, to all and to the sender
//	Idle     another algorithm                  Idle     fail, to the sender; Arrive will fail
//	any      nack, notify sent before           same     notify again
//	any      nack, notify not sent yet          same     not yet
//	Idle     nack, who is gone is agreed        Idle     report
//	Failed   nack or notify                     Failed   report, or fail
//
// Without loss the engine sends the schedule's messages and nothing else. Who is gone is agreed on
// by all others before a barrier fails: see package agreement.
//
// # Why no member leaves early
//
// A message belongs to a group (its identity covers the members), a number and a generation of 32
// bits. A member in generation g has seen all others enter g-1, so others are in g-1, g or g+1,
// never further: a message of g counts now, one of g+1 is kept, and all others are dropped. A
// member answers a nack with a notify only if it has sent that notify before, in its present
// generation or the one before.
//
// A member that begins anew counts from 1 again. A member that leaves a first generation knows the
// incarnations of all, and answers no later one as the one that it was in the barrier with. A
// message to an earlier incarnation is stale. See incarnations.go.
//
// Source: MCD §2.3 (colouring), §3; SCMD §3 (numbers, masks).
package engine

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Config of an engine.
type Config struct {
	Rank, Size  int
	NICs        int // networks that nacks take in turn
	Algorithm   schedule.Algorithm
	Identity    Identity
	Incarnation uint32        // of this member: another one each time that it begins anew; not 0
	PeerTimeout time.Duration // how long a member may be silent
	MaxMessage  int           // the longest message that can be sent, in bytes; zero: MaxLen
}

// Send is a message to send.
type Send struct {
	To      int // a rank, or schedule.All
	NIC     int
	Message Message
}

// Engine is one member's barriers of one group.
type Engine struct {
	cfg          Config
	algorithm    uint32 // hash of its name
	plan         *plan
	machines     [Numbers]*machine
	waiting      []*machine // those in state Waiting
	peers        []peer     // by rank
	incarnations []uint32   // by rank, this member's own among them; 0: not known yet
	agree        agreement.Agreement
	gone         *Failure // what was agreed: members that take part no more
	survives     bool     // this member goes on with the others
	ended        []uint8  // numbers whose barrier was completed or failed since Ended was called last
	leaves       int      // calls of Leave
	leavers      int      // members that said bye
	stats        Stats
	last         []uint64 // by rank: how often a step waited for its message longest

	parityOnly bool // a planted bug, for tests: generations are told apart by their lowest bit alone
}

// peer is what is known of another member.
type peer struct {
	silence   agreement.Silence // nacks that were not answered
	byeAcked  bool              // it has answered our bye, or said its own
	left      bool              // it said bye
	closed    bool              // it has left the group, and goes on in one of the survivors
	restarted bool              // it has begun anew
	done      []Done            // what it has completed then
}

// The errors of Arrive.
var (
	ErrWaiting = errors.New("the barrier was entered, and not left yet")
	ErrFailed  = errors.New("the barrier has failed")
)

// New makes an engine. The algorithm's schedule has to be right for the size.
func New(cfg Config) *Engine {
	cfg.MaxMessage = min(cmp.Or(cfg.MaxMessage, MaxLen), MaxLen)
	e := &Engine{
		cfg:          cfg,
		algorithm:    hash(cfg.Algorithm.For(cfg.Size).String()),
		plan:         newPlan(cfg.Algorithm.Steps(cfg.Rank, cfg.Size)),
		peers:        make([]peer, cfg.Size),
		last:         make([]uint64, cfg.Size),
		incarnations: make([]uint32, cfg.Size),
	}
	e.forget()
	return e
}

// forget forgets all that is known of the other members.
func (e *Engine) forget() {
	clear(e.peers)
	clear(e.incarnations)
	e.incarnations[e.cfg.Rank] = e.cfg.Incarnation
	e.leavers = 0
	e.agree = agreement.New(agreement.Config{
		Rank: e.cfg.Rank, Size: e.cfg.Size, NICs: e.cfg.NICs, Incarnation: e.cfg.Incarnation,
		PeerTimeout: e.cfg.PeerTimeout, FirstQuery: firstNack, MaxGone: maxGone(e.cfg.MaxMessage),
	})
}

// hash is FNV-1a.
func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum32()
}

// machine returns the state of a number, made on first use.
func (e *Engine) machine(number uint8) *machine {
	m := e.machines[number]
	if m == nil {
		m = newMachine(number, e.plan)
		e.machines[number] = m
	}
	return m
}

// State returns the state of a number, and the last generation that was entered.
func (e *Engine) State(number uint8) (State, uint32) {
	if m := e.machines[number]; m != nil {
		return m.state, m.generation
	}
	return Idle, 0
}

// Ended returns the numbers whose barrier was completed or failed since the last call. The slice is
// valid until the next call of any other method.
func (e *Engine) Ended() []uint8 {
	ended := e.ended
	e.ended = e.ended[:0]
	return ended
}

// Missing appends the ranks whose messages a number waits for in its present step.
func (e *Engine) Missing(number uint8, ranks []int) []int {
	m := e.machines[number]
	if m == nil || m.state != Waiting {
		return ranks
	}
	s := &e.plan.steps[m.step]
	for i := s.await; i < s.awaitEnd; i++ {
		if !m.current().here[i] {
			ranks = append(ranks, e.plan.awaits[i].From)
		}
	}
	return ranks
}

// Arrive enters the next generation of a number. ErrWaiting if the one before was not left;
// ErrFailed if this one cannot succeed.
func (e *Engine) Arrive(now monotime.Time, number uint8, out []Send) ([]Send, error) {
	m := e.machine(number)
	switch m.state {
	case Waiting:
		return out, ErrWaiting
	case Failed:
		return out, ErrFailed
	}
	m.generation++
	m.entered, m.left = now, monotime.Time{}
	m.step, m.nacked = 0, false
	if f := e.pendingFailure(m); f != nil {
		m.state, m.failure = Failed, f
		return out, ErrFailed
	}
	m.state = Waiting
	e.waiting = append(e.waiting, m)
	e.beginStep(m, now)
	if e.leavers > 0 {
		e.missLeavers(m, now)
		return out, nil
	}
	return e.progress(m, now, out), nil
}

// beginStep begins to wait in a step.
func (e *Engine) beginStep(m *machine, now monotime.Time) {
	m.begun, m.nacks = now, 0
	least := max(firstNack, time.Duration(e.cfg.Size)*nackShare)
	m.interval = min(max(least, m.stepTime.RTO(0, 0)), e.cfg.PeerTimeout/nacksPerTimeout)
	m.next = now.Add(m.interval)
}

// progress does the steps whose awaits are here.
func (e *Engine) progress(m *machine, now monotime.Time, out []Send) []Send {
	c := m.current()
	for m.step < len(e.plan.steps) {
		if c.left[m.step] > 0 {
			return out
		}
		s := &e.plan.steps[m.step]
		for _, n := range e.plan.notifies[s.notify:s.notifyEnd] {
			msg := e.message(Notify, m.number, n.Label, m.generation)
			msg.Known = e.known(m.generation)
			out = append(out, Send{n.To, n.NIC, msg})
			e.stats.Notifies++
		}
		if s.awaitEnd > s.await && !m.nacked {
			m.stepTime.Update(now.Sub(m.begun))
		}
		m.done[m.step] = now
		m.step++
		e.beginStep(m, now)
	}
	m.state = Idle
	m.left = now
	e.stats.sample(now.Sub(m.entered))
	c.clear(e.plan)
	e.end(m)
	return out
}

// end takes a machine from those that wait.
func (e *Engine) end(m *machine) {
	last := len(e.waiting) - 1
	e.waiting[slices.Index(e.waiting, m)] = e.waiting[last]
	e.waiting = e.waiting[:last]
	e.ended = append(e.ended, m.number)
}

func (e *Engine) message(k Kind, number, label uint8, generation uint32) Message {
	return Message{
		Kind: k, Number: number, Label: label, Identity: e.cfg.Identity, Generation: generation,
		Algorithm: e.algorithm, Incarnation: e.cfg.Incarnation,
	}
}

// answer makes the answer to a message: of the same number, label and generation.
func (e *Engine) answer(k Kind, to int, msg *Message) Send {
	return Send{to, msg.NIC, e.message(k, msg.Number, msg.Label, msg.Generation)}
}

// Deadline returns the instant at which Advance is due; ok is false if no number waits.
func (e *Engine) Deadline() (at monotime.Time, ok bool) {
	for _, m := range e.waiting {
		if !ok || m.next.Before(at) {
			at, ok = m.next, true
		}
	}
	if next, asks := e.agree.Deadline(); asks && (!ok || next.Before(at)) {
		return next, true
	}
	return at, ok
}

// Advance sends the nacks that are due, and gives up on members that are silent for too long.
func (e *Engine) Advance(now monotime.Time, out []Send) []Send {
	for i := len(e.waiting) - 1; i >= 0; i-- { // one that fails may take the others along
		if i < len(e.waiting) && !now.Before(e.waiting[i].next) {
			out = e.nack(e.waiting[i], now, out)
		}
	}
	if _, asks := e.agree.Deadline(); asks {
		out = e.wrap(e.agree.Advance(now, nil), out)
		e.conclude()
	}
	return out
}

// nack sends nacks to the members that m's step awaits.
func (e *Engine) nack(m *machine, now monotime.Time, out []Send) []Send {
	m.nacked = true
	m.nacks++
	m.interval = min(2*m.interval, e.cfg.PeerTimeout/nacksPerTimeout)
	m.next = now.Add(m.interval)
	s := &e.plan.steps[m.step]
	for i := s.await; i < s.awaitEnd && m.state == Waiting; i++ {
		if m.current().here[i] {
			continue
		}
		a := e.plan.awaits[i]
		p := &e.peers[a.From]
		p.silence.Query(now, e.cfg.PeerTimeout)
		if why, over := p.silence.Over(e.cfg.PeerTimeout); over {
			e.silent(m, now, a.From, why)
			continue
		}
		if p.silence.Doubtful(e.cfg.PeerTimeout) {
			e.Doubt(now) // others may be gone, too
		}
		e.stats.Nacks++
		msg := e.message(Nack, m.number, a.Label, m.generation)
		msg.Heard = e.incarnations[a.From] != 0
		out = append(out, Send{a.From, m.nacks % e.cfg.NICs, msg})
	}
	return out
}

// Doubtful appends the ranks of members that are silent for half of the peer timeout.
func (e *Engine) Doubtful(ranks []int) []int {
	ranks = e.agree.Doubtful(ranks)
	for rank := range e.peers {
		if e.peers[rank].silence.Doubtful(e.cfg.PeerTimeout) && !e.isGone(rank) && !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Excuse notes that a member has answered by another path than its own: it is alive.
func (e *Engine) Excuse(rank int) {
	e.peers[rank].silence.Excuse(e.cfg.PeerTimeout)
	e.agree.Excuse(rank)
}
