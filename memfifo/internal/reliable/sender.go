package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// sender is the sending half of a lane: the frames from the first that is not acknowledged to the one being filled.
//
//	una           next            built
//	 |  on their way |  to be sent  | being filled
type sender struct {
	una, next, built uint32
	slots            [Window]slot // by sequence
	fill             int          // bytes in the slot being filled
	urgent           bool         // it is not to wait for more
	flight           int          // frames on their way: not acknowledged, not selected, not lost
	lost             int          // frames to be sent again
	limit            uint32       // the first frame that the receiver has no credit for
	pace
	grown   int           // frames acknowledged since congestion grew last
	recover uint32        // congestion was cut for losses before this frame
	before  pace          // that before the timeout whose verdict may be wrong; zero: there is none
	due     monotime.Time // when the retransmission timeout ends; valid if something is on its way
	backoff uint          // how often it has ended in a row
	probe   bool          // ask whether there is credit, or what has come
	asked   uint32        // frames before this one are acknowledged at once: one of them asked for it
}

// pace is what congestion control has found out.
type pace struct {
	congestion int // how many frames may be on their way
	threshold  int // up to which congestion grows quickly
}

// slot is a frame, kept until it is acknowledged.
type slot struct {
	b     []byte // with room for the header
	n     int
	sent  monotime.Time
	sends int
	state slotState
	late  bool // missing by a timeout alone
}

type slotState uint8

const (
	waiting  slotState = iota // to be sent for the first time
	flying                    // on its way
	selected                  // at the receiver, behind a gap
	missing                   // to be sent again
)

func (s *sender) init(start uint32) {
	s.una, s.next, s.built, s.limit, s.recover, s.asked = start, start, start, start+Window, start, start
	s.congestion, s.threshold = firstCongestion, Window
}

func (s *sender) slot(sequence uint32) *slot { return &s.slots[sequence%Window] }

// idle reports whether everything was acknowledged.
func (s *sender) idle() bool { return s.una == s.built && s.fill == 0 }

// full reports whether there is no slot to fill.
func (s *sender) full() bool { return s.built-s.una >= Window }

// reserve returns n bytes of the frame being filled; a new one if they do not fit. It returns nil if there is none.
func (s *sender) reserve(n int, cfg *Config) []byte {
	if s.fill > 0 && s.fill+n > cfg.Size {
		s.close()
	}
	if s.full() {
		return nil
	}
	f := s.slot(s.built)
	if s.fill == 0 {
		*f = slot{b: cfg.Alloc()}
		s.fill = HeaderLen
	}
	b := f.b[cfg.Room+s.fill:][:n]
	s.fill += n
	return b
}

// close ends the frame being filled.
func (s *sender) close() {
	s.slot(s.built).n = s.fill
	s.fill, s.urgent = 0, false
	s.built++
}

// pick returns the next frame to send, if there is one. Frames that are full go as the window lets them; one being filled goes if
// little is on its way, or if no acknowledgement comes soon that would let it go. The one that the receiver waits for goes
// however much is on its way: all of that waits for it.
func (s *sender) pick() (sequence uint32, ok bool) {
	if s.lost > 0 && s.slot(s.una).state == missing && before(s.una, s.limit) {
		return s.una, true
	}
	if s.flight >= s.congestion {
		return 0, false
	}
	if s.lost > 0 {
		for q := s.una; before(q, s.next) && before(q, s.limit); q++ {
			if s.slot(q).state == missing {
				return q, true
			}
		}
	}
	if s.next == s.built && s.fill > 0 && (s.flight < cork || s.urgent || !before(s.una, s.asked)) && before(s.next, s.limit) {
		s.close()
	}
	if s.next != s.built && before(s.next, s.limit) {
		return s.next, true
	}
	return 0, false
}

// streams reports whether the next frame to send is one that was never sent, is full, and may go.
func (s *sender) streams() bool {
	return s.lost == 0 && s.next != s.built && s.flight < s.congestion && before(s.next, s.limit)
}

// asks reports whether a frame is to be acknowledged at once. Nobody waits for that in a stream, but at its end, and some times while
// what may be on its way is: these open the way for more.
func (s *sender) asks(sequence uint32) bool {
	return sequence+1 == s.built && s.fill == 0 || int(sequence-s.asked) >= min(s.congestion/askParts, askEvery)-1
}

// sent notes that a frame has gone, and whether it has asked to be acknowledged at once.
func (s *sender) sent(sequence uint32, ask bool, now monotime.Time, rtt *roundTrip) {
	f := s.slot(sequence)
	if ask && before(s.asked, sequence+1) {
		s.asked = sequence + 1
	}
	if f.state == missing {
		s.lost--
		f.late = false
	}
	if s.flight == 0 {
		s.due = now.Add(s.timeout(rtt))
	}
	f.state, f.sent = flying, now
	f.sends++
	s.flight++
	if sequence == s.next {
		s.next++
	}
}

// refused notes that a frame has not gone after all: it is the next to be sent again. It reports whether it has gone before.
func (s *sender) refused(sequence uint32) bool {
	f := s.slot(sequence)
	if f.state == flying {
		f.state = missing
		f.sends--
		s.flight--
		s.lost++
	}
	return f.sends > 0
}

func (s *sender) timeout(rtt *roundTrip) time.Duration {
	return min(rtt.timeout()<<min(s.backoff, 8), mostTimeout)
}

// knows reports whether an acknowledgement, of data, says nothing new.
func (s *sender) knows(h *Header) bool { return h.Ack == s.una && creditEnd(h) == s.limit }

// creditEnd is the first frame for which an acknowledgement gives no credit.
func creditEnd(h *Header) uint32 { return h.Ack + uint32(min(h.Credit, Window)) }

// acknowledged takes an acknowledgement, and hands the memory of frames that are done to free.
func (s *sender) acknowledged(h *Header, now monotime.Time, rtt *roundTrip, free func([]byte)) {
	if before(s.next, h.Ack) || before(h.Ack, s.una) {
		return // of frames that were never sent, or an old one
	}
	limit := creditEnd(h)
	if before(s.limit, limit) || h.Ack != s.una || limit != s.limit && h.Selective&1 != 0 {
		s.limit = limit // credit may be taken back while the receiver is held up
	}
	progress, done := false, 0
	for ; s.una != h.Ack; s.una++ {
		f := s.slot(s.una)
		s.settle(f, now, rtt)
		free(f.b)
		f.b, f.state = nil, waiting
		done++
	}
	highest := s.una
	for i, bits := uint32(0), h.Selective; bits != 0 && before(s.una+i, s.next); i, bits = i+1, bits>>1 {
		if bits&1 == 0 {
			continue
		}
		highest = s.una + i
		if f := s.slot(highest); f.state != selected {
			s.settle(f, now, rtt)
			f.state = selected
			progress = true
		}
	}
	progress = progress || done > 0
	if progress {
		s.backoff = 0
		s.probe = false
		s.due = now.Add(s.timeout(rtt))
		s.grow(done)
	}
	if s.lost == 0 {
		s.before = pace{} // all has been sent again
	}
	s.missed(highest, now, rtt)
}

// settle takes a frame out of those on their way.
func (s *sender) settle(f *slot, now monotime.Time, rtt *roundTrip) {
	switch f.state {
	case flying:
		s.flight--
		if f.sends == 1 {
			rtt.note(now.Sub(f.sent))
		}
	case missing:
		s.lost--
		if f.late {
			f.late = false
			s.acquit()
		}
	}
}

// acquit takes back what the last timeout said: a frame that it took for lost was acknowledged, and not sent again since. So the peer has stood
// still, or the way was slow; nothing was lost for all we know, and the pace was not at fault. Other frames are on their way again, and the
// next timeout tells of them; but not those that the receiver has withdrawn its credit for, which it has turned away.
//
// Source: RFC 5682 (finding it out), RFC 4015 (what to do then).
func (s *sender) acquit() {
	for q := s.una; before(q, s.next); q++ {
		if f := s.slot(q); f.state == missing && f.late && before(q, s.limit) {
			f.state, f.late = flying, false
			s.lost--
			s.flight++
		}
	}
	if s.before != (pace{}) {
		s.congestion, s.threshold = max(s.congestion, s.before.congestion), max(s.threshold, s.before.threshold)
		s.before, s.recover = pace{}, s.una
	}
}

// grow lets more frames be on their way: doubled for each round trip up to the threshold, one more beyond.
func (s *sender) grow(done int) {
	if s.congestion < s.threshold {
		s.congestion = min(s.congestion+done, Window)
		return
	}
	s.grown += done
	if s.grown >= s.congestion {
		s.grown = 0
		s.congestion = min(s.congestion+1, Window)
	}
}

// missed finds frames that others have overtaken: they are lost, unless they were sent again a moment ago.
func (s *sender) missed(highest uint32, now monotime.Time, rtt *roundTrip) {
	found := false
	for q := s.una; before(q+reorderings, highest+1) && q != highest; q++ {
		f := s.slot(q)
		if f.state != flying || f.sends > 1 && now.Sub(f.sent) < rtt.again(f.sends) {
			continue
		}
		f.state = missing
		s.flight--
		s.lost++
		found = true
	}
	if found {
		s.before = pace{} // some are lost indeed
	}
	if found && !before(s.una, s.recover) { // once for each window
		s.recover = s.next
		s.threshold = max(s.congestion/2, leastCongestion)
		s.congestion = s.threshold
	}
}

// expire ends the retransmission timeout: all that is on its way counts as lost, and is sent again, a little at a time. If
// nothing is, but the receiver has not taken it all, it is asked. What the receiver has withdrawn its credit for waits for
// credit again, and was not lost on the way.
func (s *sender) expire(now monotime.Time, rtt *roundTrip) {
	s.backoff++
	s.due = now.Add(s.timeout(rtt))
	s.probe = true
	found := false
	for q := s.una; before(q, s.next); q++ {
		if f := s.slot(q); f.state == flying {
			f.state, f.late = missing, true
			s.flight--
			s.lost++
			found = found || before(q, s.limit)
		}
	}
	if found {
		if s.before == (pace{}) {
			s.before = s.pace
		}
		if !before(s.una, s.recover) { // once for each window, as in missed
			s.threshold = max(s.congestion/2, leastCongestion)
		}
		s.congestion = leastCongestion
		s.recover = s.next
	}
}

// awaits reports whether an answer is due: something is not acknowledged, or waits for credit.
func (s *sender) awaits() bool {
	return s.una != s.next || (s.next != s.built || s.fill > 0) && !before(s.next, s.limit)
}

// before reports whether a comes before b, in sequence numbers that wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }
