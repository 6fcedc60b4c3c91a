package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// receiver is the receiving half of a lane: the next frame that is wanted, and some behind it that came early.
type receiver struct {
	next  uint32
	early [Stash][]byte // by sequence; nil: not here. The frame next is here while it is held
	held  bool          // frame next is here, and whoever takes it cannot take all of it yet
	rest  []byte        // of it
	count int           // of frames in early

	owed int           // frames taken since they were acknowledged
	soon bool          // the sender wants to know, and there is nothing else for it
	now  bool          // it should know at once
	due  monotime.Time // when the acknowledgement is due; valid if owed
}

func (r *receiver) init(start uint32) { r.next = start }

// arrival is what becomes of a frame.
type arrival uint8

const (
	inOrder   arrival = iota // to be taken now
	stashed                  // kept for later
	duplicate                // here already
	beyond                   // no room: it will come again
)

// continues reports whether a frame is the next one, with nothing behind it, and not the first that is to be acknowledged.
func (r *receiver) continues(sequence uint32) bool {
	return sequence == r.next && r.count == 0 && r.owed > 0
}

// owe notes that a frame is to be acknowledged.
func (r *receiver) owe(h *Header) {
	r.owed++
	r.soon = r.soon || h.AnswerNow
}

// arrive looks at a frame. One that is stashed is copied.
func (r *receiver) arrive(h *Header, records []byte, now monotime.Time, alloc func() []byte) arrival {
	if r.owed == 0 {
		r.due = now.Add(ackDelay)
	}
	r.owe(h)
	ahead := int32(h.Sequence - r.next)
	switch {
	case ahead < 0 || ahead < Stash && r.early[h.Sequence%Stash] != nil:
		r.now = true
		return duplicate
	case ahead >= Stash:
		r.now = true
		return beyond
	case ahead == 0 && !r.held:
		if r.count > 0 {
			r.now = true // a gap is filled
		}
		return inOrder
	}
	r.now = true // there is a gap
	b := alloc()
	r.early[h.Sequence%Stash] = b[:copy(b, records)]
	r.count++
	return stashed
}

// taken moves on to the next frame.
func (r *receiver) taken(free func([]byte)) {
	if i := r.next % Stash; r.early[i] != nil {
		free(r.early[i])
		r.early[i] = nil
		r.count--
		r.now = true // the sender knows that it came, and may wait for this
	}
	r.held, r.rest = false, nil
	r.next++
}

// hold keeps frame next, of which rest was not taken.
func (r *receiver) hold(rest []byte, alloc func() []byte) {
	i := r.next % Stash
	if r.early[i] == nil {
		b := alloc()
		r.early[i] = b[:copy(b, rest)]
		r.count++
		rest = r.early[i]
	}
	r.held, r.rest = true, rest
	r.now = true
}

// following returns the records of frame next if it came early, or what is left of them if it is held.
func (r *receiver) following() (records []byte, ok bool) {
	if r.held {
		return r.rest, true
	}
	b := r.early[r.next%Stash]
	return b, b != nil
}

// acknowledge fills in what is here.
func (r *receiver) acknowledge(h *Header) {
	h.Ack = r.next
	h.Credit = Window
	if r.held {
		h.Credit = Stash
	}
	h.Selective = 0
	for i := range uint32(Stash) {
		if r.count == 0 {
			break
		}
		if r.early[(r.next+i)%Stash] != nil {
			h.Selective |= 1 << i
		}
	}
}

// told notes that an acknowledgement has gone.
func (r *receiver) told() { r.owed, r.soon, r.now = 0, false, false }

// wants reports whether an acknowledgement should go now, by itself.
func (r *receiver) wants(data Company) bool {
	return r.now || r.owed >= ackEvery && data != Promised || r.soon && data == Alone
}
