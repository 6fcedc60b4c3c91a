package engine

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// fuzzAlgorithms are the algorithms that a script's first byte selects.
var fuzzAlgorithms = []string{"concurrent", "shuffle", "tree:2", "star", "chassis-repeated", "redundant:2:concurrent"}

// script is three engines. Bytes deliver, double, drop and reorder their frames.
type script struct {
	t       *testing.T
	now     monotime.Time
	engines [3]*Engine
	in      [3][2]uint32 // by rank and number: the generation entered last
	pending []letter
}

// letter is a frame on its way.
type letter struct {
	from, to int
	b        []byte
}

// maxPending bounds a script's frames on their way; the oldest are lost.
const maxPending = 256

func newScript(t *testing.T, algo schedule.Algorithm) *script {
	s := &script{t: t, now: monotime.At(time.Second)}
	for rank := range s.engines {
		s.engines[rank] = New(Config{
			Rank: rank, Size: len(s.engines), NICs: 2, Algorithm: algo, Identity: identity, Incarnation: uint32(rank) + 1,
			PeerTimeout: DefaultPeerTimeout,
		})
	}
	return s
}

// do runs one byte's event: its two highest bits are the kind, the others the object.
func (s *script) do(b byte) {
	which := int(b & 0x3f)
	switch b >> 6 {
	case 0:
		s.arrive(which%3, uint8(which/3%2))
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

func (s *script) arrive(rank int, number uint8) {
	e := s.engines[rank]
	state, before := e.State(number)
	out, err := e.Arrive(s.now, number, nil)
	if (err == nil) != (state == Idle && e.Failure(number) == nil) {
		s.t.Fatalf("Arrive of %d in state %v: %v", rank, state, err)
	}
	if state == Idle {
		s.in[rank][number] = before + 1
	}
	s.after(rank, out)
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
	var m Message
	if err := Parse(l.b, &m); err != nil {
		s.t.Fatal(err)
	}
	s.after(l.to, s.engines[l.to].Handle(s.now, l.from, &m, nil))
}

func (s *script) lose(which int) {
	if len(s.pending) > 0 {
		which %= len(s.pending)
		s.pending = append(s.pending[:which], s.pending[which+1:]...)
	}
}

func (s *script) tick(d time.Duration) {
	s.now = s.now.Add(d)
	for rank, e := range s.engines {
		s.after(rank, e.Advance(s.now, nil))
		if at, ok := e.Deadline(); ok && !at.After(s.now) {
			s.t.Fatalf("rank %d: the deadline %v stays after Advance at %v", rank, at, s.now)
		}
	}
}

// after checks the effects of an event, and takes its frames.
func (s *script) after(rank int, out []Send) {
	e := s.engines[rank]
	if most := 2*len(e.plan.notifies) + 2*len(e.plan.awaits) + 2; len(out) > most {
		s.t.Fatalf("rank %d sends %d messages at once, want %d at most: %q", rank, len(out), most, sends(out))
	}
	for _, number := range e.Ended() {
		s.exit(rank, number)
	}
	for i := range out {
		for to := range s.engines {
			if to != rank && (out[i].To == to || out[i].To == schedule.All) {
				s.pending = append(s.pending, letter{rank, to, out[i].Message.Append(nil)})
			}
		}
	}
	s.pending = s.pending[max(0, len(s.pending)-maxPending):]
}

// exit checks that no member left early, and that members fail for their silence alone.
func (s *script) exit(rank int, number uint8) {
	state, generation := s.engines[rank].State(number)
	if f := s.engines[rank].Failure(number); f != nil {
		if f.Reason != Silent {
			s.t.Fatalf("rank %d has failed: %v", rank, f)
		}
		return
	}
	for other := range s.in {
		if state != Idle || s.in[other][number] < generation {
			s.t.Fatalf("rank %d has left generation %d of number %d as %v, rank %d is in %d",
				rank, generation, number, state, other, s.in[other][number])
		}
	}
}

// settle runs all members on without further faults: barriers that have not failed end.
func (s *script) settle() {
	for range 200 {
		for range 100 * maxPending {
			if len(s.pending) == 0 {
				break
			}
			s.deliver(0, true)
		}
		for rank := range s.engines {
			for number := range uint8(2) {
				if _, g := s.engines[rank].State(number); s.behind(number, g) {
					s.arrive(rank, number)
				}
			}
		}
		s.tick(DefaultPeerTimeout / nacksPerTimeout)
	}
	for rank, e := range s.engines {
		for number := range uint8(2) {
			if state, g := e.State(number); state == Waiting {
				s.t.Fatalf("rank %d still waits in generation %d of number %d, for %v", rank, g, number, e.Missing(number, nil))
			}
		}
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

// Bytes are a script. Whatever they do: no early exit, no panic, no failure but silence, few
// messages at once; and when the faults end, so do the barriers.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 0x40, 0x40, 0x40, 0x40})
	f.Add([]byte{1, 0, 1, 2, 0x81, 0x80, 0xff, 0xff, 0x41, 0x80})
	f.Add([]byte{2, 0, 1, 2, 3, 4, 5, 0x40, 0x80, 0x40, 0xff, 0, 1, 2, 0x41, 0x42, 0x83})
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

// Bytes are arbitrary messages of members. No panic, and few messages sent for each.
func FuzzEngine_Hostile(f *testing.F) {
	for _, g := range goldens {
		f.Add(g.m.Append([]byte{1}), uint8(2))
	}
	f.Fuzz(func(t *testing.T, b []byte, algo uint8) {
		s := newScript(t, algorithm(fuzzAlgorithms[int(algo)%len(fuzzAlgorithms)]))
		e := s.engines[1]
		for number := 0; len(b) > 0; number++ {
			out, _ := e.Arrive(s.now, uint8(number%5), nil)
			n := min(len(b), 1+headLen+int(b[0]>>2)) // its lowest two bits are the sender
			var m Message
			if Parse(b[1:n], &m) == nil {
				m.Identity = identity
				if m.Label&0x80 == 0 {
					m.Algorithm = e.algorithm
				}
				m.Label &= 0x7f
				out = e.Handle(s.now, int(b[0]&3), &m, out)
			}
			s.now = s.now.Add(time.Duration(n) * time.Millisecond)
			if out = e.Advance(s.now, out); len(out) > 50 {
				t.Fatalf("%d messages at once: %q", len(out), sends(out))
			}
			for _, number := range e.Ended() {
				_ = e.Times(number)
			}
			b = b[n:]
		}
		_, _, _, _ = e.stats, e.Last(), e.Goodbye(), e.Leave(nil)
	})
}
