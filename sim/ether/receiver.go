package ether

// receiver is a flow's far end: it puts segments in order, and says which acks are due. It
// computes; the flow sends.
type receiver struct {
	want    uint64 // all below it has arrived
	arrived []bool // by number, modulo their number, from want on
	payload []uint16
	early   int    // how many have arrived above want
	latest  uint64 // of these, the one that came last
	unacked int    // segments since the last ack

	duplicates uint64 // segments that came again
}

func newReceiver(segments int) receiver {
	return receiver{arrived: make([]bool, segments), payload: make([]uint16, segments)}
}

func (r *receiver) slot(seq uint64) uint64 { return seq & uint64(len(r.arrived)-1) }

// take takes in a segment, and returns how many bytes are in order now that were not before, and
// whether an ack is due at once: every second segment, and whatever tells the sender of a gap or
// that one is filled. Source: RFC 5681 §4.2.
func (r *receiver) take(f *frame) (inOrder int64, ackNow bool) {
	if f.seq < r.want || f.seq-r.want < uint64(len(r.arrived)) && r.arrived[r.slot(f.seq)] {
		r.duplicates++
		return 0, true
	}
	gaps := r.early > 0
	r.arrived[r.slot(f.seq)], r.payload[r.slot(f.seq)] = true, f.payload
	if f.seq != r.want {
		r.early++
		r.latest = f.seq
		return 0, true
	}
	r.early++
	for r.early > 0 && r.arrived[r.slot(r.want)] {
		r.arrived[r.slot(r.want)] = false
		inOrder += int64(r.payload[r.slot(r.want)])
		r.want++
		r.early--
	}
	r.unacked++
	return inOrder, gaps || f.push || r.unacked >= ackEvery
}

// acknowledge fills in an ack.
func (r *receiver) acknowledge(f *frame) {
	r.unacked = 0
	f.seq, f.lo, f.hi = r.want, 0, 0
	if r.early == 0 || r.latest < r.want {
		return
	}
	for f.lo = r.latest; f.lo > r.want && r.arrived[r.slot(f.lo-1)]; f.lo-- {
	}
	end := r.want + uint64(len(r.arrived))
	for f.hi = r.latest + 1; f.hi < end && r.arrived[r.slot(f.hi)]; f.hi++ {
	}
}
