package engine

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// fuzzAlgorithms are the algorithms that a script's first byte selects.
var fuzzAlgorithms = []string{"concurrent", "shuffle", "tree:2", "star", "chassis-repeated", "redundant:2:concurrent"}

// script is three members of a group. Bytes deliver, double, drop and reorder their frames; members leave,
// die and begin anew.
type script struct {
	t       *testing.T
	now     monotime.Time
	algo    schedule.Algorithm
	sites   [3]*site
	dead    [3]bool
	leaving [3]bool // they have said goodbye once, and enter no barrier any more
	lives   uint32
	in      [3][2]uint32 // by rank and number: the generation entered last
	harsh   bool         // members have left, died or begun anew: failures may say so
	pending []letter
	sent    int // by one event

	delivered int // frames, half of which are counted elsewhere where they may be
}

// letter is a frame on its way.
type letter struct {
	from, to int
	b        []byte
}

// maxPending bounds a script's frames on their way; the oldest are lost.
const maxPending = 256

func newScript(t *testing.T, algo schedule.Algorithm) *script {
	s := &script{t: t, now: monotime.At(time.Second), algo: algo}
	for rank := range s.sites {
		s.begin(rank)
	}
	return s
}

// begin begins a member, anew if it has died.
func (s *script) begin(rank int) {
	s.lives++
	own := &site{node: rank, ended: func(m *member, number uint8) { s.exit(m, rank, number) }}
	own.post = func(to []int, _ int, b []byte) {
		for _, to := range to {
			s.pending = append(s.pending, letter{rank, to, b})
		}
		s.sent++
	}
	s.sites[rank], s.dead[rank], s.leaving[rank] = own, false, false
	own.join(Config{
		NICs: 2, Algorithm: s.algo, Identity: identity, Incarnation: s.lives, PeerTimeout: DefaultPeerTimeout,
	}, upTo(len(s.sites)))
}

func (s *script) member(rank int) *member { return s.sites[rank].members[0] }

// goesOn reports whether a member is there.
func (s *script) goesOn(rank int) bool { return !s.dead[rank] && !s.member(rank).left }

// do runs one byte's event: its two highest bits are the kind, the others the object.
func (s *script) do(b byte) {
	which := int(b & 0x3f)
	switch b >> 6 {
	case 0:
		if which < 48 {
			s.arrive(which%3, uint8(which/3%2))
		} else {
			s.rare((which-48)/3, which%3)
		}
	case 1:
		s.deliver(which, true)
	case 2: // delivered, and still on its way; or lost
		if which%2 == 0 {
			s.deliver(which/2, false)
		} else {
			s.lose(which / 2)
		}
	case 3:
		s.tick(time.Duration(which) * time.Duration(which) * 50 * time.Microsecond) // 0.2 s at most
	}
}

// rare runs a rare event of a member.
func (s *script) rare(what, rank int) {
	m := s.member(rank)
	switch {
	case what == 0 && s.dead[rank]:
		s.harsh = true
		s.begin(rank)
	case !s.goesOn(rank):
	case what == 1:
		s.harsh, s.dead[rank] = true, true
	case what == 2: // the second time it is gone
		s.harsh = true
		m.left = s.leaving[rank] || m.gone != nil
		s.leaving[rank] = true
		m.flush(m.Leave(nil))
	case what == 3:
		m.flush(m.RequestStatus(0, nil))
	case what == 4:
		m.flush(m.RepeatStatus(0, nil))
		for _, other := range m.Doubtful(nil) {
			s.harsh = true // it may be unreachable
			m.Excuse(other)
		}
	case what == 5: // as for a mask that others do not have
		for other := range s.sites {
			if why, left := m.Departed(other); left {
				m.Accuse(s.now, other, why)
			} else if other != rank {
				m.flush([]Send{m.Question(other, 0)})
			}
		}
	}
	s.after(rank)
}

func (s *script) arrive(rank int, number uint8) {
	if !s.goesOn(rank) || s.leaving[rank] {
		return
	}
	m := s.member(rank)
	state, before := m.State(number)
	if state == Idle {
		s.in[rank][number] = max(s.in[rank][number], before+1) // it may have entered that in a former life
	}
	err := m.arrive(s.now, number)
	if err == nil && state != Idle || err != nil && state == Idle && m.Failure(number) == nil {
		s.t.Fatalf("Arrive of %d in state %v: %v", rank, state, err)
	}
	s.after(rank)
}

func (s *script) deliver(which int, once bool) {
	if len(s.pending) == 0 {
		return
	}
	which %= len(s.pending)
	l := s.pending[which]
	if once {
		s.lose(which)
	}
	var msg Message
	if err := Parse(l.b, &msg); err != nil {
		s.t.Fatal(err)
	}
	s.delivered++
	switch {
	case s.dead[l.to]:
		return
	case s.delivered%2 == 0 && s.goesOn(l.to) && s.counts(l.from, l.to, &msg):
		m := s.member(l.to)
		m.flush(m.HandleCounted(s.now, l.from, msg.Number, msg.Label, msg.Generation, nil))
	default:
		s.sites[l.to].receive(s.now, l.from, 0, l.b)
	}
	s.after(l.to)
}

// counts reports whether a frame may be counted elsewhere: from the second generation on, and while
// all members go on.
func (s *script) counts(from, to int, msg *Message) bool {
	m := s.member(to)
	if msg.Generation == 1 || !m.Intact() || !m.Counts(from, msg) {
		return false
	}
	if _, awaits := m.Awaited(from); !awaits || m.Incarnation(from) != msg.Incarnation {
		s.t.Fatalf("rank %d would count what it does not await: %v", to, msg)
	}
	return true
}

func (s *script) lose(which int) {
	if len(s.pending) > 0 {
		which %= len(s.pending)
		s.pending = append(s.pending[:which], s.pending[which+1:]...)
	}
}

func (s *script) tick(d time.Duration) {
	s.now = s.now.Add(d)
	for rank, own := range s.sites {
		if !s.goesOn(rank) {
			continue
		}
		own.advance(s.now)
		s.after(rank)
		if at, ok := own.deadline(); ok && !at.After(s.now) {
			s.t.Fatalf("rank %d: the deadline %v stays after Advance at %v", rank, at, s.now)
		}
	}
}

// after checks an event that a member has sent few frames.
func (s *script) after(rank int) {
	m := s.member(rank)
	if most := 2*len(m.plan.notifies) + 2*len(m.plan.awaits) + 2; s.sent > most {
		s.t.Fatalf("rank %d sends %d messages at once, want %d at most", rank, s.sent, most)
	}
	s.sent = 0
	s.pending = s.pending[max(0, len(s.pending)-maxPending):]
}

// exit checks that no member left early, and that members fail for their silence alone, or for what they
// did.
func (s *script) exit(m *member, rank int, number uint8) {
	state, generation := m.State(number)
	if f := m.Failure(number); f != nil {
		if f.Reasons[0] == OtherAlgorithm || f.Reasons[0] != Silent && !s.harsh || m.Agreed() != f {
			s.t.Fatalf("rank %d has failed: %v; agreed is %v", rank, f, m.Agreed())
		}
		return
	}
	if done := m.machines[number].completed(); done != generation {
		s.t.Fatalf("rank %d has left generation %d of number %d, and completed %d", rank, generation, number, done)
	}
	for other := range s.in {
		if state != Idle || s.in[other][number] < generation {
			s.t.Fatalf("rank %d has left generation %d of number %d as %v, rank %d is in %d",
				rank, generation, number, state, other, s.in[other][number])
		}
	}
}

// settle runs all members on without further faults, those that are leaving to their end: barriers that have
// not failed end. One that has begun anew may wait for members that have left and could make the group anew:
// its context ends.
func (s *script) settle() {
	const rounds = 200
	for rank, leaves := range s.leaving {
		if leaves {
			s.rare(2, rank)
		}
	}
	for round := range rounds {
		for rank := range s.sites {
			if m := s.member(rank); round > rounds/2 && m.cfg.Incarnation > uint32(len(s.sites)) && m.Fresh() && s.goesOn(rank) {
				m.flush(m.Leave(nil))
				m.left = m.leaves > 1
			}
		}
		for range 100 * maxPending {
			if len(s.pending) == 0 {
				break
			}
			s.deliver(0, true)
		}
		for rank := range s.sites {
			for number := range uint8(2) {
				if _, g := s.member(rank).State(number); s.behind(number, g) {
					s.arrive(rank, number)
				}
			}
		}
		s.tick(DefaultPeerTimeout / nacksPerTimeout)
	}
	var sum Stats
	for rank := range s.sites {
		m := s.member(rank)
		for number := range uint8(2) {
			if state, g := m.State(number); state == Waiting && s.goesOn(rank) {
				s.t.Fatalf("rank %d still waits in generation %d of number %d, for %v", rank, g, number, m.Missing(number, nil))
			}
			if times := m.Times(number); times != nil && times.Left.IsZero() && times.Generation <= m.machine(number).completed() {
				s.t.Fatalf("rank %d: it has left %d, and its times are %+v", rank, times.Generation, times)
			}
		}
		m.AddStats(&sum)
	}
	if sum.Barriers == 0 && !s.harsh && s.in != [3][2]uint32{} && sum.Nacks == 0 {
		s.t.Fatalf("nobody left a barrier, and nobody asked: %+v", sum)
	}
}

// behind reports whether a member is in a later generation.
func (s *script) behind(number uint8, generation uint32) bool {
	for rank := range s.in {
		if s.in[rank][number] > generation {
			return true
		}
	}
	return false
}

// The events of a member, for scripts.
const (
	enter   = 0 // 0 and 3: numbers 0 and 1
	revive  = 48
	kill    = 51
	leave   = 54
	request = 57
	look    = 60
	ask     = 63   // of rank 0
	arrival = 0x40 // of the first frame on its way
	copied  = 0x80 // the first frame, and it is still on its way
	lost    = 0x81
	quarter = 0xfe // of a second, almost
)

// fuzzScripts are stories: all is well, once and twice; frames are lost, doubled and late; a member dies, and another one; a
// member leaves, before or after a barrier; one is back before its death was noticed, or after; one is asked if it has left.
var fuzzScripts = [][]byte{
	{enter, enter + 1, enter + 2, arrival, arrival, arrival, arrival},
	{enter, enter + 1, enter + 2, copied, arrival + 1, quarter, quarter, arrival + 1, copied},
	{enter, enter + 1, enter + 2, arrival, arrival, arrival, arrival, arrival, arrival, enter, enter + 1, enter + 2, arrival, arrival, arrival},
	{enter, enter + 1, enter + 2, enter + 3, enter + 4, enter + 5, arrival, copied, arrival, quarter, enter, enter + 1, enter + 2, lost},
	{enter, lost, lost, enter + 1, lost, lost, request, quarter, look, arrival, enter + 2, quarter, request + 1, look + 1},
	{enter, enter + 1, kill + 2, quarter, quarter, quarter, quarter, quarter, quarter, look, look + 1, quarter, quarter},
	{enter, enter + 3, enter + 4, kill + 1, kill + 2, quarter, quarter, quarter, quarter, quarter, quarter, quarter, look, quarter},
	{enter, enter + 1, enter + 2, arrival, arrival, arrival, arrival, leave, leave, quarter, enter + 1, enter + 2, quarter},
	{enter, enter + 1, leave + 2, leave + 2, arrival, arrival, leave + 1, quarter, leave + 1, enter + 3},
	{enter, enter + 1, kill, revive, enter, quarter, enter + 1, enter + 2, arrival, arrival, quarter},
	{enter, enter + 1, enter + 2, quarter, kill + 1, quarter, revive + 1, quarter, enter + 1, enter + 4, leave, leave},
	{enter, enter + 2, kill + 1, quarter, quarter, quarter, quarter, quarter, quarter, quarter, leave, leave, quarter, enter + 5},
	{enter, ask, arrival, arrival, arrival, leave + 1, arrival, arrival, ask, leave + 1, quarter, ask, enter + 2, quarter, ask},
}

// Bytes are a script. Whatever they do: no early exit, no panic, no failure but silence, few
// messages at once; and when the faults end, so do the barriers.
func FuzzEngine(f *testing.F) {
	for algo := range len(fuzzAlgorithms) {
		for _, events := range fuzzScripts {
			f.Add(append([]byte{byte(algo)}, events...))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		s := newScript(t, algorithm(fuzzAlgorithms[int(b[0])%len(fuzzAlgorithms)]))
		for _, event := range b[1:min(len(b), 2000)] {
			s.do(event)
		}
		s.settle()
	})
}
