package fault

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// parcel is a frame of which the payload was copied, since the link inside takes its memory back.
type parcel struct {
	frame  transport.Frame
	memory []byte
	due    monotime.Time
	behind int // frames that are still to overtake it
}

// holding keeps parcels until they are due. Memory goes round: spare, held or lent, spare again.
type holding struct {
	held   []*parcel // by due; those of one instant in the order in which they came
	racing int       // how many of held are to be overtaken
	lent   []*parcel // given to the poller, whose they are until its next Poll
	spare  []*parcel
}

// copyOf returns a parcel with the frame, due and overtaken.
func (h *holding) copyOf(f *transport.Frame) *parcel {
	p := new(parcel)
	if last := len(h.spare) - 1; last >= 0 {
		p, h.spare = h.spare[last], h.spare[:last]
	}
	p.memory = append(p.memory[:0], f.Payload...)
	p.frame, p.due, p.behind = *f, monotime.Time{}, 0
	p.frame.Payload = p.memory
	return p
}

// hold keeps p, or reports that there is no room for it.
func (h *holding) hold(p *parcel) bool {
	if len(h.held) >= MaxHeld {
		h.spare = append(h.spare, p)
		return false
	}
	if p.behind > 0 {
		h.racing++
	}
	h.insert(p)
	return true
}

func (h *holding) insert(p *parcel) {
	at, _ := slices.BinarySearchFunc(h.held, p.due, func(q *parcel, due monotime.Time) int {
		if q.due.After(due) {
			return 1
		}
		return -1 // behind those of the same instant
	})
	h.held = slices.Insert(h.held, at, p)
}

// overtake tells those that are to be overtaken that a frame has passed. It comes after take, at the same instant.
func (h *holding) overtake(now monotime.Time) {
	for i := 0; h.racing > 0 && i < len(h.held); i++ {
		p := h.held[i]
		if p.behind == 0 {
			continue
		}
		if p.behind--; p.behind > 0 {
			continue
		}
		h.racing--
		h.held = slices.Delete(h.held, i, i+1)
		p.due = now
		h.insert(p) // at i or before, since it was due later than now: what was not, take took
	}
}

// take moves parcels that are due into frames, and returns how many.
func (h *holding) take(now monotime.Time, frames []transport.Frame) (n int) {
	for n < len(h.held) && n < len(frames) && !h.held[n].due.After(now) {
		p := h.held[n]
		if p.behind > 0 { // nobody came to overtake it
			h.racing--
		}
		frames[n] = h.lend(p)
		n++
	}
	h.held = slices.Delete(h.held, 0, n)
	return n
}

// lend gives p's frame to the poller.
func (h *holding) lend(p *parcel) transport.Frame {
	h.lent = append(h.lent, p)
	return p.frame
}

// reclaim takes back what was lent.
func (h *holding) reclaim() {
	h.spare = append(h.spare, h.lent...)
	h.lent = h.lent[:0]
}

// next returns when the first parcel is due.
func (h *holding) next() (due monotime.Time, any bool) {
	if len(h.held) == 0 {
		return monotime.Time{}, false
	}
	return h.held[0].due, true
}
