package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// site is one end in a run, with a driver.
type site struct {
	*end
	r     *run
	left  [Lanes]int    // records to be sent
	timer monotime.Time // the earliest one; valid if armed
	armed bool
	dead  bool

	leaving bool // it is closed: it takes byes alone
}

func (r *run) newSite(i, peer int) *site {
	life := r.rng.Uint32() | 1
	s := &site{r: r, end: r.newEnd(i, peer, r.size, life, r.start)}
	s.end.holds = s.mayHold
	if r.often(.8) {
		s.left = [Lanes]int{r.rng.IntN(r.budget + 1), r.rng.IntN(r.budget + 1)}
		r.After(r.upTo(10*time.Millisecond), s.produce)
	}
	return s
}

// now is what the node's clock says.
func (s *site) now() monotime.Time { return s.r.clock(s.node) }

func (r *run) clock(node int) monotime.Time {
	if at := r.stopped[node]; !at.IsZero() {
		return at
	}
	return r.Now().Add(r.skew[node])
}

// mayHold decides before each record whether to hold the lane.
func (s *site) mayHold(l Lane) bool {
	if s.r.quiet || s.r.hold == 0 || !s.r.often(s.r.hold) {
		return false
	}
	long := time.Millisecond
	if s.r.longHolds && s.r.often(.05) {
		long = 3 * DefaultPeerTimeout
	}
	s.r.After(s.r.upTo(long), func() {
		if !s.dead && !s.leaving {
			s.resume(l)
			s.pump()
		}
	})
	return true
}

// produce reserves some records now, and others later.
func (s *site) produce() {
	if s.dead || s.leaving {
		return
	}
	s.fill(1 + s.r.rng.IntN(400))
	s.pump()
	if s.left != [Lanes]int{} {
		s.r.After(s.r.upTo(time.Millisecond), s.produce)
	}
}

// fill reserves up to n records.
func (s *site) fill(n int) {
	for l := range Lane(Lanes) {
		for ; n > 0 && s.left[l] > 0; n-- {
			size := recordHeader + s.r.rng.IntN(30)
			if s.r.often(.1) {
				size = recordHeader + s.r.rng.IntN(s.c.MaxRecord()-recordHeader+1)
			}
			if !s.write(s.now(), l, size) {
				break
			}
			s.left[l]--
		}
	}
}

// receive takes a frame, and does what has become possible.
func (s *site) receive(b []byte) {
	if s.dead || s.leaving && Kind(b[0]&0xf) != Bye && Kind(b[0]&0xf) != ByeAck {
		return
	}
	restarts, lefts := s.restarts, s.byes
	s.end.receive(s.now(), b)
	s.r.failures += uint64(s.restarts - restarts + s.byes - lefts)
	s.r.byes += uint64(s.byes - lefts)
	s.pump()
}

// pump sends what the NIC takes, and sets the timer.
func (s *site) pump() {
	policies := [...]AckPolicy{NoPiggyback, NoPiggyback, MayPiggyback, WillPiggyback}
	s.c.SetAckPolicy(policies[s.r.rng.IntN(4)]) // data that will follow may fail to
	if s.r.often(.2) {
		s.c.Uncork(Lane(s.r.rng.IntN(Lanes)))
	}
	busy := s.send()
	if s.dead {
		return
	}
	if busy > 0 {
		s.check()
		s.r.After(busy, s.again)
		return
	}
	if s.c.stuck() {
		s.fail("%d to %d: %v, with something to send, and neither a frame nor a deadline", s.node, s.peer, s.c.state)
	}
	s.check()
	at, ok := s.c.Deadline()
	at = at.Add(-s.r.skew[s.node])
	if !ok || !s.r.stopped[s.node].IsZero() || s.armed && !at.Before(s.timer) {
		return
	}
	if now := s.r.Now(); at.Before(now) {
		at = now
	}
	s.timer, s.armed = at, true
	s.r.At(at, func() { s.tick(at) })
}

// send sends all that may go, and reports for how long the ring is full: then some frames were
// refused.
func (s *site) send() (busy time.Duration) {
	now := s.now()
	for frames := s.next(now); len(frames) > 0 && !s.dead; frames = s.next(now) {
		n, busy := s.sends(frames)
		if n < len(frames) {
			s.c.Refused(n, len(frames))
			return busy
		}
	}
	return 0
}

func (s *site) again() {
	if !s.dead {
		s.pump()
	}
}

// tick does what is due. A replaced timer does no harm.
func (s *site) tick(at monotime.Time) {
	if s.dead {
		return
	}
	if s.timer == at {
		s.armed = false
	}
	downs := s.failures
	s.advance(s.now())
	s.r.failures += uint64(s.failures - downs)
	s.pump()
}

// finished checks that everything has arrived, and nothing is left.
func (s *site) finished() {
	for l := range Lane(Lanes) {
		if st := &s.streams[s.out[l]]; st.got != st.sent {
			s.fail("at the end: %+v", *st)
		}
	}
	if len(s.pool.out) > 0 {
		s.fail("at the end %d has %d buffers for %d", s.node, len(s.pool.out), s.peer)
	}
	if at, ok := s.c.Deadline(); ok {
		s.fail("idle, with a deadline at %v", at)
	}
}
