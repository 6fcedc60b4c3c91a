package ether

// receiver is the receiving end of a flow: it puts segments in order, and says which acks are due.
// It computes; the flow sends.
type receiver struct {
	next       uint64 // RCV.NXT: all below it has arrived
	arrived    []bool // a ring, by number, from next on
	payload    []uint16
	outOfOrder int    // how many have arrived above next
	lastSeq    uint64 // the last of these to arrive
	unacked    int    // segments since the last ack

	duplicates uint64 // segments that came again
}

func newReceiver(segments int) receiver {
	return receiver{arrived: make([]bool, segments), payload: make([]uint16, segments)}
}

func (r *receiver) slot(seq uint64) uint64 { return seq & uint64(len(r.arrived)-1) }

// onSegment takes in a segment. It returns how many bytes have come into order, and whether an ack
// is due at once: for every second segment, a gap, a segment that fills one, and a duplicate.
// Source: RFC 5681 §4.2.
func (r *receiver) onSegment(f *frame) (inOrder int64, ackNow bool) {
	if f.seq < r.next || f.seq-r.next < uint64(len(r.arrived)) && r.arrived[r.slot(f.seq)] {
		r.duplicates++
		return 0, true
	}
	gaps := r.outOfOrder > 0
	r.arrived[r.slot(f.seq)], r.payload[r.slot(f.seq)] = true, f.payload
	if f.seq != r.next {
		r.outOfOrder++
		r.lastSeq = f.seq
		return 0, true
	}
	r.outOfOrder++
	for r.outOfOrder > 0 && r.arrived[r.slot(r.next)] {
		r.arrived[r.slot(r.next)] = false
		inOrder += int64(r.payload[r.slot(r.next)])
		r.next++
		r.outOfOrder--
	}
	r.unacked++
	return inOrder, gaps || f.push || r.unacked >= ackEvery
}

// fillAck fills in what has arrived: the next segment expected, and the block around the last one
// out of order, as the first block of RFC 2018 §4.
func (r *receiver) fillAck(f *frame) {
	r.unacked = 0
	f.seq, f.lo, f.hi = r.next, 0, 0
	if r.outOfOrder == 0 || r.lastSeq < r.next {
		return
	}
	for f.lo = r.lastSeq; f.lo > r.next && r.arrived[r.slot(f.lo-1)]; f.lo-- {
	}
	end := r.next + uint64(len(r.arrived))
	for f.hi = r.lastSeq + 1; f.hi < end && r.arrived[r.slot(f.hi)]; f.hi++ {
	}
}
