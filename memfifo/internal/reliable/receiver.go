package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// receiver is the receiving half of a lane: the next frame that is wanted, and some behind it that came early.
type receiver struct {
	nxt        uint32
	outOfOrder [ReorderWindow][]byte // by sequence; nil: not here. The frame next is here while it is held
	held       bool                  // frame next is here, and whoever takes it cannot take all of it yet
	rest       []byte                // of it
	count      int                   // of frames in early

	unacked      int           // frames taken since they were acknowledged
	ackRequested bool          // the sender wants to know, and there is nothing else for it
	ackNow       bool          // it should know at once
	ackDeadline  monotime.Time // when the acknowledgement is due; valid if owed
}

func (r *receiver) init(start uint32) { r.nxt = start }

// arrival is what becomes of a frame.
type arrival uint8

const (
	inOrder      arrival = iota // to be taken now
	kept                        // kept for later
	duplicate                   // here already
	beyondWindow                // no room: it will come again
)

// continues reports whether a frame is the next one, with nothing behind it, and not the first that is to be acknowledged.
func (r *receiver) isNext(sequence uint32) bool {
	return sequence == r.nxt && r.count == 0 && r.unacked > 0
}

// owe notes that a frame is to be acknowledged.
func (r *receiver) onData(h *Header) {
	r.unacked++
	r.ackRequested = r.ackRequested || h.AckNow
}

// arrive looks at a frame. One that is stashed is copied.
func (r *receiver) arrive(h *Header, records []byte, now monotime.Time, alloc func() []byte) arrival {
	if r.unacked == 0 {
		r.ackDeadline = now.Add(ackDelay)
	}
	r.onData(h)
	ahead := int32(h.Sequence - r.nxt)
	switch {
	case ahead < 0 || ahead < ReorderWindow && r.outOfOrder[h.Sequence%ReorderWindow] != nil:
		r.ackNow = true
		return duplicate
	case ahead >= ReorderWindow:
		r.ackNow = true
		return beyondWindow
	case ahead == 0 && !r.held:
		if r.count > 0 {
			r.ackNow = true // a gap is filled
		}
		return inOrder
	}
	r.ackNow = true // there is a gap
	b := alloc()
	r.outOfOrder[h.Sequence%ReorderWindow] = b[:copy(b, records)]
	r.count++
	return kept
}

// taken moves on to the next frame.
func (r *receiver) deliver(free func([]byte)) {
	if i := r.nxt % ReorderWindow; r.outOfOrder[i] != nil {
		free(r.outOfOrder[i])
		r.outOfOrder[i] = nil
		r.count--
		r.ackNow = true // the sender knows that it came, and may wait for this
	}
	r.held, r.rest = false, nil
	r.nxt++
}

// hold keeps frame next, of which rest was not taken.
func (r *receiver) hold(rest []byte, alloc func() []byte) {
	i := r.nxt % ReorderWindow
	if r.outOfOrder[i] == nil {
		b := alloc()
		r.outOfOrder[i] = b[:copy(b, rest)]
		r.count++
		rest = r.outOfOrder[i]
	}
	r.held, r.rest = true, rest
	r.ackNow = true
}

// following returns the records of frame next if it came early, or what is left of them if it is held.
func (r *receiver) buffered() (records []byte, ok bool) {
	if r.held {
		return r.rest, true
	}
	b := r.outOfOrder[r.nxt%ReorderWindow]
	return b, b != nil
}

// acknowledge fills in what is here.
func (r *receiver) fillAck(h *Header) {
	h.Ack = r.nxt
	h.Credit = Window
	if r.held {
		h.Credit = ReorderWindow
	}
	h.SACK = 0
	for i := range uint32(ReorderWindow) {
		if r.count == 0 {
			break
		}
		if r.outOfOrder[(r.nxt+i)%ReorderWindow] != nil {
			h.SACK |= 1 << i
		}
	}
}

// told notes that an acknowledgement has gone.
func (r *receiver) onAckSent() { r.unacked, r.ackRequested, r.ackNow = 0, false, false }

// wants reports whether an acknowledgement should go now, by itself.
func (r *receiver) ackDue(data AckPolicy) bool {
	return r.ackNow || r.unacked >= ackEvery && data != WillPiggyback || r.ackRequested && data == NoPiggyback
}
