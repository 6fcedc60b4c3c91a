package reliable

import "fmt"

// broken names an invariant that does not hold, or returns "".
func (c *Conn) broken() string {
	buffers := 0
	for l := range c.lanes {
		s, r := &c.lanes[l].sender, &c.lanes[l].receiver
		if wrong := s.broken(&buffers); wrong != "" {
			return fmt.Sprintf("lane %d: %s: una %d next %d built %d fill %d flight %d lost %d limit %d congestion %d",
				l, wrong, s.una, s.nxt, s.queued, s.fill, s.inFlight, s.lost, s.creditLimit, s.reno.Window())
		}
		if wrong := r.broken(&buffers); wrong != "" {
			return fmt.Sprintf("lane %d: %s: next %d held %t count %d", l, wrong, r.nxt, r.rest != nil, r.count)
		}
	}
	if known := c.state == Open || c.state == Closing; known != (c.remote != 0) {
		return fmt.Sprintf("%v, and the peer's life is %d", c.state, c.remote)
	}
	return ""
}

// stuck reports whether a connection has something to send and no deadline, once NextBatch has
// returned nothing.
func (c *Conn) stuck() bool {
	_, ok := c.Deadline()
	return !ok && !(c.AllAcked(Requests) && c.AllAcked(Replies))
}

func (s *sender) broken(buffers *int) string {
	flight, missing, kept := 0, 0, 0
	for i := range s.packets {
		if f := &s.packets[i]; f.rtoOnly && f.state != packetLost {
			return fmt.Sprintf("slot %d is late, and not missing", i)
		}
		if s.packets[i].buf.Bytes != nil {
			kept++
		}
	}
	for q := s.una; q != s.nxt; q++ {
		switch f := s.packet(q); f.state {
		case packetInFlight:
			flight++
		case packetLost:
			missing++
		case packetUnsent:
			return fmt.Sprintf("frame %d was sent, and waits", q)
		}
		if s.packet(q).buf.Bytes == nil {
			return fmt.Sprintf("frame %d is not acknowledged, and has gone", q)
		}
	}
	want := int(s.queued - s.una)
	if s.fill > 0 {
		want++
	}
	*buffers += kept
	switch {
	case before(s.nxt, s.una) || before(s.queued, s.nxt) || want > Window:
		return "out of the window"
	case flight != s.inFlight:
		return fmt.Sprintf("%d frames are on their way", flight)
	case missing != s.lost:
		return fmt.Sprintf("%d frames are lost", missing)
	case s.reno.Window() < minWindow || s.reno.Window() > Window:
		return "congestion out of bounds"
	case kept != want:
		return fmt.Sprintf("%d buffers kept for %d frames", kept, want)
	}
	return ""
}

func (r *receiver) broken(buffers *int) string {
	count := 0
	for _, b := range r.outOfOrder {
		if b.Bytes != nil {
			count++
		}
	}
	*buffers += count
	switch {
	case count != r.count:
		return fmt.Sprintf("%d frames are here", count)
	case r.rest != nil && r.outOfOrder[r.nxt%ReorderWindow].Bytes == nil:
		return "held, and not here"
	}
	return ""
}
