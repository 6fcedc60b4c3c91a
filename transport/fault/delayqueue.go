package fault

import (
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// delayedFrame is a frame with its payload copied, since the inner link takes its memory back.
type delayedFrame struct {
	frame      transport.Frame
	memory     []byte
	due        monotime.Time
	overtakers int // how many frames are still to overtake it
}

// delayQueue holds frames until they are due. Frames go round: spare, queued, lent, spare again.
type delayQueue struct {
	queued  []*delayedFrame // by due time, those of one instant in the order of arrival
	reorder int             // how many of queued are to be overtaken
	lent    []*delayedFrame // handed out by Poll, and the caller's until the next Poll
	spare   []*delayedFrame
}

// copyOf returns a copy of f, due at the zero time.
func (q *delayQueue) copyOf(f *transport.Frame) *delayedFrame {
	d := new(delayedFrame)
	if last := len(q.spare) - 1; last >= 0 {
		d, q.spare = q.spare[last], q.spare[:last]
	}
	d.memory = append(d.memory[:0], f.Payload...)
	d.frame, d.due, d.overtakers = *f, monotime.Time{}, 0
	d.frame.Payload = d.memory
	return d
}

// push queues d, or reports that there is no room for it.
func (q *delayQueue) push(d *delayedFrame) bool {
	if len(q.queued) >= MaxDelayed {
		q.spare = append(q.spare, d)
		return false
	}
	if d.overtakers > 0 {
		q.reorder++
	}
	q.insert(d)
	return true
}

func (q *delayQueue) insert(d *delayedFrame) {
	at, _ := slices.BinarySearchFunc(q.queued, d.due, func(other *delayedFrame, due monotime.Time) int {
		if other.due.After(due) {
			return 1
		}
		return -1 // d goes behind those of the same instant
	})
	q.queued = slices.Insert(q.queued, at, d)
}

// overtake notes that a frame has passed those that are to be overtaken. Frames due by now have
// been popped before, so one that becomes due here moves to its place i or to one before it.
func (q *delayQueue) overtake(now monotime.Time) {
	for i := 0; q.reorder > 0 && i < len(q.queued); i++ {
		d := q.queued[i]
		if d.overtakers == 0 {
			continue
		}
		if d.overtakers--; d.overtakers > 0 {
			continue
		}
		q.reorder--
		q.queued = slices.Delete(q.queued, i, i+1)
		d.due = now
		q.insert(d)
	}
}

// pop moves frames that are due into frames, and returns how many.
func (q *delayQueue) pop(now monotime.Time, frames []transport.Frame) (n int) {
	for n < len(q.queued) && n < len(frames) && !q.queued[n].due.After(now) {
		d := q.queued[n]
		if d.overtakers > 0 { // not overtaken in time
			q.reorder--
		}
		frames[n] = q.lend(d)
		n++
	}
	q.queued = slices.Delete(q.queued, 0, n)
	return n
}

// lend returns d's frame for Poll to hand out.
func (q *delayQueue) lend(d *delayedFrame) transport.Frame {
	q.lent = append(q.lent, d)
	return d.frame
}

// reclaim takes back what the last Poll handed out.
func (q *delayQueue) reclaim() {
	q.spare = append(q.spare, q.lent...)
	q.lent = q.lent[:0]
}

// next returns when the first frame is due.
func (q *delayQueue) next() (due monotime.Time, ok bool) {
	if len(q.queued) == 0 {
		return monotime.Time{}, false
	}
	return q.queued[0].due, true
}
