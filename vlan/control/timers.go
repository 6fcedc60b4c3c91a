package control

import (
	"container/heap"

	"github.com/rawlane/rawlane/internal/monotime"
)

// timer is the time when something is due: of a path, or of a peer as a whole.
type timer struct {
	due  monotime.Time
	peer *peer
	path *path // nil: the peer's
	at   int   // in the heap, from 1; 0: not in it
}

// timers is a heap, soonest first.
type timers []*timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].at, t[j].at = i+1, j+1
}

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	*t = append(*t, x.(*timer))
	(*t)[len(*t)-1].at = len(*t)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	last.at = 0
	return last
}

// set gives a timer another time.
func (f *Failover) set(t *timer, due monotime.Time) {
	t.due = due
	if t.at > 0 {
		heap.Fix(&f.timers, t.at-1)
	} else {
		heap.Push(&f.timers, t)
	}
}

// drop stops a timer.
func (f *Failover) drop(t *timer) {
	if t.at > 0 {
		heap.Remove(&f.timers, t.at-1)
	}
}
