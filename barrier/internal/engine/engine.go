// Package engine runs barriers of any schedule on one member of a group, over frames that may be lost, doubled, late or
// out of order. It computes, and does no I/O: time and messages come in as arguments, and what is to be sent goes out.
//
// A member is in one of three states for each of 256 barrier numbers:
//
//	state    event                             next     sends
//	Idle     Arrive                            Waiting  what each step tells whose awaits are here
//	Idle     Arrive, a member is known gone    Failed   -
//	Waiting  an awaited message, step done     Waiting  what the next steps tell
//	Waiting  last step done                    Idle     -
//	Waiting  deadline                          Waiting  "missing?" to each who keeps the step up; then waits twice as long
//	Waiting  deadline, somebody silent > limit Failed   "failed" with those members, to all
//	Waiting  "later", in mutual wait > limit   Failed   "failed", to all
//	Waiting  "failed"                          Failed   -
//	Waiting  "bye", with what it has completed Waiting  as if its messages had come; or Failed, if it has not entered
//	Waiting  a message of another algorithm    Failed   "failed", to all and to its sender
//	Idle     a message of another algorithm    Idle     "failed", to its sender; the next Arrive fails
//	any      "missing?", told before           same     the message again
//	any      "missing?", not told yet          same     "later"
//	Idle     "missing?", a member is known gone Idle    "failed"
//	Failed   "missing?", a message             Failed   "failed"
//
// Without loss nothing is sent but the schedule's messages.
//
// # Why no member leaves early
//
// A message belongs to a group (its identity covers the members), a number and a generation of 32 bits. A member in
// generation g has seen all others enter g-1, so others are in g-1, g or g+1, never further: a message of g counts now,
// one of g+1 is kept, and all others are dropped. What was asked for is told only by one who has told it before, of
// its present generation or the one before.
//
// Source: MCD §2.3 (colouring), §3; SCMD §3 (numbers, masks).
package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Config of an engine.
type Config struct {
	Rank, Size  int
	NICs        int // networks to ask over, in turn; 0 is 1
	Algorithm   schedule.Algorithm
	Identity    uint64        // of the group and its members
	Incarnation uint32        // of this member: another one each time that it begins anew; not 0
	Limit       time.Duration // how long a member may be silent; 0 is DefaultLimit
}

// Send is a message to send.
type Send struct {
	To      int // a rank, or schedule.All
	NIC     int
	Message Message
}

// Engine is one member's barriers of one group.
type Engine struct {
	cfg       Config
	algorithm uint32 // hash of its name
	plan      *plan
	machines  [Numbers]*machine
	waiting   []*machine // those in state Waiting
	peers     []peer     // by rank
	gone      *Failure   // members that will not take part any more
	ended     []uint8    // numbers whose barrier was left or failed, since Ended was called last
	leaves    int        // how often goodbye was said
	roll      []Presence // by rank, of the roll call in progress
	rollOf    uint8      // its number
	counters  Counters

	onlyColour bool // a planted bug, for tests: generations are told apart by their colour alone
}

// peer is what is known of another member.
type peer struct {
	incarnation uint32        // 0: not heard yet
	asks        int           // since it was heard last
	last        monotime.Time // when the last of them was
	silence     time.Duration // from the first to the last, without what this node itself stood still
	absences    int           // how often it has said that it has no such group, since it was heard in it
	bid         bool          // it has answered our goodbye, or said its own
	left        bool          // it said goodbye
}

// Counters of an engine.
type Counters struct {
	Told      uint64 `json:"told"`       // messages of schedules sent; a multicast is one
	Asked     uint64 `json:"asked"`      // messages asked for
	ToldAgain uint64 `json:"told_again"` // because somebody asked
	Late      uint64 `json:"late"`       // messages of generations gone by
	Double    uint64 `json:"double"`     // messages that were here already
	Unawaited uint64 `json:"unawaited"`  // messages that the schedule does not know
}

// The errors of Arrive.
var (
	ErrWaiting = errors.New("the barrier was entered, and not left yet")
	ErrFailed  = errors.New("the barrier has failed")
)

// New makes an engine. The algorithm's schedule has to be right for the size.
func New(cfg Config) *Engine {
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	cfg.NICs = max(cfg.NICs, 1)
	return &Engine{
		cfg:       cfg,
		algorithm: hash(cfg.Algorithm.For(cfg.Size).String()),
		plan:      newPlan(cfg.Algorithm.Steps(cfg.Rank, cfg.Size)),
		peers:     make([]peer, cfg.Size),
	}
}

// hash is FNV-1a.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
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

// Failure returns why a number's barrier failed, or nil.
func (e *Engine) Failure(number uint8) *Failure {
	if m := e.machines[number]; m != nil {
		return m.failure
	}
	return nil
}

// Counters returns the engine's counters.
func (e *Engine) Counters() Counters { return e.counters }

// Times returns a copy of those of a number's last generation; nil if there was none.
func (e *Engine) Times(number uint8) *Times {
	if m := e.machines[number]; m != nil && m.generation > 0 {
		return m.times(e.plan)
	}
	return nil
}

// Stats returns those of all numbers together.
func (e *Engine) Stats() (s Stats) {
	for _, m := range e.machines {
		if m != nil {
			s.Barriers += m.stats.Barriers
			s.Wait += m.stats.Wait
			s.MaxWait = max(s.MaxWait, m.stats.MaxWait)
		}
	}
	return s
}

// Last returns how often each rank's message was the one that a step of this rank had waited for.
func (e *Engine) Last() []uint64 {
	last := make([]uint64, e.cfg.Size)
	for _, m := range e.machines {
		if m == nil {
			continue
		}
		for i, n := range m.last {
			last[e.plan.awaits[i].From] += n
		}
	}
	return last
}

// Ended returns the numbers whose barrier was left or failed since the last call. The slice is the engine's again at the
// next call of any other method.
func (e *Engine) Ended() []uint8 {
	ended := e.ended
	e.ended = e.ended[:0]
	return ended
}

// Arrive enters the next generation of a number. ErrWaiting if the one before was not left; ErrFailed if this one
// cannot succeed.
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
	m.step, m.asked, m.mutual = 0, false, monotime.Time{} // also where there is no hope: nothing of this generation was told
	if f := e.hopeless(m); f != nil {
		m.state, m.failure = Failed, f
		return out, ErrFailed
	}
	m.state = Waiting
	e.waiting = append(e.waiting, m)
	e.rest(m, now)
	return e.progress(m, now, out), nil
}

// hopeless returns why a generation cannot succeed that is entered now, or nil.
func (e *Engine) hopeless(m *machine) *Failure {
	if m.doom != nil {
		return m.doom
	}
	return e.gone
}

// rest begins to wait in a step.
func (e *Engine) rest(m *machine, now monotime.Time) {
	m.begun = now
	m.interval = m.pace.patience(e.cfg.Limit)
	m.next = now.Add(m.interval)
}

// progress does the steps whose awaits are here.
func (e *Engine) progress(m *machine, now monotime.Time, out []Send) []Send {
	c := m.now()
	for m.step < len(e.plan.steps) {
		if c.left[m.step] > 0 {
			return out
		}
		s := &e.plan.steps[m.step]
		for _, t := range e.plan.tells[s.tell:s.tellEnd] {
			out = append(out, Send{t.To, t.NIC, e.message(Tell, m, t.Label)})
			e.counters.Told++
		}
		if s.awaitEnd > s.await && !m.asked {
			m.pace.note(now.Sub(m.begun))
		}
		m.done[m.step] = now
		m.step++
		e.rest(m, now)
	}
	m.state = Idle
	m.left = now
	m.stats.note(now.Sub(m.entered))
	c.clear(e.plan)
	e.end(m)
	return out
}

// end takes a machine from those that wait.
func (e *Engine) end(m *machine) {
	for i, w := range e.waiting {
		if w == m {
			last := len(e.waiting) - 1
			e.waiting[i] = e.waiting[last]
			e.waiting = e.waiting[:last]
			break
		}
	}
	e.ended = append(e.ended, m.number)
}

// message makes one of a machine's generation.
func (e *Engine) message(k Kind, m *machine, label uint8) Message {
	return Message{
		Kind: k, Number: m.number, Label: label, Identity: e.cfg.Identity, Generation: m.generation,
		Algorithm: e.algorithm, Incarnation: e.cfg.Incarnation,
	}
}

// Deadline returns when to call Advance; ok is false if nobody waits.
func (e *Engine) Deadline() (at monotime.Time, ok bool) {
	for _, m := range e.waiting {
		if !ok || m.next.Before(at) {
			at, ok = m.next, true
		}
	}
	return at, ok
}

// Advance asks for what is missing where it is time to, and gives up on members that are silent for too long.
func (e *Engine) Advance(now monotime.Time, out []Send) []Send {
	for i := len(e.waiting) - 1; i >= 0; i-- { // one that fails may take the others along
		if i < len(e.waiting) && !now.Before(e.waiting[i].next) {
			out = e.ask(e.waiting[i], now, out)
		}
	}
	return out
}

// ask asks those who keep m's step up.
func (e *Engine) ask(m *machine, now monotime.Time, out []Send) []Send {
	m.asked = true
	m.interval = min(2*m.interval, e.cfg.Limit/asksPerLimit)
	m.next = now.Add(m.interval)
	var silent []int
	s := &e.plan.steps[m.step]
	for i := s.await; i < s.awaitEnd; i++ {
		if m.now().here[i] {
			continue
		}
		a := e.plan.awaits[i]
		p := &e.peers[a.From]
		if p.ask(now, e.cfg.Limit) >= e.cfg.Limit && p.asks > asksPerLimit/2 {
			silent = append(silent, a.From)
			continue
		}
		e.counters.Asked++
		out = append(out, Send{a.From, p.asks % e.cfg.NICs, e.message(Ask, m, a.Label)})
	}
	if silent != nil {
		return e.failAll(m, newFailure(Silent, silent...), out)
	}
	return out
}

// ask notes that a member is asked, and returns how long it has been silent. Of the time since the ask before, no more
// counts than is usual between two: if it was longer this node stood still, and the answers may not be read yet.
func (p *peer) ask(now monotime.Time, limit time.Duration) time.Duration {
	since := now.Sub(p.last)
	if p.asks == 0 || since >= limit {
		p.asks, p.silence, since = 0, 0, 0
	}
	p.asks++
	p.silence += min(since, 2*limit/asksPerLimit)
	p.last = now
	return p.silence
}

// failAll ends a barrier and tells everybody.
func (e *Engine) failAll(m *machine, f *Failure, out []Send) []Send {
	e.fail(m, f)
	return append(out, Send{schedule.All, 0, e.failed(m)})
}

// fail ends a barrier, and all others of the group if they cannot succeed either.
func (e *Engine) fail(m *machine, f *Failure) {
	m.state, m.failure = Failed, f
	e.end(m)
	if f.gone() {
		e.lose(f)
	}
}

// lose ends all barriers, as members will not take part any more. Those that have left may have completed some of them.
func (e *Engine) lose(f *Failure) {
	e.note(f)
	for f.Reason != Left && len(e.waiting) > 0 {
		e.fail(e.waiting[0], f)
	}
}

// note has the generations to come fail, as members will not take part any more.
func (e *Engine) note(f *Failure) {
	switch {
	case e.gone == nil:
		e.gone = f
	case e.gone.Reason == f.Reason:
		others := max(e.gone.Others, f.Others) // at least: they may be the same
		e.gone = newFailure(f.Reason, append(slices.Clone(e.gone.Ranks), f.Ranks...)...)
		e.gone.Others = others
	} // else the first reason stands
}

// failed makes the message that says so.
func (e *Engine) failed(m *machine) Message {
	msg := e.message(Fail, m, 0)
	msg.Failure = m.failure
	return msg
}
