package reliable

import "fmt"

// broken says which invariant of a connection does not hold, if one does not.
func (c *Conn) broken() string {
	buffers := 0
	for l := range c.lanes {
		s, r := &c.lanes[l].sender, &c.lanes[l].receiver
		if wrong := s.broken(&buffers); wrong != "" {
			return fmt.Sprintf("lane %d: %s: una %d next %d built %d fill %d flight %d lost %d limit %d congestion %d",
				l, wrong, s.una, s.next, s.built, s.fill, s.flight, s.lost, s.limit, s.congestion)
		}
		if wrong := r.broken(&buffers); wrong != "" {
			return fmt.Sprintf("lane %d: %s: next %d held %t count %d", l, wrong, r.next, r.held, r.count)
		}
	}
	if c.state == Open != (c.theirs != 0) {
		return fmt.Sprintf("%v, and the peer's life is %d", c.state, c.theirs)
	}
	return ""
}

// stuck reports whether something is to be sent and nothing will happen: to be asked once Next has returned nil.
func (c *Conn) stuck() bool {
	_, ok := c.Deadline()
	return !ok && !(c.Done(Requests) && c.Done(Replies))
}

func (s *sender) broken(buffers *int) string {
	flight, lost, kept := 0, 0, 0
	for i := range s.slots {
		if f := &s.slots[i]; f.late && f.state != missing {
			return fmt.Sprintf("slot %d is late, and not missing", i)
		}
		if s.slots[i].b != nil {
			kept++
		}
	}
	for q := s.una; q != s.next; q++ {
		switch f := s.slot(q); f.state {
		case flying:
			flight++
		case missing:
			lost++
		case waiting:
			return fmt.Sprintf("frame %d was sent, and waits", q)
		}
		if s.slot(q).b == nil {
			return fmt.Sprintf("frame %d is not acknowledged, and has gone", q)
		}
	}
	want := int(s.built - s.una)
	if s.fill > 0 {
		want++
	}
	*buffers += kept
	switch {
	case before(s.next, s.una) || before(s.built, s.next) || want > Window:
		return "out of the window"
	case flight != s.flight:
		return fmt.Sprintf("%d frames are on their way", flight)
	case lost != s.lost:
		return fmt.Sprintf("%d frames are lost", lost)
	case s.congestion < leastCongestion || s.congestion > Window:
		return "congestion out of bounds"
	case kept != want:
		return fmt.Sprintf("%d buffers kept for %d frames", kept, want)
	}
	return ""
}

func (r *receiver) broken(buffers *int) string {
	count := 0
	for _, b := range r.early {
		if b != nil {
			count++
		}
	}
	*buffers += count
	switch {
	case count != r.count:
		return fmt.Sprintf("%d frames are here", count)
	case r.held && r.early[r.next%Stash] == nil:
		return "held, and not here"
	}
	return ""
}
