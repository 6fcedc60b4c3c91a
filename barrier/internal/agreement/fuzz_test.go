package agreement

import (
	"bytes"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// script is three members. Bytes are events: accusations, deaths, reports that are lost, doubled and out of
// order, time.
type script struct {
	*world
	t   *testing.T
	now monotime.Time
}

func newScript(t *testing.T, late int) *script {
	s := &script{space{size: 3, late: late}.start(), t, monotime.At(time.Second)}
	for _, a := range s.members {
		a.cfg.PeerTimeout, a.cfg.FirstQuery = peerTimeout, 3*time.Millisecond
	}
	return s
}

// The events of a member, for scripts: the two highest bits of a byte are the kind.
const (
	begin    = 0
	accuse   = 3 // of the next one
	accuse2  = 6 // of the one after
	kill     = 9
	excuse   = 12
	announce = 15
	appear   = 18
	arrival  = 0x40 // of the first report on its way
	copied   = 0x80 // the first one, and it is still on its way
	lost     = 0x81
	tenth    = 0xc0 + 45 // of the timeout, about
)

func (s *script) do(b byte) {
	switch which := int(b & 0x3f); b >> 6 {
	case 0:
		s.rare(which/3*3, which%3)
	case 1:
		s.deliver(which, true)
	case 2: // delivered, and still on its way; or lost
		if which%2 == 0 {
			s.deliver(which/2, false)
		} else {
			s.lose(which / 2)
		}
	case 3:
		s.tick(time.Duration(which) * time.Duration(which) * 50 * time.Microsecond)
	}
}

// rare runs an event of a member.
func (s *script) rare(what, rank int) {
	if what == appear && s.absent[rank] && s.members[rank] != nil {
		s.appear(rank)
	}
	if !s.lives(rank) {
		return
	}
	switch a := s.members[rank]; what {
	case begin:
		a.Begin(s.now)
	case accuse, accuse2:
		a.Accuse(s.now, (rank+what/accuse)%s.size, Reason(1+what%int(reasons-1)))
	case kill:
		s.members[rank] = nil
	case excuse:
		for _, other := range a.Doubtful(nil) {
			a.Excuse(other)
			a.Alive((other + 1) % s.size)
		}
	case announce:
		s.send(rank, a.Announce(nil))
		s.send(rank, []Send{a.ReportTo((rank+1)%s.size, 0, false)})
	}
}

func (s *script) lose(which int) {
	if len(s.flying) > 0 {
		which %= len(s.flying)
		s.flying = append(s.flying[:which], s.flying[which+1:]...)
	}
}

func (s *script) deliver(which int, once bool) {
	if len(s.flying) == 0 {
		return
	}
	f := s.flying[which%len(s.flying)]
	if once {
		s.lose(which)
	}
	switch a := s.members[f.to]; {
	case a == nil:
	case s.lives(f.to) && f.noGroup:
		a.HandleNoGroup(s.now, f.from, f.report.Version)
	case s.lives(f.to):
		a.Hear(f.from, uint32(f.from)+1)
		s.send(f.to, a.Handle(s.now, f.from, uint32(f.from)+1, &f.report, nil))
	default:
		s.arrive(f)
	}
}

func (s *script) tick(d time.Duration) {
	s.now = s.now.Add(d)
	for rank, a := range s.members {
		if !s.lives(rank) {
			continue
		}
		out := a.Advance(s.now, nil)
		if s.send(rank, out); len(out) > 2*s.size {
			s.t.Fatalf("%d sends %d reports at once", rank, len(out))
		}
		for _, g := range a.Gone() {
			if !g.Reason.Valid() || a.State() == Quiet {
				s.t.Fatalf("state %d: gone are %v", a.State(), a.Gone())
			}
		}
		if at, ok := a.Deadline(); ok && !at.After(s.now) {
			s.t.Fatalf("%d: the deadline %v stays after Advance at %v", rank, at, s.now)
		}
	}
	if len(s.flying) > 100 {
		s.flying = s.flying[len(s.flying)-100:]
	}
	if wrong := s.check(1); wrong != "" {
		s.t.Fatal(wrong)
	}
}

// settle runs on without further faults: nobody asks any more, and each knows with whom it goes on.
func (s *script) settle() {
	s.allAppear()
	for range 200 {
		for range 1000 {
			s.deliver(0, true)
		}
		s.tick(peerTimeout / Queries)
	}
	for rank, a := range s.members {
		if a != nil && a.State() == Querying {
			s.t.Fatalf("%d still asks about %v", rank, a.Gone())
		}
	}
	s.flying = nil
	if wrong := s.parts(); wrong != "" {
		s.t.Fatal(wrong)
	}
}

// Bytes are a script. Whatever they do: the decisions agree, and when the faults end, so does the
// agreement.
func FuzzAgreement(f *testing.F) {
	half := []byte{tenth, tenth, tenth, tenth, tenth, tenth, excuse, excuse + 1, excuse + 2}
	for _, events := range [][]byte{
		{begin, tenth, arrival, arrival, arrival, arrival},
		{accuse, tenth, copied, arrival, lost, tenth, arrival, arrival, announce, announce + 1},
		{accuse, accuse2 + 1, kill + 2, tenth, arrival, arrival, announce + 1, arrival},
		{kill, begin + 1, tenth, arrival, excuse + 1, excuse + 2},
		{accuse, tenth, lost, lost, accuse + 2, tenth, arrival, arrival, arrival, accuse2, begin, kill + 1},
		{accuse + 1, accuse + 2, tenth, arrival, arrival, tenth, arrival, tenth, appear, arrival, arrival},
		{kill + 1, kill, begin + 2, excuse + 2, announce + 2},
	} {
		f.Add(append([]byte{0}, events...))
		f.Add(append([]byte{1}, events...))
		f.Add(append([]byte{2}, events...))
		for count := range 6 { // halves of the timeout
			f.Add(append(append([]byte{0}, events...), bytes.Repeat(half, count)...))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		s := newScript(t, int(b[0]%3))
		for _, event := range b[1:min(len(b), 1000)] {
			s.do(event)
		}
		s.settle()
	})
}
