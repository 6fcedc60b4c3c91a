package mpi

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// awaited is a multicast that a process waits for, or, from no source, one that waits for room.
type awaited struct {
	comm   *Comm
	from   *source // or nil
	number uint32
	due    time.Time // when it is asked for
	pause  time.Duration
}

// beginAsking has a multicast asked for, or room, until endAsking. The caller holds World.mu.
func (o collective) beginAsking(s *source, number uint32) {
	due := time.Now().Add(askAfter)
	o.w.awaited = append(o.w.awaited, awaited{o.Comm, s, number, due, askAfter})
	o.w.askAt(due)
}

func (o collective) endAsking(s *source, number uint32) {
	all := o.w.awaited
	k := slices.IndexFunc(all, func(a awaited) bool {
		return a.comm == o.Comm && a.from == s && a.number == number
	})
	last := len(all) - 1
	all[k], all[last] = all[last], awaited{}
	o.w.awaited = all[:last]
}

// askAt has ask called at an instant, or before. The caller holds mu.
func (w *World) askAt(due time.Time) {
	if w.nextAsk.IsZero() || due.Before(w.nextAsk) {
		w.nextAsk = due
		w.asking.Reset(time.Until(due))
	}
}

// ask asks for the multicasts that have not come in time, and for room for this process' own.
func (w *World) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextAsk = time.Time{}
	if w.closed {
		return
	}
	now := time.Now()
	for k := range w.awaited {
		a := &w.awaited[k]
		if a.from != nil && !a.from.expects(a.number) {
			continue
		}
		if !now.Before(a.due) {
			w.askFor(a, now)
		}
		w.askAt(a.due)
	}
	w.beginTouched()
}

// askBehind asks for the multicasts that have not come, but a later one of that source has. The
// caller holds mu, and has what is queued carried out.
func (w *World) askBehind(s *source) {
	for k := range w.awaited {
		a := &w.awaited[k]
		if a.from == s && a.pause == askAfter && s.latest-a.number < multicastWindow && s.expects(a.number) {
			w.askFor(a, time.Now())
		}
	}
}

func (w *World) askFor(a *awaited, now time.Time) {
	a.pause = min(2*a.pause, maxAskAfter)
	a.due = now.Add(a.pause)
	if a.from == nil {
		a.comm.askForRoom(a.number)
		return
	}
	w.stats.Asked++
	a.comm.sendMulticast(a.comm.rankOf(a.from.rank),
		&wire.Multicast{Kind: wire.Ask, Number: a.number, Ended: a.from.ended})
}

// askForRoom asks the listeners that a multicast waits for what they have: they have told it,
// maybe, by multicasts that were lost, and that this process has given up since. The caller holds
// World.mu, and has what is queued carried out.
func (c *Comm) askForRoom(number uint32) {
	for k := range c.members {
		if l := &c.multicasts.root.listeners[k]; k != c.rank && l.met && !l.left && l.lacks(number) {
			c.sendMulticast(k, &wire.Multicast{Kind: wire.Waiting, Number: number - multicastWindow})
		}
	}
}
