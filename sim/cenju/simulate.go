package cenju

import "time"

// machine is a run: packets one behind the other, through the FIFO into memory. Bytes are numbered
// throughout. The receiver begins a packet before all of it is in the FIFO, and a byte's room is
// free once the byte has left.
type machine struct {
	Config
	sent    int           // bytes of all packets so far
	entered time.Duration // when the last of them went into the FIFO
	left    []passage     // what has left the FIFO, as far as its room is not taken yet
	ready   time.Duration // when the receiver takes the next packet
	idle    time.Duration // when the processor has done all invalidations so far
}

// passage is when the bytes from begin to end left the FIFO: evenly, from first to last.
type passage struct {
	begin, end  int
	first, last time.Duration
}

// at returns when the bytes before a place had left.
func (p passage) at(place int) time.Duration {
	return p.first + (p.last-p.first)*time.Duration(place-p.begin)/time.Duration(p.end-p.begin)
}

// Simulate returns what a transfer of size bytes takes, from 1 to MaxSize, in a row of transfers:
// the mean of a row's second half. The Config must be valid.
func (c Config) Simulate(m Mode, size int) time.Duration {
	half := 32 + 8*c.FIFO/size // transfers that fill the FIFO several times
	run := &machine{Config: c, left: []passage{{begin: -c.FIFO}}}
	var middle time.Duration
	for i := range 2 * half {
		if i == half {
			middle = run.ready
		}
		c.pieces(m, size, func(bytes int) { run.transfer(m, bytes) })
	}
	return (run.ready - middle) / time.Duration(half)
}

// transfer moves a piece. Its last packet interrupts the processor, which does one piece's work
// after the other.
func (r *machine) transfer(m Mode, size int) {
	for rest := size; rest > 0; rest -= r.Packet {
		r.packet(min(r.Packet, rest))
	}
	still, beside := r.invalidation(m, size)
	r.ready = max(r.ready, r.idle) + still
	r.idle = r.ready + beside
}

// packet moves a packet through the FIFO into memory.
func (r *machine) packet(size int) {
	first, last := r.enter(size)
	out := passage{begin: r.sent, end: r.sent + size, first: max(r.ready, first)}
	out.last = max(out.first+r.Receiver.Time(size), last)
	r.left = append(r.left, out)
	r.sent, r.entered, r.ready = out.end, last, out.last
}

// enter returns when the first and the last byte of the next packet go into the FIFO: each when the
// network has brought it, and the byte that is FIFO bytes ahead of it has left.
func (r *machine) enter(size int) (first, last time.Duration) {
	place, end := r.sent-r.FIFO, r.sent+size-r.FIFO // of the bytes whose room they take
	for r.left[0].end <= place {
		r.left = r.left[1:]
	}
	first = max(r.entered, r.left[0].at(place))
	last = first
	for i := 0; place < end; i++ {
		p := r.left[i]
		until := min(p.end, end)
		last = max(max(last, p.at(place))+r.Network.Time(until-place), p.at(until))
		place = until
	}
	return first, last
}
