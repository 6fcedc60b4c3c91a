package agreement

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Queries is the least number of questions before a silent member counts as gone. Where 30 % of all
// frames are lost, half of the answers are, and 20 in a row once in a million times.
const Queries = 20

// maxExcuse is how long a member that answers by other paths alone is spared, in peer timeouts: a
// failover has that time to move the route.
const maxExcuse = 2

// newSilence is the time after the last question that makes the next one the first again, if the
// timeout is not longer: a timer may be late by longer than a timeout of a few milliseconds.
const newSilence = 100 * time.Millisecond

// Silence is how long a member has not answered. The zero Silence is of one that was heard now.
type Silence struct {
	asks    int           // since the member was heard last
	last    monotime.Time // the instant of the last of them
	silent  time.Duration // from the first to the last, without the time that this node stood still
	excused time.Duration // more silence, of a member that answered by another path
}

// Heard ends the silence.
func (s *Silence) Heard() { s.asks = 0 }

// Query notes a question. Of the time since the one before, no more counts than twice what usually
// lies between two: if more has passed, this node stood still, and the answers may not be read yet.
// So more than half of Queries are asked before a timeout has counted.
func (s *Silence) Query(now monotime.Time, timeout time.Duration) {
	since := now.Sub(s.last)
	if s.asks == 0 || since >= max(timeout, newSilence) {
		*s, since = Silence{}, 0
	}
	s.asks++
	s.silent += min(since, 2*timeout/Queries)
	s.last = now
}

// Over returns why the member counts as gone; ok is false as long as it does not.
func (s *Silence) Over(timeout time.Duration) (why Reason, ok bool) {
	switch {
	case s.asks == 0 || s.silent < timeout:
		return 0, false
	case s.excused > 0:
		return Unreachable, true
	}
	return Silent, true
}

// Doubtful reports whether the member is silent for half of the timeout: time to try other paths.
func (s *Silence) Doubtful(timeout time.Duration) bool { return s.asks > 0 && s.silent >= timeout/2 }

// Excuse notes that the member has answered by another path. It is spared for some time.
func (s *Silence) Excuse(timeout time.Duration) {
	if s.asks > 0 && s.excused < maxExcuse*timeout {
		s.excused += s.silent
		s.silent = 0
	}
}
