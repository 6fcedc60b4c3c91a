package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// receiver is the receiving half of a lane: the next frame expected, and some behind it.
type receiver struct {
	nxt        uint32                // RCV.NXT, RFC 9293 §3.3.1
	outOfOrder [ReorderWindow]Buffer // by sequence number; no bytes: not here. Frame nxt is here while it is held
	count      int                   // of frames in outOfOrder
	rest       []byte                // of frame nxt's records, while it is held: they cannot be processed yet

	unacked      int           // frames delivered since the last acknowledgement
	ackRequested bool          // the sender wants one, and has nothing else for this end to wait for
	ackNow       bool          // one is due whatever the policy
	ackDeadline  monotime.Time // when one is due at the latest; valid if unacked > 0
	echo         uint32        // the probe to be answered, or 0
}

func (r *receiver) init(sequence uint32) { r.nxt = sequence }

// onProbe owes an answer that names the probe.
func (r *receiver) onProbe(h *Header) { r.ackNow, r.echo = true, h.Sequence }

// arrive reports whether a frame is to be delivered now. If not, it counts why, and keeps one that
// is early. All but a plain next frame are acknowledged at once (RFC 5681 §4.2).
func (r *receiver) arrive(h *Header, records []byte, now monotime.Time, cfg *Config) bool {
	if r.unacked == 0 {
		r.ackDeadline = now.Add(ackDelay)
	}
	r.unacked++
	r.ackRequested = r.ackRequested || h.AckNow
	switch ahead := int32(h.Sequence - r.nxt); {
	case ahead < 0 || ahead < ReorderWindow && r.outOfOrder[h.Sequence%ReorderWindow].Bytes != nil:
		cfg.Counters.Duplicate++
	case ahead >= ReorderWindow:
		cfg.Counters.BeyondWindow++ // the sender retransmits it
	case ahead > 0:
		cfg.Counters.OutOfOrder++
		r.keep(h.Sequence, records, cfg.Alloc)
	default:
		r.ackNow = r.ackNow || r.count > 0 // a gap is filled
		return true
	}
	r.ackNow = true
	return false
}

// keep copies a frame's records, and returns the copy.
func (r *receiver) keep(sequence uint32, records []byte, alloc func(int) Buffer) []byte {
	b := alloc(len(records))
	copy(b.Bytes, records)
	r.outOfOrder[sequence%ReorderWindow] = b
	r.count++
	return b.Bytes
}

// delivered moves on to the next frame.
func (r *receiver) delivered(free func(Buffer)) {
	if i := r.nxt % ReorderWindow; r.outOfOrder[i].Bytes != nil {
		free(r.outOfOrder[i])
		r.outOfOrder[i] = Buffer{}
		r.count--
		r.ackNow = true // the sender knows that it has arrived, and may wait for its delivery
	}
	r.rest = nil
	r.nxt++
}

// hold keeps frame nxt, of whose records the rest is to be delivered.
func (r *receiver) hold(rest []byte, alloc func(int) Buffer) {
	if r.outOfOrder[r.nxt%ReorderWindow].Bytes == nil {
		rest = r.keep(r.nxt, rest, alloc)
	}
	r.rest = rest
	r.ackNow = true
}

// buffered returns the records of frame nxt if it is here, or the rest of them if it is held.
func (r *receiver) buffered() (records []byte, ok bool) {
	if r.rest != nil {
		return r.rest, true
	}
	b := r.outOfOrder[r.nxt%ReorderWindow].Bytes
	return b, b != nil
}

// fillAck fills in what has arrived in order.
func (r *receiver) fillAck(h *Header) {
	h.Ack = r.nxt
	h.Credit = Window
	if r.rest != nil {
		h.Credit = heldCredit
	}
}

// fillSACK fills in what has arrived out of order.
func (r *receiver) fillSACK(h *Header) {
	for i, left := uint32(0), r.count; left > 0; i++ {
		if r.outOfOrder[(r.nxt+i)%ReorderWindow].Bytes != nil {
			h.SACK.add(i)
			left--
		}
	}
}

// onAckSent notes that an acknowledgement was sent.
func (r *receiver) onAckSent() { r.unacked, r.ackRequested, r.ackNow = 0, false, false }

// ackDue reports whether an acknowledgement is to go now, without data.
func (r *receiver) ackDue(p AckPolicy) bool {
	return r.ackNow || r.unacked >= ackEvery && p != WillPiggyback || r.ackRequested && p == NoPiggyback
}
