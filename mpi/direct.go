package mpi

import "time"

// Both ends of a collective operation's message know that it is received. So where all receives are
// offered its send waits for the offer, and is written into the receive's memory, whichever end is
// there first. The receives of an operation are posted before its sends wait, so of all that wait
// the one in the earliest step has its offer. MBCF §3.3 starts receives first for that. By default
// the end that is first sends: two ranks that exchange some KiB are quicker so.

// beginAging has sends looked at that wait for offers. The caller holds mu.
func (w *World) beginAging() {
	w.aging = true
	if w.held == nil {
		w.held = time.AfterFunc(offerPause, w.age)
	} else {
		w.held.Reset(offerPause)
	}
}

// age has those sends go without an offer that have waited too long for one: the receiver offers
// nothing as long as too many other receives are posted, and not what is called with other
// arguments there.
func (w *World) age() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.out, w.aging = w.engine.Age(w.out[:0])
	w.act()
	if w.aging {
		w.held.Reset(offerPause)
	}
	w.beginTouched()
}
